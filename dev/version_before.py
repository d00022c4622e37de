"""The program of the version before, out of git, to be run on this version's schema.

The version before is the last release. While nothing is released, the program of before the
newest revision stands in for it, so that each revision after the first is met by a program that
does not know it.
"""

import io
import re
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dev.process import ProcessError

RELEASE: Final[str | None] = None
"""The last release's commit; each release sets it anew (docs/operations/upgrade.md)."""
FIRST: Final = "0028"
"""The first revision whose program can be older than its schema."""
VERSIONS: Final = "reconciler/adapters/postgres/migrations/versions"
GIT_TIMEOUT_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionBefore:
    """A program that is older than this one.

    Attributes:
        folder: Has its packages, for PYTHONPATH.
        revision: The newest that it knows.
    """

    folder: Path
    revision: str


def unpack(root: Path, folder: Path) -> VersionBefore:
    """Unpack the version before that of a clone; at the first revision, answer the clone itself.

    No program of before the first revision works on its schema. With this version's own the way
    of running two programs side by side stays tried until there is an older one.

    Args:
        root: The clone, whose working tree is this version.
        folder: Where to; it is empty.

    Raises:
        ProcessError: There is no git, or the clone does not have the commit.
    """
    newest = _newest(root)
    if RELEASE is None and _revision(newest) == FIRST:
        return VersionBefore(folder=root, revision=FIRST)
    commit = RELEASE or _commit_before(root, newest)
    archive = _git(root, "archive", "--format=tar", commit, "function", "reconciler")
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    return VersionBefore(folder=folder, revision=_revision(_newest(folder)))


def _commit_before(root: Path, revision: Path) -> str:
    path = f"{VERSIONS}/{revision.name}"
    added = _git(root, "log", "-1", "--diff-filter=A", "--format=%H", "--", path).decode().strip()
    # What is not committed yet comes after the last commit.
    return f"{added}^" if added else "HEAD"


def _newest(tree: Path) -> Path:
    return max((tree / VERSIONS).glob("m[0-9]*.py"))


def _revision(file: Path) -> str:
    return re.sub(r"\D.*", "", file.name[1:])


def _git(root: Path, *words: str) -> bytes:
    git = shutil.which("git")
    if git is None:
        message = "there is no git to take the version before from"
        raise ProcessError(message)
    answer = subprocess.run(
        [git, "-C", str(root), *words], capture_output=True, timeout=GIT_TIMEOUT_S, check=False
    )
    if answer.returncode != 0:
        message = f"cannot take the version before: {answer.stderr.decode().strip()}"
        raise ProcessError(message)
    return answer.stdout
