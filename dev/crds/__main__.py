"""`python -m dev.crds [--check]`: writes what is generated, or tells whether it drifted.

Files and exit status.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from dev.crds import inputs, manifest
from dev.crds.kinds import KINDS

_ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = _ROOT / "deploy" / "crds"
INPUT_FOLDER: Final = _ROOT / "package" / "input"

KIND_FILES: Final[Mapping[str, str]] = {
    manifest.file_name(kind): manifest.text(kind) for kind in KINDS
}
INPUT_FILES: Final[Mapping[str, str]] = {
    inputs.file_name(each): inputs.text(each) for each in inputs.INPUTS
}
"""What each folder must hold, by file name."""


def drifted(folder: Path, wanted: Mapping[str, str] = KIND_FILES) -> list[str]:
    """Name the files of a folder that differ from the models, in name order.

    Files that no model stands for count as drift too.
    """
    found = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.yaml")}
    return sorted(name for name in {**wanted, **found} if wanted.get(name) != found.get(name))


def write(folder: Path, wanted: Mapping[str, str] = KIND_FILES) -> None:
    """Write every file into a folder and remove what no model stands for.

    Idempotency: a second call writes the same bytes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.yaml"):
        if path.name not in wanted:
            path.unlink()
    for name, content in wanted.items():
        (folder / name).write_text(content, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m dev.crds", description="Generate the CRDs.")
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 on drift")
    arguments = parser.parse_args()
    stale: list[Path] = []
    for folder, wanted in ((FOLDER, KIND_FILES), (INPUT_FOLDER, INPUT_FILES)):
        if arguments.check:
            stale += [folder / name for name in drifted(folder, wanted)]
        else:
            write(folder, wanted)
    for path in stale:
        print(f"{path.relative_to(_ROOT)} differs from the models: run python -m dev.crds")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
