"""Cuts an observed composed object down to the fields that a composition may read.

`normalised` copies those fields into a Struct of their own, and everything after it reads
that Struct alone. Source: reference, crossplane §6.4; docs/decisions/0010.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from google.protobuf import struct_pb2

from function.contract import names

_HEAD: Final[tuple[str, ...]] = (
    "annotations",
    "deletionTimestamp",
    "finalizers",
    "labels",
    "name",
    "namespace",
    "ownerReferences",
    "uid",
)
"""What is read of the metadata of a composed object."""

_OF_RECORD: Final[Mapping[str, tuple[str, ...]]] = {"metadata": _HEAD}
_OF_ANY: Final = {**_OF_RECORD, "status": ("conditions",)}
"""The parts of which only some fields are read; the status of a record is read whole."""


def normalised(struct: struct_pb2.Struct) -> struct_pb2.Struct:
    """Return the fields of an observed composed object that a composition may read.

    The rest of its metadata and status (versions, times, managed fields, a provider's
    counters) changes all the time and decides nothing.
    """
    made = struct_pb2.Struct()
    choices = _OF_RECORD if _is_record(struct) else _OF_ANY
    source, target = struct.fields, made.fields
    for key in source:
        _copy(source[key], target[key], choices.get(key))
    return made


def chosen(struct: struct_pb2.Struct, choices: Mapping[str, tuple[str, ...]]) -> struct_pb2.Struct:
    """Return an object's kind and of some of its parts some fields, as far as they are there."""
    made = struct_pb2.Struct()
    source, target = struct.fields, made.fields
    for key in ("apiVersion", "kind", *choices):
        if key in source:
            _copy(source[key], target[key], choices.get(key))
    return made


def copy_path(
    source: struct_pb2.Struct, target: struct_pb2.Struct, path: Sequence[str | int]
) -> None:
    """Copy what stands at a path, and nothing beside it; a list on the way is copied whole."""
    for place, segment in enumerate(path):
        if not isinstance(segment, str) or segment not in source.fields:
            return
        value, below = source.fields[segment], path[place + 1 : place + 2]
        if not below or isinstance(below[0], int):
            target.fields[segment].CopyFrom(value)
            return
        if value.WhichOneof("kind") != "struct_value":
            return
        source, target = value.struct_value, target.fields[segment].struct_value
        # An empty map is not an absent one.
        target.SetInParent()


def _copy(value: struct_pb2.Value, target: struct_pb2.Value, keys: tuple[str, ...] | None) -> None:
    """Copy a value, or of a map some fields."""
    if keys is None or value.WhichOneof("kind") != "struct_value":
        target.CopyFrom(value)
        return
    below = target.struct_value
    # An empty map is not an absent one.
    below.SetInParent()
    there, made = value.struct_value.fields, below.fields
    for key in keys:
        if key in there:
            made[key].CopyFrom(there[key])


def _is_record(struct: struct_pb2.Struct) -> bool:
    # Indexing a protobuf map creates the entry: look before reading.
    kind = struct.fields.get("kind")
    return kind is not None and bool(kind.string_value == names.RECORD_KIND)
