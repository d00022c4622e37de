"""Powers machines on and off: the host's side of a private root.

One launcher process per machine (``dev.cloud.guest``), which holds the lock of the machine's
folder while anything of the machine lives; a restarted provider finds its machines by that lock.
Blocking: the callers run it in threads. Documents are written to the machine's folder with mode
0600 and to no log.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dev.cloud.guest.root import SEARCH_PATH

_REPOSITORY = Path(__file__).resolve().parents[2]
_LAUNCHER = (sys.executable, "-m", "dev.cloud.guest")
# From spawn to process 1: 0.3 s when the machine is idle; two busy cores make it several.
_POWER_ON_TIMEOUT_S = 30.0
# A killed pid namespace is gone in milliseconds.
_POWER_OFF_TIMEOUT_S = 10.0
_PREFLIGHT_TIMEOUT_S = 30.0
_POLL_S = 0.02
_HOSTNAME_MAX = 63


class BootError(RuntimeError):
    """A machine could not be powered on or off; the text names the step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """Whether private roots can be made here; ``detail`` says what stands in the way."""

    allowed: bool
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerOn:
    """One power-on.

    Attributes:
        folder: The machine's own folder.
        machine_id: cloud-init's instance id: a document runs once per id.
        user_data: The document; ``None``: a machine whose document never runs.
        lifetime_pid: The process that the cloud belongs to; the machine ends with it.
    """

    folder: Path
    machine_id: str
    name: str
    user_data: str | None
    lifetime_pid: int


def preflight(command: Sequence[str] = (*_LAUNCHER, "--check")) -> Preflight:
    """Tries namespaces, mounts and a program once, and leaves nothing behind."""
    try:
        done = subprocess.run(
            command,
            cwd=_REPOSITORY,
            env=_environment(),
            capture_output=True,
            text=True,
            timeout=_PREFLIGHT_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Preflight(allowed=False, detail=f"cannot try a private root: {error}")
    if done.returncode == 0:
        return Preflight(allowed=True)
    lines = done.stderr.strip().splitlines()
    return Preflight(allowed=False, detail=lines[-1] if lines else f"ended: {done.returncode}")


class Hypervisor:
    """Starts, ends and clears machines; one caller at a time per machine."""

    def __init__(self) -> None:
        self._launchers: dict[Path, subprocess.Popen[bytes]] = {}

    def power_on(self, order: PowerOn) -> None:
        """Starts a machine and answers when its process 1 is up.

        Idempotency: a machine that runs stays as it is; a document that ran does not run again.

        Raises:
            BootError: the launcher ended, or process 1 did not come up in time.
        """
        if self.is_running(order.folder):
            return
        order.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_secret(order.folder / "user-data", order.user_data or "")
        seen = len(_events(order.folder))
        command = [*_LAUNCHER, "--folder", str(order.folder), "--hostname", hostname(order.name)]
        command += ["--instance-id", order.machine_id, "--lifetime-pid", str(order.lifetime_pid)]
        command += ["--no-document"] if order.user_data is None else []
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        log = os.open(order.folder / "cloud-init-output.log", flags, 0o600)
        try:
            launcher = subprocess.Popen(
                command,
                cwd=_REPOSITORY,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        finally:
            os.close(log)
        self._launchers[order.folder] = launcher

        def up() -> bool:
            return len(_events(order.folder)) > seen or launcher.poll() is not None

        came = _wait_until(up, _POWER_ON_TIMEOUT_S)
        if not came or launcher.poll() is not None:
            launcher.kill()
            launcher.wait()
            message = f"cannot power machine {order.name!r} on: see its cloud-init-output.log"
            raise BootError(message)

    def power_off(self, folder: Path) -> None:
        """Kills every process of a machine and answers when the last one is gone.

        Idempotency: nothing happens to a machine that does not run.

        Raises:
            BootError: something of it still lives after the time a kill may take.
        """
        for number in (signal.SIGTERM, signal.SIGKILL):
            if not self.is_running(folder):
                break
            _signal_holder(folder, number)
            _wait_until(lambda: not self.is_running(folder), _POWER_OFF_TIMEOUT_S / 2)
        launcher = self._launchers.pop(folder, None)
        if launcher is not None and not self.is_running(folder):
            launcher.wait()
        if self.is_running(folder):
            message = f"cannot power machine off: processes of {folder.name} still live"
            raise BootError(message)

    def is_running(self, folder: Path) -> bool:
        """Whether any process of the machine lives, whoever started it."""
        launcher = self._launchers.get(folder)
        if launcher is not None:
            # Collects the exit status of one that ended by itself.
            launcher.poll()
        try:
            lock = os.open(folder / "lock", os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(lock)
        return False

    def destroy(self, folder: Path) -> None:
        """Removes the private root and the document; the boot's log stays for the curious.

        Idempotency: what is gone is gone; the machine must be powered off.
        """
        for name in ("root", "usr-local"):
            _remove_tree(folder / name)
        (folder / "user-data").unlink(missing_ok=True)

    def exit_code(self, folder: Path) -> int | None:
        """The document's exit code; ``None``: it has not ended, or never ran."""
        for event in _events(folder):
            if event.get("event") == "document":
                code = event.get("exit_code")
                return code if isinstance(code, int) else 1
        return None


def hostname(name: str) -> str:
    """Makes a legal host name of an object's name."""
    legal = re.sub(r"[^a-z0-9-]", "-", name.lower())[:_HOSTNAME_MAX].strip("-")
    return legal or "machine"


def _environment() -> dict[str, str]:
    # Nothing of the provider's own environment: it may hold credentials.
    return {"PATH": SEARCH_PATH, "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}


def _write_secret(path: Path, content: str) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as stream:
        stream.write(content)


def _events(folder: Path) -> list[dict[str, object]]:
    try:
        text = (folder / "events.jsonl").read_text()
    except FileNotFoundError:
        return []
    # Whole lines only: the last one may be half written.
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def _signal_holder(folder: Path, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, ValueError, FileNotFoundError):
        pid = int((folder / "lock").read_text())
        holder = os.pidfd_open(pid)
        try:
            signal.pidfd_send_signal(holder, number)
        finally:
            os.close(holder)


def _wait_until(condition: Callable[[], bool], timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _remove_tree(path: Path) -> None:
    if not path.exists():
        return
    try:
        shutil.rmtree(path)
    except PermissionError:
        # A document may have closed folders even to their owner.
        for folder, names, _ in os.walk(path):
            for inner in (Path(folder, name) for name in names):
                if not inner.is_symlink():
                    inner.chmod(0o700)
        shutil.rmtree(path)
