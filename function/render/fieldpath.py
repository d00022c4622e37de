"""Field paths, and reading and writing what stands at one.

Belongs here: Crossplane's notation for field paths, as far as a step's input needs it:
`spec.forProvider.userData`, `spec.template[0].data`, `spec.metadata[user-data]`. Not here:
which path carries what. Wildcards are none of it: a path names one place.
Source: crossplane-runtime, `pkg/fieldpath`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from function.contract.errors import ContractError

Path = tuple[str | int, ...]
"""Keys of objects and indices of lists, from the top of an object."""

LENGTH_MAX: Final = 256
"""Longest path in characters; the deepest provider field known needs some ninety."""

INDEX_MAX: Final = 63
"""Highest index of a list: room for any provider's list of one machine's parts."""

_SEGMENT: Final = re.compile(
    r"""(?:^|\.)(?P<name>[A-Za-z0-9_$-]+)"""
    r"""|\[(?P<index>[0-9]{1,2})\]|\[["']?(?P<key>[A-Za-z0-9_./$-]+)["']?\]"""
)


def parse(field: str, text: str) -> Path:
    """Return the path that a text says.

    Raises:
        ContractError: It is none, or does not lead below `spec` or `metadata.annotations`,
            or into Crossplane's own part of the spec.
    """
    path: list[str | int] = []
    at = 0
    while at < len(text) <= LENGTH_MAX:
        found = _SEGMENT.match(text, at)
        if found is None:
            break
        index = found["index"]
        path.append(int(index) if index is not None else found["name"] or found["key"])
        at = found.end()
    if at != len(text) or len(path) < 2 or any(type(s) is int and s > INDEX_MAX for s in path):
        raise ContractError(field=field, rule="must be a field path, such as spec.userData")
    if path[0] != "spec" or path[1] == "crossplane":
        raise ContractError(field=field, rule="must lead below spec, and not into spec.crossplane")
    return tuple(path)


def read(source: Mapping[str, Any], path: Path) -> object:
    """Return what stands at a path, or None where it or a parent is absent."""
    found: object = source
    for segment in path:
        match segment, found:
            case str(), Mapping():
                found = found.get(segment)
            case int(), list() if segment < len(found):
                found = found[segment]
            case _:
                return None
    return found


def write(target: dict[str, Any], path: Path, value: Any) -> None:
    """Set a path, making the parents that are missing.

    Raises:
        ContractError: A parent is there and is something else, or an index skips one.
    """
    here: Any = target
    for position, segment in enumerate(path):
        last = position + 1 == len(path)
        fresh = value if last else ([] if isinstance(path[position + 1], int) else {})
        match segment, here:
            case str(), dict():
                if last or here.get(segment) is None:
                    here[segment] = fresh
            case int(), list() if segment <= len(here):
                if segment == len(here):
                    here.append(fresh)
                elif last:
                    here[segment] = fresh
            case _:
                shown = show(path[:position])
                raise ContractError(field=shown, rule="is not what the path beyond it needs")
        here = here[segment]


def show(path: Path) -> str:
    """Return a path as people write it."""
    text = "".join(
        f"[{part}]" if isinstance(part, int) or "." in part else f".{part}" for part in path
    )
    return text.removeprefix(".")
