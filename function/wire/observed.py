"""Cuts an observed composed object down to the fields that a composition may read.

`normalised` copies those fields into a Struct of their own, and everything after it reads
that Struct alone. Source: reference, crossplane §6.4; docs/decisions/0010.
"""

from __future__ import annotations

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

_STATUS: Final[tuple[str, ...]] = ("conditions",)
"""What is read of the status of one that is not ours."""


def normalised(struct: struct_pb2.Struct) -> struct_pb2.Struct:
    """Return the fields of an observed composed object that a composition may read.

    The rest of its metadata and status (versions, times, managed fields, a provider's
    counters) changes all the time and decides nothing.
    """
    made = struct_pb2.Struct()
    source, target = struct.fields, made.fields
    is_record = _is_record(struct)
    for key in source:
        value = source[key]
        choice = _HEAD if key == "metadata" else None
        if key == "status" and not is_record:
            choice = _STATUS
        if choice is None or value.WhichOneof("kind") != "struct_value":
            target[key].CopyFrom(value)
        else:
            _copy(value.struct_value, target[key].struct_value, choice)
    return made


def _copy(source: struct_pb2.Struct, target: struct_pb2.Struct, keys: tuple[str, ...]) -> None:
    """Copy some fields, as far as they are there."""
    # An empty map is not an absent one.
    target.SetInParent()
    there, made = source.fields, target.fields
    for key in keys:
        if key in there:
            made[key].CopyFrom(there[key])


def _is_record(struct: struct_pb2.Struct) -> bool:
    # Indexing a protobuf map creates the entry: look before reading.
    kind = struct.fields.get("kind")
    return kind is not None and bool(kind.string_value == names.RECORD_KIND)
