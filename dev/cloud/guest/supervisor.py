"""Process 1 of a machine: runs the document once, then keeps services and reaps what ends.

One loop over a wake-up pipe and the control socket of the ``systemctl`` stand-in. Everything is
already imported when this runs, because the private root holds nothing of this repository.
"""

from __future__ import annotations

import dataclasses
import json
import os
import selectors
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from dev.cloud import document as documents
from dev.cloud.guest import modules
from dev.cloud.guest.services import Services

SOCKET = Path("/run/systemctl.sock")
_INSTANCES = Path("/var/lib/cloud/instances")
# A command line of the stand-in is short, and process 1 must not wait for a silent client.
_REQUEST_BYTES_MAX = 64 * 1024
_REQUEST_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """What one power-on does.

    Attributes:
        instance_id: The machine's id, cloud-init's instance id.
        user_data: The document as received; ``None``: it never runs.
        events_fd: Where facts go, one JSON object a line; open, on the host.
    """

    instance_id: str
    user_data: bytes | None
    events_fd: int


class Supervisor:
    """The loop of process 1; ``run`` never returns."""

    def __init__(self, boot: Boot) -> None:
        self._boot = boot
        self._services = Services()
        self._selector = selectors.DefaultSelector()

    def run(self) -> NoReturn:
        """Boots the machine and serves it until it is killed."""
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_read, False)
        os.set_blocking(wake_write, False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        self._selector.register(wake_read, selectors.EVENT_READ)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(SOCKET))
        listener.listen()
        self._selector.register(listener, selectors.EVENT_READ)
        self._tell({"event": "up"})
        self._services.start_enabled()
        self._run_document_once()
        while True:
            due = self._services.next_due()
            wait_s = None if due is None else max(0.0, due - time.monotonic())
            for key, _ in self._selector.select(wait_s):
                if key.fd == wake_read:
                    os.read(wake_read, 4096)
                else:
                    self._serve(listener)
            self._reap()
            self._services.tick()

    def _tell(self, fact: dict[str, object]) -> None:
        os.write(self._boot.events_fd, json.dumps(fact).encode() + b"\n")

    def _run_document_once(self) -> None:
        """Runs the document in a child, unless this instance ran it before.

        The mark is set first: a machine that is killed half-way never runs its document again.
        """
        if self._boot.user_data is None:
            return
        instance = _INSTANCES / self._boot.instance_id
        (instance / "sem").mkdir(parents=True, exist_ok=True)
        try:
            (instance / "sem" / "config_scripts_user").touch(exist_ok=False)
        except FileExistsError:
            return
        if os.fork() == 0:
            try:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                self._tell(_document_fact(self._boot.user_data, instance))
            finally:
                os._exit(0)

    def _serve(self, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        connection.settimeout(_REQUEST_TIMEOUT_S)
        try:
            line = connection.makefile("rb").readline(_REQUEST_BYTES_MAX)
            argv = [str(word) for word in json.loads(line)]
        except (OSError, ValueError):
            connection.close()
            return
        self._services.command(argv, _replier(connection))

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._services.reaped(pid, os.waitstatus_to_exitcode(status))


def _replier(connection: socket.socket) -> Callable[[int, str], None]:
    def reply(code: int, text: str) -> None:
        try:
            connection.sendall(json.dumps({"code": code, "text": text}).encode() + b"\n")
        except OSError:
            # The client went away; its command was carried out all the same.
            return
        finally:
            connection.close()

    return reply


def _document_fact(user_data: bytes, instance: Path) -> dict[str, object]:
    try:
        document = documents.parse(user_data)
    except documents.DocumentError as error:
        return {"event": "document", "faults": [str(error)], "exit_code": 1}
    return {"event": "document", **dataclasses.asdict(modules.execute(document, instance))}
