"""Objects kept small: a cache of ten thousand must not be most of the process.

What is kept of an object, and how. A parsed record takes some twenty times the memory of
its JSON, most of it for `managedFields`, of which one entry is ever read: who set the
annotation that gives a node up.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from function.contract import names
from reconciler.adapters.kubernetes.transport.responses import Object, UnreadableError

Key = tuple[str, str]
"""Namespace (empty for cluster-scoped) and name."""


class Packed(NamedTuple):
    """One object: what is asked of it without reading it, and its JSON.

    Attributes:
        uid: Its uid; empty when it has none.
        generation: Of its spec; 0 when it has none.
    """

    version: str
    uid: str
    generation: int
    raw: bytes


class PackedObjects(Mapping[Key, Object]):
    """A live view that reads an object when it is asked for; each answer is a copy."""

    def __init__(self, packed: Mapping[Key, Packed]) -> None:
        self._packed = packed

    def __getitem__(self, key: Key) -> Object:
        found: Object = json.loads(self._packed[key].raw)
        return found

    def __contains__(self, key: object) -> bool:
        return key in self._packed

    def __iter__(self) -> Iterator[Key]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)


def pack(item: Object) -> Packed:
    """Keep an object without what nobody reads.

    Raises:
        UnreadableError: It has no resourceVersion.
    """
    metadata = metadata_of(item)
    kept = {key: value for key, value in metadata.items() if key != "managedFields"}
    setter = _setter(metadata)
    if setter is not None:
        kept["managedFields"] = [setter]
    text = json.dumps(item | {"metadata": kept}, separators=(",", ":"), ensure_ascii=False)
    return Packed(
        version=version_of(item),
        uid=str(metadata.get("uid") or ""),
        generation=int(metadata.get("generation") or 0),
        raw=text.encode(errors="surrogatepass"),
    )


def key_of(item: Object) -> Key:
    """Return an object's key.

    Raises:
        UnreadableError: It has no name.
    """
    metadata = metadata_of(item)
    try:
        return metadata.get("namespace", ""), metadata["name"]
    except KeyError:
        message = "cannot read object: metadata.name: is missing"
        raise UnreadableError(message) from None


def version_of(item: Object) -> str:
    """Return an object's or a list's resourceVersion.

    Raises:
        UnreadableError: It has none.
    """
    version = metadata_of(item).get("resourceVersion")
    if not isinstance(version, str) or not version:
        message = "cannot read object: metadata.resourceVersion: is missing"
        raise UnreadableError(message)
    return version


def metadata_of(item: Object) -> Object:
    """Return an object's metadata.

    Raises:
        UnreadableError: It has none.
    """
    metadata = item.get("metadata") if isinstance(item, dict) else None
    if not isinstance(metadata, dict):
        message = "cannot read object: metadata: is missing"
        raise UnreadableError(message)
    return metadata


def _setter(metadata: Object) -> Object | None:
    """Return the managedFields entry of who set the force-release annotation, and no more of it."""
    if names.ANNOTATION_FORCE_RELEASE not in (metadata.get("annotations") or {}):
        return None
    field = f"f:{names.ANNOTATION_FORCE_RELEASE}"
    for entry in metadata.get("managedFields") or []:
        owned = ((entry.get("fieldsV1") or {}).get("f:metadata") or {}).get("f:annotations") or {}
        if field in owned:
            fields: Object = {"f:metadata": {"f:annotations": {field: {}}}}
            return {"manager": entry.get("manager"), "fieldsV1": fields}
    return None
