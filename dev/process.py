"""Starts programs as children that never outlive this process.

One child with its log file, readiness with a deadline, free ports. Everything in `dev` and
the tests may import it; nothing a user installs may.
"""

import atexit
import contextlib
import functools
import os
import random
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies_environment

from dev import launch

POLL_S = 0.05
"""Pause between two looks at a condition; short against every start-up here."""

STOP_TIMEOUT_S = 10.0
"""How long a child may take after its stop signal before it is killed."""

LOG_TAIL_LINES = 20
"""Lines of a child's log that a failure quotes: a Go panic's head fits."""

LOG_TAIL_BYTES = 64 * 1024
"""How much of a log is read to find those lines; logs grow to many megabytes."""

PROBE_TIMEOUT_S = 5.0
"""One readiness probe; on loopback an answer takes milliseconds."""

PORTS = range(15000, 32000)
"""Below Linux's ephemeral range, so that no outgoing connection takes a port between
choosing and binding it."""

LOOPBACK = ("localhost", "127.0.0.1")

PORT_ATTEMPTS = 200
"""Random picks before giving up; a machine with so many ports taken is broken."""


class ProcessError(RuntimeError):
    """A child ended, did not become ready, or a command failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A user to run a program as; only root may name another than itself."""

    uid: int
    gid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What to run.

    Args:
        name: unique within a supervisor; names the log file.
        argv: absolute path of the program, then its arguments.
        env: added to this process's environment.
        cwd: `None` keeps this process's working directory.
        stop_signal: asks the program to end in good order.
        death_signal: sent by the kernel when this process is gone.
        account: `None` keeps this process's user.
    """

    name: str
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    death_signal: signal.Signals = signal.SIGKILL
    account: Account | None = None


@functools.cache
def _spawner() -> ThreadPoolExecutor:
    """The one thread that starts children.

    Linux ties the death signal to the *thread* that forked, not to the process. A
    caller's worker thread may end at any time; this one lives as long as the process.
    """
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="spawner")


def reach_loopback_directly() -> None:
    """Ask none of the environment's proxies for loopback, here and in later children.

    Idempotency: a second call changes nothing; without proxies it never does.
    """
    proxies = getproxies_environment()
    if proxies:
        listed = [*filter(None, proxies.get("no", "").split(",")), *LOOPBACK]
        # Some programs read one spelling and some the other.
        os.environ["no_proxy"] = os.environ["NO_PROXY"] = ",".join(dict.fromkeys(listed))


def _spawn(program: Program, log: Path) -> subprocess.Popen[bytes]:
    account = program.account or Account(uid=launch.KEEP, gid=launch.KEEP)
    numbers = (os.getpid(), int(program.death_signal), account.uid, account.gid)
    argv = [sys.executable, "-I", "-S", launch.__file__, *map(str, numbers), *program.argv]
    with log.open("ab") as out:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=program.cwd,
            env={**os.environ, **program.env},
            start_new_session=True,
        )


def wait_until(condition: Callable[[], bool], *, timeout_s: float) -> None:
    """Return once `condition` answers true; it is asked every `POLL_S`.

    Raises:
        TimeoutError: it did not in time.
    """
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            message = f"not ready after {timeout_s:g} s"
            raise TimeoutError(message)
        time.sleep(POLL_S)


def log_tail(log: Path) -> str:
    """Say how a log ends, for an error message."""
    with log.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - LOG_TAIL_BYTES))
        lines = file.read().decode(errors="replace").splitlines()
    if not lines:
        return f"{log.name} is empty"
    return "\n".join([f"{log.name} ends with:", *lines[-LOG_TAIL_LINES:]])


def answers(url: str, *, authority: Path | None = None) -> bool:
    """Whether a GET of a loopback URL is answered with 200 right now.

    Args:
        url: `http` or `https`; proxies of the environment are not asked.
        authority: PEM file that the server's certificate is checked against.
    """
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port
    connection: HTTPConnection
    if parts.scheme == "https":
        context = ssl.create_default_context(cafile=authority)
        connection = HTTPSConnection(host, port, timeout=PROBE_TIMEOUT_S, context=context)
    else:
        connection = HTTPConnection(host, port, timeout=PROBE_TIMEOUT_S)
    with contextlib.closing(connection):
        try:
            connection.request("GET", parts.path)
            return connection.getresponse().status == HTTPStatus.OK
        except (OSError, HTTPException):
            return False


_reserved: dict[int, socket.socket] = {}


@atexit.register
def _give_ports_back() -> None:
    for mark in _reserved.values():
        mark.close()


def free_port() -> int:
    """Choose a loopback port that nothing listens on and that no other caller gets.

    An abstract Unix socket per port marks the choice across processes until this one
    ends; the kernel drops it even after a kill.

    Raises:
        ProcessError: no free port was found.
    """
    for port in random.sample(PORTS, PORT_ATTEMPTS):
        mark = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            mark.bind(f"\0plexsphere-broker-port-{port}")
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
                probe.bind(("", port))
        except OSError:
            mark.close()
            continue
        _reserved[port] = mark
        return port
    message = f"cannot choose port: none of {PORT_ATTEMPTS} tried is free"
    raise ProcessError(message)


class Child:
    """One started program."""

    def __init__(self, program: Program, log: Path) -> None:
        self.program = program
        self.log = log
        self._popen = _spawner().submit(_spawn, program, log).result()
        self._over = False

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def status(self) -> int | None:
        """Exit status, negative for a signal; `None` while it runs."""
        return self._popen.poll()

    def await_ready(self, ready: Callable[[], bool], *, timeout_s: float) -> None:
        """Return once `ready` answers true.

        Raises:
            ProcessError: the program ended, or was not ready in time; quotes its last
                log lines.
        """
        try:
            wait_until(lambda: self.status is not None or ready(), timeout_s=timeout_s)
        except TimeoutError as error:
            message = f"cannot start {self.program.name}: {error}; {log_tail(self.log)}"
            raise ProcessError(message) from None
        if self.status is not None:
            detail = f"it ended with status {self.status}"
            message = f"cannot start {self.program.name}: {detail}; {log_tail(self.log)}"
            raise ProcessError(message)

    def ended_within(self, timeout_s: float) -> bool:
        """Wait for it to end by itself; false if it still runs after `timeout_s`."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(timeout_s)
        return self.status is not None

    def pause(self) -> None:
        """Have it and its group stand still, as a machine does that is suspended."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on. Idempotency: one that runs goes on running."""
        self._signal(signal.SIGCONT)

    def stop(self) -> None:
        """End it in good order, or after `STOP_TIMEOUT_S` by force, with its group.

        Idempotency: a second call finds nothing to end.
        """
        if self.status is None:
            self._signal(self.program.stop_signal)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._popen.wait(STOP_TIMEOUT_S)
        self.kill()

    def kill(self) -> None:
        """End it and its process group at once.

        Idempotency: a second call finds nothing to end.
        """
        if not self._over:
            self._signal(signal.SIGKILL)
            self._popen.wait()
            self._over = True

    def _signal(self, number: signal.Signals) -> None:
        # The group may be empty already: its leader ended and left nothing behind.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)
