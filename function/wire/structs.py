"""Between protobuf's Struct and plain values, where most of a call's time would go.

Reading and writing. Source: reference, crossplane §6.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from google.protobuf import struct_pb2


def plain(struct: struct_pb2.Struct) -> dict[str, Any]:
    """Return a Struct as plain values.

    A Struct holds doubles only: whole ones become integers again.
    """
    # A map's own `items` is a generator of Python's, which costs as much as what it yields.
    fields = struct.fields
    # Most values are text, and asking for it is as cheap as asking which kind it is.
    return {key: (value := fields[key]).string_value or other(value) for key in fields}


def manifest(struct: struct_pb2.Struct) -> dict[str, Any]:
    """Return an object as plain values, without its `managedFields`, which are large."""
    fields = struct.fields
    return {
        key: _head(fields[key].struct_value) if key == "metadata" else other(fields[key])
        for key in fields
    }


def _head(struct: struct_pb2.Struct) -> dict[str, Any]:
    fields = struct.fields
    return {key: other(fields[key]) for key in fields if key != "managedFields"}


def chosen(struct: struct_pb2.Struct, keys: tuple[str, ...]) -> dict[str, Any]:
    """Return some fields as plain values, as far as they are there."""
    fields = struct.fields
    return {key: other(fields[key]) for key in keys if key in fields}


def other(value: struct_pb2.Value) -> Any:
    """Return a Value as a plain one."""
    match value.WhichOneof("kind"):
        case "struct_value":
            return plain(value.struct_value)
        case "string_value":
            return value.string_value
        case "list_value":
            return [item.string_value or other(item) for item in value.list_value.values]
        case "number_value":
            number = value.number_value
            return int(number) if number.is_integer() else number
        case "bool_value":
            return value.bool_value
        case _:
            return None


class Fields(Mapping[str, Any]):
    """The fields of a Struct as plain values, each converted when somebody first reads it."""

    __slots__ = ("_fields", "_read")

    def __init__(self, struct: struct_pb2.Struct) -> None:
        self._fields = struct.fields
        self._read: dict[str, Any] = {}

    def __getitem__(self, key: str) -> Any:
        if key not in self._read:
            # Indexing a protobuf map creates the entry: look before reading.
            if key not in self._fields:
                raise KeyError(key)
            self._read[key] = other(self._fields[key])
        return self._read[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)


def lazily(struct: struct_pb2.Struct) -> dict[str, Any]:
    """Return an object as plain values, the fields of its spec as they are read.

    Of a spec, which is most of an object, a composition reads few fields.
    """
    fields = struct.fields
    made: dict[str, Any] = {}
    for key in fields:
        value = fields[key]
        is_spec = key == "spec" and value.WhichOneof("kind") == "struct_value"
        made[key] = Fields(value.struct_value) if is_spec else other(value)
    return made


def write(target: struct_pb2.Struct, value: Mapping[str, Any]) -> None:
    """Write a mapping into an empty Struct."""
    fields = target.fields
    for key, item in value.items():
        _set(fields[key], item)


def patch(target: struct_pb2.Struct, known: Mapping[str, Any], value: Mapping[str, Any]) -> None:
    """Turn a Struct into another mapping by writing what differs.

    Args:
        target: The Struct; of it nothing is touched that stays as it is.
        known: What it says.
        value: What it is to say; parts that it shares with `known` are passed over.
    """
    fields = target.fields
    for key in known.keys() - value.keys():
        del fields[key]
    for key, item in value.items():
        there = known.get(key, _ABSENT)
        if there is item:
            continue
        if there.__class__ is dict and item.__class__ is dict:
            patch(fields[key].struct_value, there, item)
        elif there is _ABSENT or not _same(there, item):
            one = fields[key]
            # A list would keep its old items before the new ones.
            one.Clear()
            _set(one, item)


_ABSENT: Final = object()


def _same(one: Any, other: Any) -> bool:
    """Whether two values are written alike; Python's own equality takes True for 1."""
    if one is other:
        return True
    return bool(one == other) and _kinds_are(one, other)


def _kinds_are(one: Any, other: Any) -> bool:
    """Whether a flag is a flag in both of two equal values: all else is equal only to its like."""
    if other.__class__ is dict:
        return all(
            item.__class__ is str or _kinds_are(one[key], item) for key, item in other.items()
        )
    if other.__class__ is list:
        return all(map(_kinds_are, one, other))
    return isinstance(one, bool) is isinstance(other, bool)


def _set(value: struct_pb2.Value, item: Any) -> None:
    match item:
        case str():
            value.string_value = item
        case dict():
            below = value.struct_value
            below.SetInParent()
            write(below, item)
        case list():
            value.list_value.SetInParent()
            values = value.list_value.values
            for child in item:
                _set(values.add(), child)
        case bool():
            value.bool_value = item
        case int() | float():
            value.number_value = item
        case None:
            value.null_value = struct_pb2.NULL_VALUE
        case _:
            message = f"cannot write value: {type(item).__name__} has no place in a Struct"
            raise TypeError(message)
