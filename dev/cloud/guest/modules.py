"""Executes a parsed document inside the private root, in cloud-init's order.

``write_files``, ``ca_certs``, deferred ``write_files``, ``runcmd``: the deferred files come before
the user's commands, because cloud-init runs both in its final stage and those commands last. A
fault of one entry is recorded and the rest goes on. Runs in a process of its own below process 1.

Source: cloud-init, ``config/cloud.cfg.tmpl`` and the three modules.
"""

from __future__ import annotations

import grp
import os
import pwd
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dev.cloud.document import CaCerts, Document, File
from dev.cloud.guest.root import SEARCH_PATH

# A demo boot takes seconds; a document that hangs must not hold its machine for ever.
SCRIPT_TIMEOUT_S = 900.0
_TRUST_TIMEOUT_S = 60.0
_TRUST_FOLDER = Path("/usr/local/share/ca-certificates")
_TRUST_CONFIG = Path("/etc/ca-certificates.conf")
_EXIT_CODES = Path("/run/cloud-init/exit-codes")
_TIMED_OUT = 124


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one document.

    Attributes:
        files: How many files were written.
        exit_codes: One per command; ``None``: the script ended before it was reached.
        faults: What failed, naming places and rules, never content.
        exit_code: 0, or the first failure: a command's own code, else 1.
    """

    files: int
    exit_codes: tuple[int | None, ...]
    faults: tuple[str, ...]
    exit_code: int


def execute(document: Document, instance: Path) -> Outcome:
    """Executes ``document``; ``instance`` is cloud-init's folder of this instance.

    Idempotency: none; process 1 sees to it that a document runs once per instance.
    """
    faults = list(document.faults)
    written = _write_all([file for file in document.files if not file.deferred], faults)
    if document.ca_certs is not None:
        _trust(document.ca_certs, faults)
    written += _write_all([file for file in document.files if file.deferred], faults)
    codes = _run(document.commands, instance / "scripts" / "runcmd", faults)
    failed = [1 if code is None else code for code in codes if code != 0]
    return Outcome(
        files=written,
        exit_codes=tuple(codes),
        faults=tuple(faults),
        exit_code=failed[0] if failed else int(bool(faults)),
    )


def script(commands: Sequence[str | tuple[str, ...]]) -> str:
    """Joins the commands into one shell script that notes each exit code.

    One script, as cloud-init makes it, so that a variable set by one command is there in the next.
    """
    lines = ["#!/bin/sh"]
    for command in commands:
        lines.append(command if isinstance(command, str) else shlex.join(command))
        lines.append(f'echo "$?" >> {_EXIT_CODES}')
    return "\n".join(lines) + "\n"


def environment(instance_id: str) -> Mapping[str, str]:
    """The environment of cloud-init's scripts: no ``HOME``, as under systemd."""
    return {"PATH": SEARCH_PATH, "LANG": "C.UTF-8", "INSTANCE_ID": instance_id}


def _write_all(files: Sequence[File], faults: list[str]) -> int:
    written = 0
    for file in files:
        try:
            _write(file)
        except OSError as error:
            faults.append(f"{file.place}: cannot write: {error.strerror}")
        except LookupError:
            faults.append(f"{file.place}: owner is not known")
        else:
            written += 1
    return written


def _write(file: File) -> None:
    path = Path(file.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if file.append else os.O_TRUNC)
    # Closed until the mode is set: the content may be a token.
    with os.fdopen(os.open(path, flags, 0o600), "wb") as stream:
        stream.write(file.content)
        os.fchmod(stream.fileno(), file.mode)
    user, _, group = file.owner.partition(":")
    # Changing the owner takes setuid and setgid bits away.
    os.chown(path, _user_id(user), _group_id(group))
    path.chmod(file.mode)


def _user_id(name: str) -> int:
    return int(name) if name.isdigit() else pwd.getpwnam(name).pw_uid


def _group_id(name: str) -> int:
    """Answers a group's id; an empty name keeps the group, which ``chown`` writes as -1."""
    if not name:
        return -1
    return int(name) if name.isdigit() else grp.getgrnam(name).gr_gid


def _trust(ca_certs: CaCerts, faults: list[str]) -> None:
    try:
        if ca_certs.remove_defaults and _TRUST_CONFIG.exists():
            lines = _TRUST_CONFIG.read_text().splitlines()
            kept = [line if line.startswith(("#", "!")) else f"!{line}" for line in lines if line]
            _TRUST_CONFIG.write_text("\n".join(kept) + "\n")
        for index, certificate in enumerate(ca_certs.trusted, start=1):
            target = _TRUST_FOLDER / f"cloud-init-ca-cert-{index}.crt"
            target.write_text(certificate.rstrip("\n") + "\n")
        done = subprocess.run(
            ["update-ca-certificates"],
            env=environment(""),
            stdin=subprocess.DEVNULL,
            timeout=_TRUST_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        faults.append(f"ca_certs: cannot update the trust store: {type(error).__name__}")
        return
    if done.returncode != 0:
        faults.append(f"ca_certs: update-ca-certificates ended with {done.returncode}")


def _run(
    commands: Sequence[str | tuple[str, ...]], path: Path, faults: list[str]
) -> list[int | None]:
    if not commands:
        return []
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o700), "w") as stream:
        stream.write(script(commands))
    _EXIT_CODES.parent.mkdir(parents=True, exist_ok=True)
    _EXIT_CODES.write_text("")
    ended_with = _run_script(path)
    codes: list[int | None] = [int(line) for line in _EXIT_CODES.read_text().split()]
    codes = codes[: len(commands)]
    missing = len(commands) - len(codes)
    if missing:
        faults.append(f"runcmd[{len(codes)}]: ended the script with {ended_with}")
        codes += [ended_with or 1, *[None] * (missing - 1)]
    return codes


def _run_script(path: Path) -> int:
    with subprocess.Popen(
        ["/bin/sh", str(path)],
        env=environment(path.parent.parent.name),
        cwd="/",
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            return process.wait(SCRIPT_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            return _TIMED_OUT
