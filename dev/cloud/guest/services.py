"""The service manager of a machine: what ``systemctl`` asks for, done by process 1.

Simple and oneshot units, enabling, restarts with their delay and systemd's start limit. Time is
the monotonic clock in seconds. Only ``supervisor`` uses this; parsing lives in ``units``.
"""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dev.cloud.guest import units
from dev.cloud.guest.root import SEARCH_PATH

Reply = Callable[[int, str], None]

_UNIT_FOLDERS = (Path("/etc/systemd/system"), Path("/run/systemd/system"))
_TARGET_AT_BOOT = "multi-user.target"
# systemd's defaults: five starts in ten seconds, then the unit has failed.
_START_LIMIT = 5
_START_LIMIT_WINDOW_S = 10.0
# systemd waits 90 s before it kills; a demo does not.
_STOP_TIMEOUT_S = 5.0
_HARMLESS_OPTIONS = frozenset({"--quiet", "-q", "--no-block", "--system", "--no-pager", "--force"})
_NOT_RUNNING = 3
_NOT_FOUND = 5
_CANNOT_EXEC = 203


@dataclass(slots=True, kw_only=True)
class _Unit:
    service: units.Service
    pid: int = 0
    failed: bool = False
    stopping: bool = False
    start_again: bool = False
    starts: deque[float] = field(default_factory=lambda: deque(maxlen=_START_LIMIT))
    restart_at: float | None = None
    kill_at: float | None = None
    replies: list[Reply] = field(default_factory=list)

    def answer(self, code: int, text: str = "") -> None:
        for reply in self.replies:
            reply(code, text)
        self.replies.clear()

    def state(self) -> str:
        if self.pid:
            return "active"
        if self.restart_at is not None:
            return "activating"
        return "failed" if self.failed else "inactive"


class Services:
    """The units of one machine and their processes."""

    def __init__(self) -> None:
        self._units: dict[str, _Unit] = {}

    def start_enabled(self) -> None:
        """Starts what is wanted at boot; a unit that cannot be started is left failed."""
        folder = _UNIT_FOLDERS[0] / f"{_TARGET_AT_BOOT}.wants"
        for link in sorted(folder.glob("*.service")):
            self.command(["start", link.name], lambda _code, _text: None)

    def command(self, argv: Sequence[str], reply: Reply) -> None:
        """Carries out one ``systemctl`` command line and answers with exit code and text.

        The answer may come later, when a process has ended. Commands and options that are not
        simulated are refused with code 1.
        """
        words = [word for word in argv if word not in _HARMLESS_OPTIONS]
        now = "--now" in words
        words = [word for word in words if word != "--now"]
        unknown = [word for word in words if word.startswith("-")]
        if unknown or not words:
            reply(1, f"the stand-in does not know the options {unknown}\n")
            return
        verb, names = words[0], [_full_name(word) for word in words[1:]]
        if verb in {"daemon-reload", "daemon-reexec", "reset-failed"}:
            reply(0, "")
            return
        if len(names) != 1:
            reply(1, "the stand-in takes exactly one unit\n")
            return
        self._unit_command(verb, names[0], now=now, reply=reply)

    def _unit_command(self, verb: str, name: str, *, now: bool, reply: Reply) -> None:
        match verb:
            case "start":
                self._start(name, reply)
            case "stop":
                self._stop(name, reply)
            case "restart" | "reload-or-restart":
                unit = self._units.get(name)
                if unit and unit.pid:
                    unit.start_again = True
                    self._stop(name, reply)
                else:
                    self._start(name, reply)
            case "enable" | "disable":
                self._set_enabled(name, enabled=verb == "enable", now=now, reply=reply)
            case "is-active" | "status":
                state = self._units[name].state() if name in self._units else "inactive"
                reply(0 if state == "active" else _NOT_RUNNING, f"{state}\n")
            case "is-enabled":
                enabled = any(_UNIT_FOLDERS[0].glob(f"*.wants/{name}"))
                reply(0 if enabled else 1, "enabled\n" if enabled else "disabled\n")
            case _:
                reply(1, f"the stand-in does not know {verb!r}\n")

    def reaped(self, pid: int, code: int) -> None:
        """Takes note that process ``pid`` ended with ``code`` (negative: by that signal)."""
        for name, unit in self._units.items():
            if unit.pid == pid:
                unit.pid = 0
                unit.kill_at = None
                self._ended(name, unit, code)
                return

    def next_due(self) -> float | None:
        """When ``tick`` has something to do, monotonic seconds; ``None``: nothing is planned."""
        due = [
            moment
            for unit in self._units.values()
            for moment in (unit.restart_at, unit.kill_at)
            if moment is not None
        ]
        return min(due, default=None)

    def tick(self) -> None:
        """Does what is due: restarts, and the end of those that do not stop."""
        now = time.monotonic()
        for name, unit in list(self._units.items()):
            if unit.restart_at is not None and unit.restart_at <= now:
                unit.restart_at = None
                self._launch(name, unit)
            if unit.kill_at is not None and unit.kill_at <= now:
                unit.kill_at = None
                _signal(unit.pid, signal.SIGKILL)

    def _start(self, name: str, reply: Reply) -> None:
        unit = self._units.get(name)
        if unit and unit.pid:
            reply(0, "")
            return
        path = _find(name)
        if path is None:
            reply(_NOT_FOUND, f"Unit {name} not found.\n")
            return
        try:
            service = units.parse_service(path.read_text())
        except (units.UnitError, UnicodeDecodeError, OSError) as error:
            reply(1, f"{error}\n")
            return
        if unit is None:
            unit = self._units[name] = _Unit(service=service)
        unit.service, unit.failed, unit.stopping, unit.restart_at = service, False, False, None
        unit.replies.append(reply)
        self._launch(name, unit)

    def _launch(self, name: str, unit: _Unit) -> None:
        now = time.monotonic()
        burst = len(unit.starts) == _START_LIMIT
        if burst and now - unit.starts[0] < _START_LIMIT_WINDOW_S:
            unit.failed = True
            unit.answer(1, f"{name} was started too often.\n")
            return
        unit.starts.append(now)
        try:
            environment = _environment(unit.service)
        except OSError as error:
            unit.failed = True
            unit.answer(1, f"cannot read the environment of {name}: {error.strerror}\n")
            return
        unit.pid = _spawn(name, unit.service, environment)
        if not unit.service.oneshot:
            unit.answer(0)

    def _stop(self, name: str, reply: Reply) -> None:
        unit = self._units.get(name)
        if unit is None or not unit.pid:
            if unit is not None:
                unit.restart_at = None
            reply(0, "")
            return
        unit.stopping = True
        unit.replies.append(reply)
        unit.kill_at = time.monotonic() + _STOP_TIMEOUT_S
        _signal(unit.pid, signal.SIGTERM)

    def _ended(self, name: str, unit: _Unit, code: int) -> None:
        if unit.start_again:
            unit.start_again = unit.stopping = False
            self._launch(name, unit)
            return
        wanted = unit.service.restart
        again = wanted is units.Restart.ALWAYS or (wanted is units.Restart.ON_FAILURE and code != 0)
        unit.failed = code != 0 and not unit.stopping
        if again and not unit.stopping:
            unit.restart_at = time.monotonic() + unit.service.restart_delay_s
        unit.answer(0 if unit.stopping or code == 0 else 1)
        unit.stopping = False

    def _set_enabled(self, name: str, *, enabled: bool, now: bool, reply: Reply) -> None:
        path = _find(name)
        if path is None:
            reply(_NOT_FOUND, f"Unit {name} not found.\n")
            return
        try:
            targets = units.parse_service(path.read_text()).wanted_by
        except units.UnitError as error:
            reply(1, f"{error}\n")
            return
        for target in targets:
            link = _UNIT_FOLDERS[0] / f"{target}.wants" / name
            link.unlink(missing_ok=True)
            if enabled:
                link.parent.mkdir(exist_ok=True)
                link.symlink_to(path)
        if now:
            self._start(name, reply) if enabled else self._stop(name, reply)
        else:
            reply(0, "")


def _full_name(name: str) -> str:
    return name if "." in name else f"{name}.service"


def _find(name: str) -> Path | None:
    if "/" in name:
        return None
    candidates = (folder / name for folder in _UNIT_FOLDERS)
    return next((path for path in candidates if path.is_file()), None)


def _signal(pid: int, number: signal.Signals) -> None:
    if pid:
        try:
            os.killpg(pid, number)
        except ProcessLookupError:
            # Ended between the decision and the signal; the reaper takes note of it.
            return


def _environment(service: units.Service) -> dict[str, str]:
    found = {"PATH": SEARCH_PATH, "LANG": "C.UTF-8", **service.environment}
    for file in service.environment_files:
        try:
            found |= units.parse_environment_file(Path(file.path).read_text())
        except FileNotFoundError:
            if not file.optional:
                raise
    return found


def _spawn(name: str, service: units.Service, environment: dict[str, str]) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        log = os.open(f"/var/log/{name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.chdir(service.working_directory)
        words = units.substitute(service.exec_start, environment)
        os.execvpe(words[0], words, environment)  # noqa: S606 - as systemd, without a shell
    finally:
        os._exit(_CANNOT_EXEC)
