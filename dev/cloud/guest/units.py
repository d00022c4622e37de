"""Reads systemd service units: the small part that enrolment documents use.

Pure: text in, values out. What a directive means to a running service is ``guest.supervisor``'s
business; directives not listed here are ignored, as systemd ignores those it does not know.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

_SECONDS_PER_UNIT = {
    "us": 1e-6,
    "ms": 1e-3,
    "": 1.0,
    "s": 1.0,
    "sec": 1.0,
    "min": 60.0,
    "m": 60.0,
    "h": 3600.0,
}
_TIME_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)")
_VARIABLE = re.compile(r"\$\{(\w+)\}|\$(\w+)")
# systemd's own default, `systemd.service(5)`.
_DEFAULT_RESTART_DELAY_S = 0.1


class UnitError(ValueError):
    """A unit file cannot be used; the text names the directive, never a value."""

    def __init__(self, detail: str) -> None:
        super().__init__(f"cannot read unit: {detail}")


class Restart(StrEnum):
    """When a service that ended is started again."""

    NO = "no"
    ALWAYS = "always"
    ON_FAILURE = "on-failure"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentFile:
    """One ``EnvironmentFile=``; an ``optional`` one may be missing."""

    path: str
    optional: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A simple or oneshot service.

    Attributes:
        exec_start: Program and arguments, variables not yet substituted.
        environment: From ``Environment=``.
        environment_files: Read at each start, later ones win, all win over ``environment``.
        restart_delay_s: Pause before a restart, in seconds.
        oneshot: Whether ``start`` waits for the end.
        wanted_by: Targets of ``[Install]``; empty: the unit cannot be enabled.
    """

    exec_start: tuple[str, ...]
    environment: Mapping[str, str]
    environment_files: tuple[EnvironmentFile, ...]
    working_directory: str
    restart: Restart
    restart_delay_s: float
    oneshot: bool
    wanted_by: tuple[str, ...]


def parse_service(text: str) -> Service:
    """Reads a service unit.

    Raises:
        UnitError: without ``ExecStart``, or with a directive whose value has no meaning here.

    Source: ``systemd.service(5)``, ``systemd.exec(5)``.
    """
    directives = _directives(text)
    commands = directives.get("Service.ExecStart", [])
    if len(commands) != 1:
        detail = "[Service] ExecStart must stand there exactly once"
        raise UnitError(detail)
    kind = _last(directives, "Service.Type", "simple")
    if kind == "forking":
        detail = "[Service] Type=forking is not simulated"
        raise UnitError(detail)
    return Service(
        exec_start=tuple(_split(commands[0].lstrip("-@+!:"), "ExecStart")),
        environment=_environment(directives.get("Service.Environment", [])),
        environment_files=tuple(
            EnvironmentFile(path=value.removeprefix("-"), optional=value.startswith("-"))
            for value in directives.get("Service.EnvironmentFile", [])
        ),
        working_directory=_last(directives, "Service.WorkingDirectory", "/").removeprefix("-"),
        restart=_restart(_last(directives, "Service.Restart", "no")),
        restart_delay_s=_restart_delay(directives),
        oneshot=kind == "oneshot",
        wanted_by=tuple(
            word for value in directives.get("Install.WantedBy", []) for word in value.split()
        ),
    )


def parse_environment_file(text: str) -> dict[str, str]:
    """Reads assignments as ``EnvironmentFile=`` does: one a line, quotes taken off.

    Total: lines without an assignment are ignored.
    """
    found: dict[str, str] = {}
    for raw in text.splitlines():
        line = raw.strip()
        name, separator, value = line.partition("=")
        if not separator or line[0] in "#;" or not name.strip().isidentifier():
            continue
        value = value.strip()
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        found[name.strip()] = value
    return found


def substitute(command: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Fills variables into the arguments; an unset one becomes empty.

    A bare ``$NAME`` argument is split into words, ``${NAME}`` never is.
    """
    words: list[str] = []
    for word in command:
        bare = re.fullmatch(r"\$(\w+)", word)
        if bare:
            words.extend(environment.get(bare.group(1), "").split())
            continue
        filled = _VARIABLE.sub(lambda hit: environment.get(hit.group(1) or hit.group(2), ""), word)
        words.append(filled.replace("%%", "%"))
    return words


def _directives(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    section = ""
    for raw in text.replace("\\\n", " ").splitlines():
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
            continue
        name, separator, value = line.partition("=")
        if not separator:
            continue
        key = f"{section}.{name.strip()}"
        if value.strip():
            found.setdefault(key, []).append(value.strip())
        else:
            # An empty assignment resets the list, `systemd.syntax(7)`.
            found.pop(key, None)
    return found


def _last(directives: Mapping[str, Sequence[str]], key: str, default: str) -> str:
    values = directives.get(key, ())
    return values[-1] if values else default


def _split(value: str, directive: str) -> list[str]:
    try:
        return shlex.split(value)
    except ValueError:
        detail = f"{directive} has a quote that is not closed"
        raise UnitError(detail) from None


def _environment(values: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for value in values:
        for word in _split(value, "Environment"):
            name, separator, content = word.partition("=")
            if separator:
                found[name] = content
    return found


def _restart(value: str) -> Restart:
    try:
        return Restart(value)
    except ValueError:
        detail = "[Service] Restart must be no, always or on-failure"
        raise UnitError(detail) from None


def _restart_delay(directives: Mapping[str, Sequence[str]]) -> float:
    values = directives.get("Service.RestartSec", ())
    if not values:
        return _DEFAULT_RESTART_DELAY_S
    total = 0.0
    rest = _TIME_PART.sub("", values[-1]).strip()
    for amount, unit in _TIME_PART.findall(values[-1]):
        if unit not in _SECONDS_PER_UNIT:
            rest = unit
            break
        total += float(amount) * _SECONDS_PER_UNIT[unit]
    if rest:
        detail = "[Service] RestartSec is not a time span"
        raise UnitError(detail)
    return total
