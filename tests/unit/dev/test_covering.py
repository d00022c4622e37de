"""One traced run tells which test runs which line, and what runs at import is nobody's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dev import covering
from dev.covering import Covered

CODE = """AT_IMPORT = 1


def small(number):
    return number < AT_IMPORT


def large(number):
    return number > AT_IMPORT
"""
TESTS = """import pytest
from function.sizes import large, small


@pytest.mark.parametrize("number", [0, -1])
def test_small(number):
    assert small(number)


class TestLarge:
    def test_it_is(self):
        assert large(2)
"""


@pytest.fixture
def covered(tmp_path: Path) -> Covered:
    for path, text in {
        "function/__init__.py": "",
        "function/sizes.py": CODE,
        "reconciler/__init__.py": "",
        "tests/test_sizes.py": TESTS,
    }.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    root = str(Path(covering.__file__).parents[1])
    given = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{root}", covering.FOLDER: str(tmp_path)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "dev.covering", "-p", "no:xdist"]
    done = subprocess.run(
        [*command, f"--rootdir={tmp_path}", "tests"], cwd=tmp_path, env={**os.environ, **given},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return covering.seen(tmp_path, tmp_path)


def test_a_line_is_of_the_tests_that_run_it_whatever_their_parameters(covered: Covered) -> None:
    assert covered.of("function/sizes.py", range(5, 6)) == ["tests/test_sizes.py::test_small"]
    assert covered.of("function/sizes.py", range(9, 10)) == [
        "tests/test_sizes.py::TestLarge::test_it_is"
    ]


def test_what_runs_at_import_is_of_no_test_and_its_module_of_both(covered: Covered) -> None:
    assert covered.of("function/sizes.py", range(1, 2)) == []
    assert len(covered.of_modules(["function/sizes.py"])) == 2
