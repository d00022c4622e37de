"""The release of function-pythonic that is compared, in an environment of its own.

Installing the current release from its lock where Python has one, else the old one that the
demo pins. Source: issue "Speed": the comparison counts on Python 3.12 and later, because
the current release needs that.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import venv
from pathlib import Path
from typing import Final

from dev import process
from dev import pythonic as demo
from dev.toolchain import Report, cache_dir, locked

COUNTS_FROM: Final = (3, 12)
"""The oldest Python that the current release installs on."""

LOCK: Final = Path(__file__).with_name("pythonic.txt")

_PROBE: Final = "import importlib.metadata as m; print(m.version('crossplane-function-pythonic'))"
_PROBE_TIMEOUT_S: Final = 30
"""One import on a busy core."""


def counts() -> bool:
    """Whether this Python runs the current release."""
    return sys.version_info >= COUNTS_FROM


def ensure(*, report: Report) -> Path:
    """Return the program, installed once per lock and interpreter.

    Raises:
        ProcessError: It could not be installed.
    """
    if not counts():
        return demo.ensure(report=report)
    key = hashlib.sha256(LOCK.read_bytes() + sys.version.encode()).hexdigest()[:16]
    target = cache_dir() / "pythonic" / f"bench-{key}"
    with locked("pythonic"):
        if not (target / "ready").exists():
            report("installing function-pythonic")
            _install(target)
    return target / "bin" / "function-pythonic"


def version(program: Path) -> str:
    """Return the release of an installed program."""
    done = subprocess.run(
        [str(program.with_name("python")), "-c", _PROBE],
        capture_output=True,
        text=True,
        timeout=_PROBE_TIMEOUT_S,
        check=True,
    )
    return done.stdout.strip()


def _install(target: Path) -> None:
    # A virtual environment knows its own path, so it is made in place and marked when done.
    venv.create(target, with_pip=True, clear=True)
    command = [
        str(target / "bin" / "python"), "-m", "pip", "install", "--quiet",
        "--require-hashes", "--requirement", str(LOCK),
    ]  # fmt: skip
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=demo.INSTALL_TIMEOUT_S, check=False
    )
    if done.returncode != 0:
        message = f"cannot install function-pythonic: {done.stderr[-2000:]}"
        raise process.ProcessError(message)
    (target / "ready").touch()
