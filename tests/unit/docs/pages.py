"""Reading which tests a page of `docs` names, and whether they are there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
TESTS: Final = ROOT / "tests"

_NAMED: Final = re.compile(r"`([a-z0-9_/]+\.py::[A-Za-z0-9_]+)`")


def page(name: str) -> str:
    """Return a page's text."""
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def rows(text: str) -> list[list[str]]:
    """Return the cells of all tables whose first column is a number."""
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| ")
    ]
    return [row for row in cells if row[0].isdecimal()]


def named(text: str) -> list[str]:
    """Return the tests that a text names, as paths below `tests` with a function each."""
    return _NAMED.findall(text)


def exists(test: str) -> bool:
    """Tell whether there is such a test."""
    path, _, function = test.partition("::")
    return function in _functions(TESTS / path)


@cache
def _functions(path: Path) -> frozenset[str]:
    if not path.is_file():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    return frozenset(
        node.name
        for node in ast.walk(tree)
        if isinstance(node, functions) and node.name.startswith("test_")
    )
