"""Strict JSON and YAML: one document, no duplicate keys, bounded depth, no aliases.

Bytes to plain values. The reader is stricter than Go's, so that both sides see the same
document.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import Any, Final

import yaml

Object = dict[str, Any]

FILE_MAX_BYTES: Final = 1024 * 1024
"""Largest file: the API server takes no object above 1.5 MB."""

DEPTH_MAX: Final = 64
"""Deepest nesting; real XRDs stay below 30."""


class DecodeError(ValueError):
    """A file is no single, plain document; the message says why, without its content."""


class _Loader(yaml.SafeLoader):
    """Refuses what readers disagree about: duplicate keys and keys that are no strings."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002 - PyYAML's signature
        """Build a mapping after its keys were checked."""
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag != "tag:yaml.org,2002:str":
                raise DecodeError(_at(key, "a key that is not a string"))
            if key.value in seen:
                raise DecodeError(_at(key, "a duplicate key"))
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


# A date is text to every Kubernetes reader.
_Loader.yaml_implicit_resolvers = {
    first: [each for each in resolvers if each[0] != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def from_yaml(content: bytes) -> Object:
    """Return the one mapping of a YAML file.

    Raises:
        DecodeError: It is too large, not UTF-8, no YAML, several documents, too deep, uses
            aliases or tags, or is no mapping.
    """
    text = _text(content)
    try:
        _bounded(text)
        loader = _Loader(text)
        try:
            value = loader.get_single_data()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        where = "" if error.problem_mark is None else f" in line {error.problem_mark.line + 1}"
        message = f"is not valid YAML{where}"
        raise DecodeError(message) from error
    except (yaml.YAMLError, ValueError) as error:
        if isinstance(error, DecodeError):
            raise
        message = "is not valid YAML"
        raise DecodeError(message) from error
    return _mapping(value)


def from_json(content: bytes) -> Object:
    """Return the one object of a JSON file.

    Raises:
        DecodeError: It is too large, not UTF-8, no JSON, too deep, or no object; or a key
            stands twice or a number is not finite.
    """
    text = _text(content)
    if max(text.count("["), text.count("{")) > DEPTH_MAX and _depth(text) > DEPTH_MAX:
        message = f"is nested deeper than {DEPTH_MAX} levels"
        raise DecodeError(message)
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        message = f"is not valid JSON in line {error.lineno}"
        raise DecodeError(message) from error
    except ValueError as error:
        if isinstance(error, DecodeError):
            raise
        message = "is not valid JSON"
        raise DecodeError(message) from error
    return _mapping(value)


def _text(content: bytes) -> str:
    if len(content) > FILE_MAX_BYTES:
        message = f"is larger than {FILE_MAX_BYTES} bytes"
        raise DecodeError(message)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        message = "is not UTF-8"
        raise DecodeError(message) from error


def _bounded(text: str) -> None:
    depth = documents = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        documents += isinstance(event, yaml.DocumentStartEvent)
        if documents > 1:
            raise DecodeError(_at(event, "a second document"))
        if isinstance(event, yaml.AliasEvent):
            raise DecodeError(_at(event, "an unsupported alias"))
        if isinstance(event, yaml.NodeEvent) and getattr(event, "tag", None) is not None:
            raise DecodeError(_at(event, "an unsupported explicit tag"))
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEPTH_MAX:
            message = f"is nested deeper than {DEPTH_MAX} levels"
            raise DecodeError(message)


def _depth(text: str) -> int:
    deepest = depth = 0
    quoted = escaped = False
    for character in text:
        if quoted:
            quoted = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            quoted = True
        elif character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth -= 1
    return deepest


def _at(part: yaml.Event | yaml.Node, what: str) -> str:
    mark = part.start_mark
    return f"holds {what}" if mark is None else f"holds {what} in line {mark.line + 1}"


def _unique(pairs: list[tuple[str, Any]]) -> Object:
    made = dict(pairs)
    if len(made) != len(pairs):
        message = "holds an object with a duplicate key"
        raise DecodeError(message)
    return made


def _refuse(constant: str) -> Any:
    message = f"holds {constant}, which is not valid JSON"
    raise DecodeError(message)


def _mapping(value: object) -> Object:
    if not isinstance(value, dict):
        message = "is not a mapping"
        raise DecodeError(message)
    return value
