"""The function's answers are those a reviewer approved."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden import cases

CASES = cases.every()


def test_there_are_cases() -> None:
    assert len(CASES) >= 15


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_answer_is_the_approved_one(case: Path) -> None:
    approved = (case / cases.RESPONSE).read_text()

    assert cases.response(case) == approved, "python -m tests.golden.regenerate, then review"
