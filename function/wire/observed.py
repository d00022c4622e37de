"""What is read of an observed composed object, as values and as bytes.

The fields that anybody here may read, and the fingerprint of just these. Source: reference,
crossplane §6.4; docs/decisions/0010.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from google.protobuf import struct_pb2

from function.contract import names
from function.wire.structs import chosen, other, plain

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

_SAID: Final = ("type", "status", "reason", "message")
"""What is read of a record's condition; its times change and decide nothing."""

_MISSING: Final = b"\0"
"""No Value begins so."""


class Fingerprint(NamedTuple):
    """What `read` returns of an object, as bytes.

    Attributes:
        parts: Equal ones, with equal texts, read the same.
        texts: By type of a record's condition: its message, which is told on as it is.
    """

    parts: list[bytes]
    texts: dict[str, str]


def read(struct: struct_pb2.Struct) -> dict[str, Any]:
    """Return of an observed composed object what anybody here may read.

    Its version, its times and most of its status change all the time, and decide nothing.
    """
    fields = struct.fields
    made: dict[str, Any] = {}
    for key in fields:
        value = fields[key]
        if key == "metadata":
            made[key] = chosen(value.struct_value, _HEAD)
        elif key != "status" or value.WhichOneof("kind") != "struct_value":
            made[key] = other(value)
        elif _is_record(fields):
            made[key] = _status(value.struct_value)
        else:
            made[key] = chosen(value.struct_value, _STATUS)
    return made


def fingerprint(struct: struct_pb2.Struct) -> Fingerprint:
    """Return what `read` reads, as bytes."""
    parts: list[bytes] = []
    texts: dict[str, str] = {}
    whole = struct.fields
    # Crossplane sends a map in any order.
    for key in sorted(whole):
        value = whole[key]
        parts.append(key.encode())
        choice = _HEAD
        if key != "metadata":
            if key != "status" or value.WhichOneof("kind") != "struct_value":
                parts.append(value.SerializeToString(deterministic=True))
                continue
            if _is_record(whole):
                parts += _said_in(value.struct_value, texts)
                continue
            choice = _STATUS
        fields = value.struct_value.fields
        parts += [
            fields[name].SerializeToString(deterministic=True) if name in fields else _MISSING
            for name in choice
        ]
    return Fingerprint(parts=parts, texts=texts)


def _status(struct: struct_pb2.Struct) -> dict[str, Any]:
    made = plain(struct)
    said = _said(struct)
    if said is not None:
        made["conditions"] = [dict(zip(_SAID, one, strict=True)) for one in said]
    return made


def _said_in(struct: struct_pb2.Struct, texts: dict[str, str]) -> tuple[bytes, bytes]:
    """Return a record's status as bytes, and put the messages of its conditions into texts."""
    said = _said(struct)
    if said is None:
        return _MISSING, struct.SerializeToString(deterministic=True)
    rest = struct_pb2.Struct()
    rest.CopyFrom(struct)
    del rest.fields["conditions"]
    texts |= {kind: message for kind, _, _, message in said}
    told = [(kind, status, reason, bool(message)) for kind, status, reason, message in said]
    return repr(told).encode(), rest.SerializeToString(deterministic=True)


def _said(struct: struct_pb2.Struct) -> list[tuple[str, str, str, str]] | None:
    """Return what the first condition of each type says.

    None: one is not as Kubernetes writes them, or there are none: all is read as it is.
    """
    conditions = struct.fields.get("conditions")
    if conditions is None or conditions.WhichOneof("kind") != "list_value":
        return None
    said: dict[str, tuple[str, str, str, str]] = {}
    for item in conditions.list_value.values:
        fields = item.struct_value.fields
        get = fields.get
        kind, status, reason, message = [
            "" if (one := get(key)) is None else one.string_value for key in _SAID
        ]
        if not kind or not status or not ((reason and message) or _are_texts(fields)):
            return None
        time, generation = get("lastTransitionTime"), get("observedGeneration")
        if time is not None and time.WhichOneof("kind") != "string_value":
            return None
        if generation is not None and not _is_whole(generation):
            return None
        if kind not in said:
            said[kind] = (kind, status, reason, message)
    return list(said.values())


def _are_texts(fields: Any) -> bool:
    """Whether what reads as empty is: anything but a text reads so too."""
    return all(fields[key].WhichOneof("kind") == "string_value" for key in _SAID if key in fields)


def _is_whole(value: struct_pb2.Value) -> bool:
    number = value.WhichOneof("kind") == "number_value"
    return number and bool(value.number_value.is_integer())


def _is_record(fields: Mapping[str, struct_pb2.Value]) -> bool:
    # Indexing a protobuf map creates the entry: look before reading.
    return "kind" in fields and bool(fields["kind"].string_value == names.RECORD_KIND)
