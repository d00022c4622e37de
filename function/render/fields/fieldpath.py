"""Field paths, and reading and writing what stands at one.

Crossplane's notation for field paths, as far as a step's input needs it:
`spec.forProvider.userData`, `spec.template[0].data`, `spec.metadata[user-data]`. Wildcards
are none of it: a path names one place. Source: crossplane-runtime, `pkg/fieldpath`.
"""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Mapping
from typing import Any, Final

from function.contract.errors import ContractError

Path = tuple[str | int, ...]
"""Keys of objects and indices of lists, from the top of an object."""

LENGTH_MAX: Final = 256
"""Longest path in characters; the deepest provider field known needs some ninety."""

SEGMENTS_MAX: Final = 24
"""Most parts of a path. A message nested deeper than protobuf's limit of 100, which is some
thirty objects, could be written, but no later step could read it."""

INDEX_MAX: Final = 63
"""Highest index of a list: room for any provider's list of one machine's parts."""

_KNOWN_MAX: Final = 1024
"""Paths that are remembered: the defaults, and what a cluster's Compositions name."""

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
    path = _segments(text)
    if path is None:
        raise ContractError(field=field, rule="must be a field path, such as spec.userData")
    if path[0] != "spec" or path[1] == "crossplane":
        raise ContractError(field=field, rule="must be below spec, and not below spec.crossplane")
    return path


@functools.lru_cache(maxsize=_KNOWN_MAX)
def _segments(text: str) -> Path | None:
    """Return a text's parts, or None where they are no path or too much of one."""
    path: list[str | int] = []
    at = 0
    while at < len(text) <= LENGTH_MAX:
        found = _SEGMENT.match(text, at)
        if found is None:
            break
        index = found["index"]
        path.append(int(index) if index is not None else found["name"] or found["key"])
        at = found.end()
    far = any(isinstance(segment, int) and segment > INDEX_MAX for segment in path)
    if at != len(text) or not 2 <= len(path) <= SEGMENTS_MAX or far:
        return None
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
    """Set a path, making the parents that are missing; where it cannot, no value changes.

    Only the target itself is changed: parents on the way are replaced by copies, so that it
    may share its parts with others.

    Raises:
        ContractError: A parent is there and is something else, or an index skips one.
    """
    here: Any = target
    for position, segment in enumerate(path):
        last = position + 1 == len(path)
        match segment, here:
            case str(), dict():
                there = here.get(segment)
            case int(), list() if segment <= len(here):
                there = here[segment] if segment < len(here) else None
            case _:
                raise _unfit(path, position)
        if last or there is None:
            _set(here, segment, _grown(path, position + 1, value))
            return
        here[segment] = here = copy.copy(there)


def _set(here: Any, segment: str | int, value: Any) -> None:
    if isinstance(segment, int) and segment == len(here):
        here.append(value)
    else:
        here[segment] = value


def _grown(path: Path, start: int, value: Any) -> Any:
    """Return what must stand above a value for the rest of a path to lead to it."""
    for position in reversed(range(start, len(path))):
        segment = path[position]
        if isinstance(segment, int) and segment > 0:
            raise _unfit(path, position)
        value = [value] if isinstance(segment, int) else {segment: value}
    return value


def _unfit(path: Path, position: int) -> ContractError:
    return ContractError(
        field=show(path[:position]),
        rule="is not an object or list, as the rest of the path requires",
    )


def show(path: Path) -> str:
    """Return a path as people write it."""
    text = "".join(
        f"[{part}]" if isinstance(part, int) or "." in part else f".{part}" for part in path
    )
    return text.removeprefix(".")
