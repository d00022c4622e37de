"""Whatever stands in a file, the judgement is findings and never an error."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from reconciler.catalog.blueprint import Source, judge
from tests.unit.reconciler.domain.catalog import given

ODD: list[Any] = [None, 1.5, "x\nforged: line", [{}], {"a": []}]
KINDS = {
    "metadata.json": given.metadata,
    "xrd.yaml": given.definition,
    "composition.yaml": given.composition,
}


def spots(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every path of a value, its root excepted."""
    children: Any = ()
    if isinstance(value, dict):
        children = value.items()
    elif isinstance(value, list):
        children = enumerate(value)
    for key, child in children:
        yield (*path, key)
        yield from spots(child, (*path, key))


def changed(value: Any, path: tuple[Any, ...], odd: Any) -> Any:
    made = copy.deepcopy(value)
    target = made
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = copy.deepcopy(odd)
    return made


@pytest.mark.parametrize(("name", "make"), KINDS.items())
def test_any_odd_value_anywhere_is_judged(name: str, make: Callable[[], Any]) -> None:
    good = make()
    printed = json.dumps if name.endswith(".json") else yaml.safe_dump
    whole = given.source()

    for path in spots(good):
        for odd in ODD:
            files = {**whole.files, name: printed(changed(good, path, odd)).encode()}
            judgement = judge(Source(slug=whole.slug, folder=whole.folder, files=files))

            wrong = any(not each.advisory for each in judgement.findings)
            assert (judgement.manifest is None) == wrong, (path, odd)
            assert not any("\n" in str(each) for each in judgement.findings)
