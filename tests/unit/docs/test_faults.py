"""The page of faults: every number of the catalogue, each with tests that are there, or why not."""

from __future__ import annotations

import re
from typing import Final

import pytest

from tests.unit.docs.pages import TESTS, exists, named, page, rows

FAULTS: Final = 67
ROWS: Final = rows(page("faults.md"))

_NUMBERED: Final = re.compile(r"def (test_(?:f\d\d_)+\w+)")


def test_every_number_of_the_catalogue_is_there_once_and_in_order() -> None:
    assert [int(row[0]) for row in ROWS] == list(range(1, FAULTS + 1))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_fault_names_tests_that_are_there_or_says_why_none_is(row: list[str]) -> None:
    _, fault, where = row

    assert fault
    assert named(where) or re.search(r"Not tested: \w{2,}", where)
    assert [test for test in named(where) if not exists(test)] == []
    assert "@" not in where


def test_a_test_that_bears_a_number_stands_at_that_number() -> None:
    told = {int(row[0]): named(row[2]) for row in ROWS}
    lost = [
        f"{path.relative_to(TESTS)}::{test} at {number}"
        for path in sorted((TESTS / "faults").rglob("test_*.py"))
        for test in _NUMBERED.findall(path.read_text(encoding="utf-8"))
        for number in map(int, re.findall(r"f(\d\d)_", test))
        if f"{path.relative_to(TESTS)}::{test}" not in told[number]
        and "cover_every_effect" not in test
    ]

    assert lost == []
