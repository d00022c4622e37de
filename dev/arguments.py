"""Refuses arguments where a command takes none, and answers `--help` without starting anything."""

from __future__ import annotations

import argparse


def none(command: str, purpose: str | None) -> None:
    """Return when no argument was given.

    Args:
        command: The module, as after `python -m`.
        purpose: What it does, for `--help`.

    Raises:
        SystemExit: 0 after `--help`, 2 at any other argument.
    """
    argparse.ArgumentParser(prog=f"python -m {command}", description=purpose).parse_args()
