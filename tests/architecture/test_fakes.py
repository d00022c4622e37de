"""What stands in for a port is tried by the same suite as the real thing.

A class of the tests counts as a stand-in for a port of `reconciler.ports` when it has all of the
port's methods, itself or from other classes of the tests. It, or a class of the tests that it is
one of, must then be used in `tests/contract`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PORTS: Final = sorted(ROOT.glob("reconciler/ports/**/*.py"))
TESTS: Final = sorted(ROOT.glob("tests/**/*.py"))

Methods = dict[str, tuple[str, ...]]

TELLING: Final = 3
"""Methods of whose names alone a class is known; fewer may be somebody else's, but for their
arguments."""
HANDED_OUT: Final = {"EventBatch": "Outbox", "RegistrationUnit": "EnrolmentStore"}
"""Ports that only another port hands out: the suite of that one tries them."""
FAULTS: Final = {
    "Skewed": "is the fault: a clock that is wrong",
    "Scripted": "gives each answer that the document of the node's routes has, also those that "
    "the real service gives only where it is broken",
}
"""Stand-ins that are to break a promise, or to keep none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Class:
    """A class as its text has it."""

    name: str
    bases: tuple[str, ...]
    methods: Methods

    @property
    def is_protocol(self) -> bool:
        """Tell whether it says what others must be."""
        return "Protocol" in self.bases


def classes(sources: Iterable[str]) -> list[Class]:
    """Read every class of some sources."""
    return [
        Class(
            name=node.name,
            bases=tuple(ast.unparse(base).rpartition(".")[2] for base in node.bases),
            methods=dict(_methods(node)),
        )
        for source in sources
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ClassDef)
    ]


def _methods(node: ast.ClassDef) -> Iterator[tuple[str, tuple[str, ...]]]:
    for each in node.body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name[0] != "_":
            arguments = (*each.args.posonlyargs, *each.args.args, *each.args.kwonlyargs)
            yield each.name, tuple(argument.arg for argument in arguments[1:])


def whole(one: Class, known: Mapping[str, Class]) -> Methods:
    """Return a class's methods with those that it inherits from known ones."""
    found: dict[str, tuple[str, ...]] = {}
    for base in reversed(one.bases):
        if base in known and base != one.name:
            found |= whole(known[base], known)
    return found | one.methods


def family(one: Class, known: Mapping[str, Class]) -> set[str]:
    """Return a class's name and those of the known ones that it is one of."""
    found = {one.name}
    for base in one.bases:
        if base in known and base != one.name:
            found |= family(known[base], known)
    return found


def untried(ports: Iterable[str], tests: Iterable[str], suites: Iterable[str]) -> list[str]:
    """Name the stand-ins that no suite uses, each with its port.

    Args:
        ports: The sources of the ports.
        tests: The sources in which stand-ins are looked for.
        suites: The sources of the suites.
    """
    promised = {each.name: each for each in classes(ports) if each.is_protocol}
    found = classes(tests)
    known = {each.name: each for each in found}
    used = {
        node.id
        for suite in suites
        for node in ast.walk(ast.parse(suite))
        if isinstance(node, ast.Name)
    }
    tried = set[str]().union(*(family(known[name], known) for name in used & known.keys()))

    def stands_in(one: Class, port: Class) -> bool:
        wanted, has = whole(port, promised), whole(one, known)
        if len(wanted) < TELLING:
            return wanted.items() <= has.items()
        return wanted.keys() <= has.keys()

    return [
        f"{each.name} of {name}"
        for each in found
        for name, port in promised.items()
        if not each.is_protocol
        and each.name not in FAULTS
        and name not in HANDED_OUT
        and stands_in(each, port)
        and not any(stands_in(known[one], port) for one in family(each, known) & tried)
    ]


PORT: Final = """
class Store(Protocol):
    def put(self, key: str, *, value: int) -> None: ...
    def get(self, key: str) -> int: ...
"""
FAKE: Final = """
class Half:
    def put(self, key, *, value): ...
class Whole(Half):
    def get(self, key): ...
class Other:
    def put(self, name): ...
    def get(self, key): ...
"""


def test_a_stand_in_that_no_suite_uses_is_found() -> None:
    assert untried([PORT], [FAKE], []) == ["Whole of Store"]
    assert untried([PORT], [FAKE], ["import Whole"]) == ["Whole of Store"]
    assert untried([PORT], [FAKE], ["store = Whole()"]) == []


def test_one_whose_parent_is_tried_adds_to_what_keeps_its_promises() -> None:
    heir = "class Heir(Whole):\n    def more(self): ..."

    assert untried([PORT], [FAKE, heir], ["store = Whole()"]) == []
    assert untried([PORT], [FAKE, heir], ["store = Half()"]) == ["Whole of Store", "Heir of Store"]


def test_every_stand_in_of_a_port_is_tried_by_a_suite() -> None:
    suites = [path.read_text(encoding="utf-8") for path in ROOT.glob("tests/contract/*.py")]
    texts = [path.read_text(encoding="utf-8") for path in PORTS]

    assert untried(texts, (path.read_text(encoding="utf-8") for path in TESTS), suites) == []


def test_what_is_left_out_is_still_there() -> None:
    there = {each.name for each in classes(path.read_text(encoding="utf-8") for path in TESTS)}
    promised = {each.name for each in classes(path.read_text(encoding="utf-8") for path in PORTS)}

    assert there >= FAULTS.keys()
    assert promised >= {*HANDED_OUT, *HANDED_OUT.values()}
