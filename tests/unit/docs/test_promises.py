"""The page of promises: all nine, each with tests that are there."""

from __future__ import annotations

import re
from typing import Final

import pytest

from tests.unit.docs.pages import exists, named, page

TEXT: Final = page("promises.md")
PROMISES: Final = re.findall(r"^## (\d)\. .+?\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE)
TESTS_MIN: Final = 4
"""What holds only as one test sees it is no promise."""


def test_there_are_nine() -> None:
    assert [number for number, _ in PROMISES] == [str(number) for number in range(1, 10)]


@pytest.mark.parametrize(("number", "text"), PROMISES, ids=lambda part: part[:1])
def test_a_promise_names_tests_that_are_there(number: str, text: str) -> None:
    tests = named(text)

    assert len(set(tests)) == len(tests) >= TESTS_MIN
    assert [test for test in tests if not exists(test)] == []


def test_what_holds_for_all_is_there_too() -> None:
    before, _, _ = TEXT.partition("\n## ")

    assert named(before)
    assert [test for test in named(before) if not exists(test)] == []
