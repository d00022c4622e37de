"""SECURITY.md names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
NAMED = sorted(
    set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "SECURITY.md").read_text("utf-8")))
)


def test_it_names_tests() -> None:
    assert len(NAMED) > 20


@pytest.mark.parametrize(("path", "name"), NAMED, ids=lambda value: value.rpartition("/")[2])
def test_a_named_test_exists(path: str, name: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")

    assert re.search(rf"^\s*(async )?def {name}\(", text, re.MULTILINE)
