"""What is handed around cannot be changed on the way."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]

GROWING: Final = {
    "reconciler/adapters/http/rate_limit.py",
    "reconciler/app/registration/registration.py",
    "reconciler/app/queue/work_queue.py",
    "reconciler/catalog/blueprint.py",
    "reconciler/catalog/findings.py",
}
"""Modules with a class that collects something; nobody else is given it before it is whole."""

NAMELESS: Final = {
    "reconciler/adapters/http/rate_limit.py",
    "reconciler/app/queue/work_queue.py",
    "reconciler/domain/diagnosis/remedies.py",
    "reconciler/domain/identity/peers.py",
}
"""Modules with a class of few fields that are told by their place."""


def _data_classes() -> Iterator[tuple[str, dict[str, bool]]]:
    for package in ("function", "reconciler"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    yield from (
                        (f"{path.relative_to(ROOT)}", options)
                        for options in map(_options, node.decorator_list)
                        if options is not None
                    )


def _options(decorator: ast.expr) -> dict[str, bool] | None:
    if not ast.unparse(decorator).startswith("dataclass"):
        return None
    given = decorator.keywords if isinstance(decorator, ast.Call) else []
    return {str(each.arg): ast.unparse(each.value) == "True" for each in given}


def test_every_data_class_is_slotted_and_names_its_fields() -> None:
    short = [
        path
        for path, options in _data_classes()
        if not options.get("slots") or not (options.get("kw_only") or path in NAMELESS)
    ]

    assert short == []


def test_every_data_class_is_frozen_but_those_that_grow() -> None:
    assert {path for path, options in _data_classes() if not options.get("frozen")} == GROWING
