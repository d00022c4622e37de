"""A NATS server with JetStream on this host, for as long as a test or a benchmark needs one.

The server's process, and ending it for a while. Everything in `dev`, the benchmarks and the
tests may import it.
"""

import shutil
from pathlib import Path

from dev import binaries
from dev.process import Child, Program, answers, free_port
from dev.supervisor import Supervisor
from dev.toolchain import Report

READY_TIMEOUT_S = 30.0
"""It listens after some milliseconds; a loaded machine needs a moment."""

HOST = "127.0.0.1"


class NATS:
    """A server that keeps its streams in a folder, on loopback ports of its own.

    Args:
        folder: gets the streams (emptied at every start of this object) and the log.
        token: what clients must present; `None` asks for nothing.
    """

    def __init__(self, folder: Path, *, token: str | None = None) -> None:
        self._folder = folder
        self._port = free_port()
        self._monitor = free_port()
        self._token = token
        self._child: Child | None = None

    @property
    def url(self) -> str:
        """Where clients connect, with the token."""
        user = "" if self._token is None else f"{self._token}@"
        return f"nats://{user}{HOST}:{self._port}"

    def start(self, supervisor: Supervisor, *, report: Report) -> None:
        """Start it and return once it answers; it goes with the supervisor.

        Raises:
            ProcessError: it could not be built or did not start.
        """
        program = binaries.ensure(["nats-server"], report=report)["nats-server"]
        shutil.rmtree(self._folder / "streams", ignore_errors=True)
        self._folder.mkdir(parents=True, exist_ok=True)
        settings = self._folder / "nats.conf"
        authorization = "" if self._token is None else f'authorization {{ token: "{self._token}" }}'
        settings.write_text(
            f"""
            listen: "{HOST}:{self._port}"
            http: "{HOST}:{self._monitor}"
            jetstream {{ store_dir: "{self._folder / "streams"}" }}
            {authorization}
            """,
            encoding="utf-8",
        )
        report("starting nats-server")
        argv = [str(program), "--config", str(settings)]
        self._child = supervisor.start(Program(name="nats-server", argv=argv))
        self._await()

    def stop(self) -> None:
        """End it; its streams stay for another start.

        Idempotency: a second call finds nothing to end.
        """
        if self._child is not None:
            self._child.stop()

    def again(self, supervisor: Supervisor) -> None:
        """Start it once more, at the same port with the same streams.

        Raises:
            ProcessError: it did not start.
            RuntimeError: it was never started.
        """
        if self._child is None:
            message = "cannot start nats-server again: it was never started"
            raise RuntimeError(message)
        self._child = supervisor.start(self._child.program)
        self._await()

    def _await(self) -> None:
        if self._child is not None:
            health = f"http://{HOST}:{self._monitor}/healthz"
            self._child.await_ready(lambda: answers(health), timeout_s=READY_TIMEOUT_S)
