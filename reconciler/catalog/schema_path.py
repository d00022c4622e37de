"""Crossplane's field paths: parsing one, and whether a schema declares it.

The grammar and the walk through an OpenAPI schema. Source: crossplane-runtime, package
`fieldpath`; Crossplane reference, XR fields.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

Path = tuple[str | int, ...]

PATH_MAX: Final = 1024
"""Longest path in characters; real ones stay below 200."""

WILDCARD: Final = "*"

_SEGMENT: Final = re.compile(
    r"""(?P<name>[^.\[\]]+) | \[(?:'(?P<single>[^']*)'|"(?P<double>[^"]*)"|(?P<plain>[^\]]+))\]""",
    re.VERBOSE,
)
_METADATA: Final = frozenset(
    {"name", "generateName", "namespace", "uid", "labels", "annotations", "creationTimestamp"}
)


class FieldPathError(ValueError):
    """A text is no field path."""


def parse(text: str) -> Path:
    """Return a path's segments; indexes as integers, `[*]` as `"*"`.

    Raises:
        FieldPathError: It is empty, too long or malformed.
    """
    message = "is not a field path"
    if not text or len(text) > PATH_MAX:
        raise FieldPathError(message)
    segments: list[str | int] = []
    position = 0
    while position < len(text):
        if text[position] == "." and segments:
            position += 1
        match = _SEGMENT.match(text, position)
        if match is None or (segments and match["name"] and text[position - 1] != "."):
            raise FieldPathError(message)
        segments.append(_segment(match))
        position = match.end()
        if text[position:] == ".":
            raise FieldPathError(message)
    return tuple(segments)


def declared(schema: Mapping[str, Any], path: Path) -> bool:
    """Whether an XR of that schema may carry the path.

    Args:
        schema: The version's `openAPIV3Schema`.
        path: From the object's root.

    Returns:
        True too for what Crossplane adds to every XR, and below fields whose content the
        schema leaves open.
    """
    head, *rest = path
    if head in {"apiVersion", "kind"}:
        return not rest
    if head == "metadata":
        return not rest or rest[0] in _METADATA
    if head in {"spec", "status"} and rest and rest[0] == "crossplane":
        return True
    if head == "status" and rest and rest[0] == "conditions":
        return True
    return node(schema, path) is not None


def node(schema: Mapping[str, Any], path: Path) -> Mapping[str, Any] | None:
    """Return the schema at a path: empty where anything goes, None where nothing may be."""
    current: Mapping[str, Any] = schema
    for segment in path:
        following = _child(current, segment)
        if following is None:
            return None
        if not following:
            return following
        current = following
    return current


def required(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names that an object schema requires; none when they are malformed."""
    listed = schema.get("required")
    return tuple(str(name)[:63] for name in listed) if isinstance(listed, list) else ()


def type_of(schema: Mapping[str, Any]) -> str | None:
    """Return the type that a schema states, None where it leaves it open."""
    stated = schema.get("type")
    return None if stated is None else str(stated)


def covers(outer: Path, inner: Path) -> bool:
    """Whether reading `outer` reads `inner`: it is the path or one of its parents."""
    return inner[: len(outer)] == outer


def _segment(match: re.Match[str]) -> str | int:
    name: str | None = match["name"] or match["single"] or match["double"]
    if name is not None:
        return name
    plain = match["plain"] or ""
    return int(plain) if plain.isdecimal() else plain


def _child(schema: Mapping[str, Any], segment: str | int) -> Mapping[str, Any] | None:
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and isinstance(segment, str) and segment in properties:
        return _mapping(properties[segment])
    if isinstance(segment, int) or (segment == WILDCARD and "items" in schema):
        items = schema.get("items")
        return _mapping(items) if isinstance(items, Mapping) else _open(schema)
    additional = schema.get("additionalProperties")
    if isinstance(additional, Mapping):
        return _mapping(additional)
    return {} if additional is True else _open(schema)


def _open(schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return {} if schema.get("x-kubernetes-preserve-unknown-fields") is True else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
