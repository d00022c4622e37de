"""`python -m dev.crds [--check]`: writes `deploy/crds`, or tells whether it drifted.

Belongs here: files and exit status. Not here: what the files say.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from dev.crds.kinds import KINDS
from dev.crds.manifest import file_name, text

FOLDER: Final = Path(__file__).resolve().parents[2] / "deploy" / "crds"


def drifted(folder: Path) -> list[str]:
    """Name the files of a folder that differ from the models, in name order.

    Files that no kind stands for count as drift too.
    """
    wanted = {file_name(kind): text(kind) for kind in KINDS}
    found = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.yaml")}
    return sorted(name for name in wanted | found if wanted.get(name) != found.get(name))


def write(folder: Path) -> None:
    """Write every kind's manifest into a folder and remove what no kind stands for.

    Idempotency: a second call writes the same bytes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {file_name(kind): text(kind) for kind in KINDS}
    for path in folder.glob("*.yaml"):
        if path.name not in wanted:
            path.unlink()
    for name, content in wanted.items():
        (folder / name).write_text(content, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m dev.crds", description="Generate the CRDs.")
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 on drift")
    arguments = parser.parse_args()
    if not arguments.check:
        write(FOLDER)
        return 0
    stale = drifted(FOLDER)
    for name in stale:
        print(f"deploy/crds/{name} differs from the models: run python -m dev.crds")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
