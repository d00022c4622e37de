"""No parametrised test passes by not looking: what it leaves out, its parameters leave out."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

TESTS: Final = Path(__file__).parents[1]

HOLLOW: Final = """
@pytest.mark.parametrize("number", range(9))
def test_some(number):
    half = number / 2
    if number > 4:
        assert half > 2
"""
WHOLE: Final = HOLLOW.replace("    if number > 4:\n    ", "")


def _parametrised(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            marks = {ast.unparse(each).partition("(")[0] for each in node.decorator_list}
            if node.name.startswith("test_") and "pytest.mark.parametrize" in marks:
                yield node


def _asserts(nodes: list[ast.stmt]) -> bool:
    return any(isinstance(each, ast.Assert) for node in nodes for each in ast.walk(node))


def hollow(source: str) -> list[str]:
    """Name the parametrised tests whose every assertion depends on a condition of theirs.

    One that asserts nothing itself leaves it to what it calls, or to `pytest.raises`.
    """
    return [
        test.name
        for test in _parametrised(ast.parse(source))
        if _asserts(test.body)
        and not _asserts([node for node in test.body if not _is_partial(node)])
        and "pytest.raises" not in ast.unparse(test)
    ]


def _is_partial(node: ast.stmt) -> bool:
    """Tell whether a statement is a condition of which one arm asserts nothing."""
    return isinstance(node, ast.If) and not (_asserts(node.body) and _asserts(node.orelse))


@pytest.mark.parametrize(("source", "found"), [(HOLLOW, ["test_some"]), (WHOLE, [])])
def test_one_that_asserts_under_a_condition_alone_is_seen(source: str, found: list[str]) -> None:
    assert hollow(source) == found


def test_every_parametrised_test_asserts_whatever_its_parameters() -> None:
    found = [
        f"{path.relative_to(TESTS)}::{name}"
        for path in sorted(TESTS.rglob("test_*.py"))
        for name in hollow(path.read_text(encoding="utf-8"))
    ]

    assert found == []
