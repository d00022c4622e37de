"""Between protobuf's Struct and plain values, where most of a call's time would go.

Reading and writing. Source: reference, crossplane §6.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

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


class Model(NamedTuple):
    """An object that the written one resembles, in both forms.

    Attributes:
        struct: As it came.
        known: As it was read.
    """

    struct: struct_pb2.Struct
    known: Mapping[str, Any]


NO_MODEL: Final = Model(struct_pb2.Struct(), {})


def write(target: struct_pb2.Struct, value: Mapping[str, Any], model: Model) -> None:
    """Write a mapping into an empty Struct.

    What is as in the model is copied, which costs next to nothing: of a node that stays as
    it is, that is nearly all.
    """
    fields, known_fields, known = target.fields, model.struct.fields, model.known
    for key, item in value.items():
        if item.__class__ is str:
            fields[key].string_value = item
            continue
        there = known.get(key)
        if there is not None and _same(there, item):
            fields[key].CopyFrom(known_fields[key])
        elif there.__class__ is dict and item.__class__ is dict and item:
            below = Model(known_fields[key].struct_value, there)
            write(fields[key].struct_value, item, below)
        else:
            _set(fields[key], item)


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
            value.struct_value.SetInParent()
            fields = value.struct_value.fields
            for key, child in item.items():
                _set(fields[key], child)
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
