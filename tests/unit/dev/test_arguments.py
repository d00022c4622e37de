"""`--help` of every command of this repository says what it is for, and starts nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[3]
TIMEOUT_S: Final = 30.0
STARTED_BY_ANOTHER: Final = {"dev.launch", "dev.cloud.guest", "dev.agent.plexd"}
"""Programs that another one starts with arguments of its own."""


def commands() -> list[str]:
    """Return the modules of `dev` that are commands, and what writes the goldens."""
    files = [
        path
        for path in ROOT.glob("dev/**/*.py")
        if 'if __name__ == "__main__":' in path.read_text(encoding="utf-8")
    ]
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in files]
    found = {name.removesuffix(".__main__") for name in names}
    return sorted(
        {name for name in found if not any(name.startswith(other) for other in STARTED_BY_ANOTHER)}
        | {"tests.golden.regenerate"}
    )


@pytest.mark.parametrize("command", commands())
def test_help_says_what_a_command_is_for(command: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", command, "--help"],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        cwd=ROOT,
        env={"PATH": "", "HOME": str(tmp_path)},
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.lower().startswith("usage:")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["dev.demo", "dev.remove", "dev.down"])
def test_an_argument_that_it_does_not_take_is_refused(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", command, "now"],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        cwd=ROOT,
    )

    assert done.returncode == 2
    assert "unrecognized arguments: now" in done.stderr
