"""What keeps the house as a newcomer meets it: small rooms, small ports, one name for one thing."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = sorted([*ROOT.glob("function/**/*.py"), *ROOT.glob("reconciler/**/*.py")])

REVISIONS: Final = ROOT / "reconciler" / "adapters" / "postgres" / "migrations" / "versions"
"""The migration tool's own folder, which the room above it describes."""

MODULES_MAX: Final = 12
"""Modules that one folder holds beside its charter: what a reader takes in at one look."""

METHODS_MAX: Final = 8
"""Methods that one Protocol adds; who needs several takes a Protocol that joins them."""

TERMS_MAX: Final = 60
"""Terms of the glossary: what a reader can be asked to learn."""

RETIRED: Final[Mapping[str, str]] = {
    "bell": "notify channel",
    "brake": "rate limit",
    "decorated": "enrolled substrate",
    "driver": "controller",
    "farewell": "finalizer step",
    "fence": "absence barrier (a fence is the token of a lease)",
    "helm": "leader router (Helm is the package manager)",
    "incoming": "requests",
    "joint": "merged",
    "knobs": "options",
    "leftovers": "pool shrink",
    "parting": "sibling cleanup",
    "quoted": "redaction",
    "raw": "objects",
    "reading": "parsing",
    "recreation": "replacement",
    "remaking": "replacement",
    "residence": "cluster identity",
    "retold": "with messages",
    "sameness": "substrate identity",
    "saying": "status input",
    "served": "any version",
    "sight": "lookup, or presence",
    "steadiness": "circuit breaker",
    "teller": "reporter",
    "telling": "failure reporter",
    "tick": "reconcile",
    "vanished": "missing records",
    "verdicts": "conditions",
    "waiting": "requeue, or messages",
    "why": "explanation",
}
"""Words that named something here once, and what the field says instead."""

ALLOWED: Final = {
    "KindNotServedError": "a kind that an API server serves in no version",
    "FencedError": "the fencing token of a lease, as the field calls it",
    "FencedStore": "the fencing token of a lease, as the field calls it",
    "fence": "the fencing token of a lease, as the field calls it",
    "served_versions": "the apiVersions that an API server serves",
    "waiting_messages": "the messages of what waits",
}
"""Names that hold a retired word in its usual sense."""


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _words(name: str) -> set[str]:
    return {part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name)}


def _public_classes() -> Iterator[tuple[Path, ast.ClassDef]]:
    for path in SOURCES:
        for node in _tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield path, node


def _where(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_no_room_holds_more_modules_than_a_reader_takes_in() -> None:
    rooms: dict[Path, list[str]] = defaultdict(list)
    for path in SOURCES:
        if path.stem != "__init__":
            rooms[path.parent].append(path.stem)

    crowded = {_where(room): len(held) for room, held in rooms.items() if len(held) > MODULES_MAX}

    assert not crowded, (
        f"split each into rooms of one idea, at most {MODULES_MAX} modules: {crowded}"
    )


def test_every_room_has_a_charter() -> None:
    rooms = {path.parent for path in SOURCES} - {REVISIONS}

    without = [_where(room) for room in sorted(rooms) if not (room / "__init__.py").is_file()]

    assert not without, f"add an __init__ that says what it is and who calls it: {without}"


def test_no_port_asks_for_more_than_a_consumer_needs() -> None:
    large = {}
    for path, node in _public_classes():
        methods = [
            each for each in node.body if isinstance(each, ast.AsyncFunctionDef | ast.FunctionDef)
        ]
        is_port = any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases)
        if is_port and len(methods) > METHODS_MAX:
            large[f"{_where(path)}: {node.name}"] = len(methods)

    assert not large, f"split each by what one consumer needs, at most {METHODS_MAX}: {large}"


def test_no_two_public_classes_share_a_name() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for path, node in _public_classes():
        found[node.name].append(_where(path))

    shared = {name: places for name, places in found.items() if len(places) > 1}

    assert not shared, f"name each after what it is, docs/glossary.md has the words: {shared}"


def test_no_module_or_public_class_uses_a_retired_word() -> None:
    names = [(_where(path), path.stem) for path in SOURCES]
    names += [(_where(path), node.name) for path, node in _public_classes()]

    found = [
        f"{where}: {name} ({word}: say {RETIRED[word]})"
        for where, name in names
        for word in sorted(_words(name) & RETIRED.keys())
        if name not in ALLOWED
    ]

    assert not found, "\n".join(["use the field's word:", *found])


def test_what_may_keep_a_retired_word_is_still_there() -> None:
    there = {path.stem for path in SOURCES} | {node.name for _, node in _public_classes()}

    assert there >= ALLOWED.keys()


def test_the_glossary_is_short_enough_to_be_read() -> None:
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    terms = re.findall(r"^\| \*\*(.+?)\*\* \|", page, re.MULTILINE)

    assert 0 < len(terms) <= TERMS_MAX
    assert terms == sorted(terms, key=str.lower), "keep the terms in order"
    assert len(set(terms)) == len(terms)
