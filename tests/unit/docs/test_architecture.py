"""The page about the architecture names what is there."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")

HOPS_MAX: Final = 15
"""Hops of one way: what a reader follows without losing the thread."""

WAYS: Final = dict(re.findall(r"^## (One .+?)$(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
HOPS: Final = re.findall(r"`((?:function|reconciler)(?:\.\w+)+)`", PAGE)


def _resolve(name: str) -> object:
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(name)


@pytest.mark.parametrize("name", sorted(set(HOPS)))
def test_each_name_is_in_the_code(name: str) -> None:
    assert _resolve(name) is not None


def test_there_are_four_ways() -> None:
    assert len(WAYS) == 4


@pytest.mark.parametrize("way", sorted(WAYS))
def test_a_way_has_a_picture_and_few_hops(way: str) -> None:
    hops = re.findall(r"^\d+\. `", WAYS[way], re.MULTILINE)

    assert "```mermaid" in WAYS[way]
    assert 0 < len(hops) <= HOPS_MAX


def test_each_folder_of_the_table_is_there() -> None:
    folders = re.findall(r"^\| `([\w/]+)` \|", PAGE, re.MULTILINE)

    assert folders
    assert [each for each in folders if not (ROOT / each).is_dir()] == []
