"""The function on a root file system that nobody writes to."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
from pathlib import Path

import grpc
import pytest
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from crossplane.function.proto.v1 import run_function_pb2_grpc as grpcv1

from tests.integration.grpc.serving import COMMAND, READY_TIMEOUT_S, free_address

pytestmark = pytest.mark.integration


def writes_no_file() -> None:
    """Make every write to a file fail from here on; pipes and sockets are not files."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def environment(folder: Path) -> dict[str, str]:
    return {
        "HOME": str(folder / "missing"),
        "TMPDIR": str(folder / "missing"),
        "PATH": os.defpath,
        "PYTHONDONTWRITEBYTECODE": "1",
        "METRICS_ADDRESS": "",
    }


def test_the_limit_does_stop_a_write(tmp_path: Path) -> None:
    program = f"import pathlib; pathlib.Path({str(tmp_path / 'file')!r}).write_text('x')"

    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=READY_TIMEOUT_S,
        check=False,
        preexec_fn=writes_no_file,
    )

    assert done.returncode != 0
    assert "File too large" in done.stderr


def test_it_serves_without_writing_a_file(tmp_path: Path) -> None:
    address = free_address()
    tmp_path.chmod(0o500)
    process = subprocess.Popen(
        [COMMAND, "--insecure", "--debug", "--address", address],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=writes_no_file,  # noqa: PLW1509 - it only sets a limit
    )
    try:
        with contextlib.closing(grpc.insecure_channel(address)) as channel:
            grpc.channel_ready_future(channel).result(timeout=READY_TIMEOUT_S)
            stub = grpcv1.FunctionRunnerServiceStub(channel)  # type: ignore[no-untyped-call]
            answer = stub.RunFunction(fnv1.RunFunctionRequest(), timeout=READY_TIMEOUT_S)
    finally:
        process.terminate()
        told, _ = process.communicate(timeout=READY_TIMEOUT_S)

    assert answer.results[0].message.startswith("cannot run step: input.kind: ")
    assert process.returncode == 0, told
    assert "Traceback" not in told
    assert list(tmp_path.iterdir()) == []
