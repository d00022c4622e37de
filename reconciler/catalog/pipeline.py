"""Reads which fields a Composition's pipeline reads, writes and composes.

Taking function-patch-and-transform's input apart, and a careful guess for functions whose
input is a program. Source: function-patch-and-transform, `pt.fn.crossplane.io/v1beta1
Resources`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

_PATCHES: Final = "pt.fn.crossplane.io/"

_FROM_COMPOSITE: Final = frozenset(
    {"FromCompositeFieldPath", "CombineFromComposite", "ToEnvironmentFieldPath"}
)
_TO_COMPOSITE: Final = frozenset(
    {"ToCompositeFieldPath", "CombineToComposite", "FromEnvironmentFieldPath"}
)
_ENVIRONMENT: Final = frozenset({"ToEnvironmentFieldPath", "FromEnvironmentFieldPath"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """One field path of the XR that a patch names, and where it stands in the file."""

    at: str
    path: str
    target: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """One composed resource's base and where it stands."""

    at: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Patch:
    at: str
    body: Mapping[str, Any]
    of_environment: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """A pipeline taken apart.

    Attributes:
        reads: Paths of the XR that patches copy from.
        writes: Paths of the XR that patches copy to.
        bases: What is composed.
        missing_sets: Where a patch names a patch set that is not there.
        programs: Text of the inputs that could not be taken apart; they may read anything.
    """

    reads: tuple[Touch, ...]
    writes: tuple[Touch, ...]
    bases: tuple[Base, ...]
    missing_sets: tuple[str, ...]
    programs: tuple[str, ...]


def take_apart(steps: list[Any]) -> Pipeline:
    """Return what a pipeline's steps touch; what is malformed is passed over."""
    reads: list[Touch] = []
    writes: list[Touch] = []
    bases: list[Base] = []
    missing: list[str] = []
    programs: list[str] = []
    for index, step in enumerate(steps):
        given = _mapping(_mapping(step).get("input"))
        at = f"spec.pipeline[{index}].input"
        if not str(given.get("apiVersion", "")).startswith(_PATCHES):
            programs.extend(_texts(given))
            continue
        sets = _patch_sets(given, at)
        for patch in _patches(given, at, sets, missing):
            _sort_in(patch, reads, writes)
        bases.extend(_bases(given, at))
    return Pipeline(
        reads=tuple(reads), writes=tuple(writes), bases=tuple(bases),
        missing_sets=tuple(missing), programs=tuple(programs),
    )  # fmt: skip


def _patch_sets(given: Mapping[str, Any], at: str) -> dict[str, list[_Patch]]:
    return {
        str(_mapping(each).get("name")): [
            _Patch(at=f"{at}.patchSets[{index}].patches[{number}]", body=_mapping(patch))
            for number, patch in enumerate(_list(_mapping(each).get("patches")))
        ]
        for index, each in enumerate(_list(given.get("patchSets")))
    }


def _patches(
    given: Mapping[str, Any], at: str, sets: Mapping[str, list[_Patch]], missing: list[str]
) -> Iterator[_Patch]:
    """Yield each patch that applies; a set's patches stand where the set is."""
    environment = _list(_mapping(given.get("environment")).get("patches"))
    for number, patch in enumerate(environment):
        here = f"{at}.environment.patches[{number}]"
        yield _Patch(at=here, body=_mapping(patch), of_environment=True)
    for index, resource in enumerate(_list(given.get("resources"))):
        for number, patch in enumerate(_list(_mapping(resource).get("patches"))):
            here = f"{at}.resources[{index}].patches[{number}]"
            if _mapping(patch).get("type") != "PatchSet":
                yield _Patch(at=here, body=_mapping(patch))
                continue
            name = str(_mapping(patch).get("patchSetName"))
            if name not in sets:
                missing.append(f"{here}.patchSetName")
            yield from sets.get(name, ())


def _sort_in(patch: _Patch, reads: list[Touch], writes: list[Touch]) -> None:
    kind = str(patch.body.get("type", "FromCompositeFieldPath"))
    if kind in _ENVIRONMENT and not patch.of_environment:
        # Below a resource these connect it with the environment and leave the XR alone.
        return
    target = _text(patch.body.get("toFieldPath", patch.body.get("fromFieldPath")))
    if kind in _FROM_COMPOSITE:
        aim = "" if patch.of_environment else target
        for at, source in _origins(patch):
            reads.append(Touch(at=at, path=_text(source), target=aim))
    elif kind in _TO_COMPOSITE:
        writes.append(Touch(at=f"{patch.at}.toFieldPath", path=target))


def _origins(patch: _Patch) -> Iterator[tuple[str, object]]:
    if "combine" not in patch.body:
        yield f"{patch.at}.fromFieldPath", patch.body.get("fromFieldPath")
        return
    variables = _list(_mapping(patch.body["combine"]).get("variables"))
    for number, variable in enumerate(variables):
        at = f"{patch.at}.combine.variables[{number}].fromFieldPath"
        yield at, _mapping(variable).get("fromFieldPath")


def _bases(given: Mapping[str, Any], at: str) -> Iterator[Base]:
    for index, resource in enumerate(_list(given.get("resources"))):
        base = _mapping(resource).get("base")
        if isinstance(base, dict):
            yield Base(at=f"{at}.resources[{index}].base", body=base)


def _texts(value: object) -> Iterator[str]:
    waiting = [value]
    while waiting:
        current = waiting.pop()
        if isinstance(current, str):
            yield current
        elif isinstance(current, Mapping):
            waiting.extend(current.values())
        elif isinstance(current, list):
            waiting.extend(current)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
