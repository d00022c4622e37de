"""The function as a process of its own, and channels to it.

Starting it and calling it, for the gRPC and the render tests.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import grpc
from crossplane.function.proto.v1 import run_function_pb2_grpc as grpcv1

READY_TIMEOUT_S = 30
"""Imports take two seconds on an idle core, several times that on a busy one."""

STOP_TIMEOUT_S = 15
"""The SDK's grace is five seconds."""

COMMAND = str(Path(sys.executable).parent / "function")


def free_address() -> str:
    """A loopback address whose port was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"localhost:{probe.getsockname()[1]}"


@contextlib.contextmanager
def running(*arguments: str, command: str = COMMAND) -> Iterator[subprocess.Popen[str]]:
    """A function's console script, by default ours, ended when the block ends."""
    process = subprocess.Popen(
        [command, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=_environment(),
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def refused(*arguments: str) -> tuple[int, list[str]]:
    """Exit status and stderr lines of a start that must fail."""
    done = subprocess.run(
        [COMMAND, *arguments],
        capture_output=True,
        text=True,
        env=_environment(),
        timeout=READY_TIMEOUT_S,
        check=False,
    )
    return done.returncode, done.stderr.splitlines()


def _environment() -> dict[str, str]:
    # The default port of metrics is one that several tests at a time would share.
    return {"METRICS_ADDRESS": "", **os.environ}


def credentials(folder: Path) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(
        root_certificates=(folder / "ca.crt").read_bytes(),
        private_key=(folder / "tls.key").read_bytes(),
        certificate_chain=(folder / "tls.crt").read_bytes(),
    )


@contextlib.asynccontextmanager
async def stub(
    address: str, folder: Path | None = None
) -> AsyncIterator[grpcv1.FunctionRunnerServiceStub]:
    """A client, with the certificates of a folder or in the clear."""
    channel = (
        grpc.aio.insecure_channel(address)
        if folder is None
        else grpc.aio.secure_channel(address, credentials(folder))
    )
    async with channel:
        yield grpcv1.FunctionRunnerServiceStub(channel)  # type: ignore[no-untyped-call]  # generated code
