"""Which program is taken for the version before, in clones that are small."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from dev import version_before
from dev.process import ProcessError
from dev.version_before import FIRST, VERSIONS

GIT = shutil.which("git")

pytestmark = pytest.mark.skipif(GIT is None, reason="there is no git")


def _git(clone: Path, *words: str) -> str:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    answer = subprocess.run(
        [str(GIT), "-C", str(clone), *who, *words], capture_output=True, text=True, check=True
    )
    return answer.stdout.strip()


def _revise(clone: Path, revision: str) -> None:
    (clone / VERSIONS / f"m{revision}_step.py").write_text(f"{revision}\n", encoding="utf-8")


def _commit(clone: Path) -> str:
    _git(clone, "add", ".")
    _git(clone, "commit", "--quiet", "--message", "a step")
    return _git(clone, "rev-parse", "HEAD")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Make a clone whose one commit has the first revision."""
    clone = tmp_path / "clone"
    (clone / VERSIONS).mkdir(parents=True)
    (clone / "function").mkdir()
    (clone / "function" / "empty.py").touch()
    _git(clone, "init", "--quiet")
    _revise(clone, FIRST)
    _commit(clone)
    return clone


def _before(clone: Path, tmp_path: Path) -> str:
    return version_before.unpack(clone, tmp_path / "before").revision


def test_the_first_revision_has_its_own_program(clone: Path, tmp_path: Path) -> None:
    assert version_before.unpack(clone, tmp_path / "before").folder == clone


def test_a_revision_in_no_commit_is_met_by_the_last_commits_program(
    clone: Path, tmp_path: Path
) -> None:
    _revise(clone, "0029")

    assert _before(clone, tmp_path) == FIRST


def test_a_revision_is_met_by_the_program_of_before_it(clone: Path, tmp_path: Path) -> None:
    _revise(clone, "0029")
    _commit(clone)
    (clone / "function" / "later.py").touch()
    _commit(clone)

    assert _before(clone, tmp_path) == FIRST
    assert not (tmp_path / "before" / "function" / "later.py").exists()


def test_the_newest_of_several_revisions_counts(clone: Path, tmp_path: Path) -> None:
    for revision in ("0029", "0030"):
        _revise(clone, revision)
        _commit(clone)

    assert _before(clone, tmp_path) == "0029"


def test_a_release_is_the_version_before(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(version_before, "RELEASE", _git(clone, "rev-parse", "HEAD"))
    for revision in ("0029", "0030"):
        _revise(clone, revision)
        _commit(clone)

    assert _before(clone, tmp_path) == FIRST


def test_a_clone_without_the_commit_says_so(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(version_before, "RELEASE", "0" * 40)

    with pytest.raises(ProcessError, match="cannot take the version before"):
        _before(clone, tmp_path)
