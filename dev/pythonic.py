"""The third-party function of the demo's blueprint, in an environment of its own.

Installing function-pythonic from its lock. Its pinned SDK is older than ours, which is why
it cannot share our environment. `dev.stack` imports it; `python -m dev.pythonic` installs
it.
"""

import hashlib
import subprocess
import sys
import venv
from pathlib import Path

from dev import arguments
from dev.process import ProcessError
from dev.toolchain import Report, cache_dir, locked

LOCK = Path(__file__).parents[1] / "requirements" / "pythonic.txt"
FUNCTION_NAME = "crossplane-contrib-function-pythonic"
"""What dependency resolution calls it; Compositions use this name."""

INSTALL_TIMEOUT_S = 600
"""Twenty wheels; a slow line needs minutes."""


def ensure(*, report: Report) -> Path:
    """Return the program, installed once per lock and interpreter.

    Raises:
        ProcessError: It could not be installed.
    """
    version = ".".join(str(part) for part in sys.version_info[:3])
    key = hashlib.sha256(LOCK.read_bytes() + version.encode()).hexdigest()[:16]
    target = cache_dir() / "pythonic" / key
    with locked("pythonic"):
        if not (target / "ready").exists():
            report("installing function-pythonic")
            _install(target)
    return target / "bin" / "function-pythonic"


def _install(target: Path) -> None:
    # A virtual environment knows its own path, so it is made in place and marked when done.
    venv.create(target, with_pip=True, clear=True)
    command = [
        str(target / "bin" / "python"), "-m", "pip", "install", "--quiet",
        "--require-hashes", "--requirement", str(LOCK),
    ]  # fmt: skip
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False
    )
    if done.returncode != 0:
        message = f"cannot install function-pythonic: {done.stderr[-2000:]}"
        raise ProcessError(message)
    (target / "ready").touch()


if __name__ == "__main__":
    arguments.none("dev.pythonic", __doc__)
    print(ensure(report=print))
