"""A request of Crossplane's as plain values, cut down to what a composition may read.

Objects are converted when somebody first reads them. A payload may hold a bootstrap token, so
only what cannot is remembered: the catalogue, the inputs of steps, and of an XR its identity
and the fields of its spec that a step names. Source: reference, crossplane §6.4;
docs/decisions/0010.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from google.protobuf import struct_pb2

from function.contract import names
from function.contract.errors import ContractError
from function.inputs import enrol
from function.model import parsing
from function.model.call import NodeCache, Request
from function.model.objects import Raw, Shared, mapping
from function.render.fields import fieldpath
from function.wire import observed
from function.wire.structs import chosen, lazily, manifest, plain

_REMEMBERED_MAX: Final = 128
"""Objects that are remembered: the catalogue of a cluster and the inputs of its Compositions."""

_XRS_MAX: Final = 256
"""XRs of which what is read is remembered: each is asked about twice a reconcile, and more often
changes one of its objects than itself. What they say stands in their records, for all to read."""

_REMEMBERED_MAX_BYTES: Final = 32 * 1024
"""Largest object of the catalogue that is remembered. Python's values take up to twenty times
what they take on the wire: all are 80 MiB at the very most."""

_XR_MAX_BYTES: Final = 8 * 1024
"""Largest XR that is remembered, which anybody may write: all are 40 MiB at the very most."""

_CATALOGUE: Final = frozenset({"BlueprintVersion", "CloudCredential", "Cloud"})
"""Kinds that thousands of XRs bring alike, and that hold nothing secret."""

_XR_HEAD: Final = ("name", "namespace", "uid")
_XR_STATUS: Final = ("conditions",)
_RETRY: Final[fieldpath.Path] = ("spec", "retry")
_DECLARED: Final[tuple[fieldpath.Path, ...]] = (
    ("spec", "blueprintRef"),
    ("spec", "cloudCredentialRef"),
    ("spec", "labels"),
    ("spec", "parameters"),
    _RETRY,
)
"""What `Declare` reads of the spec of an XR."""

_OF_TOKEN: Final = ("type", "data")
"""What is read of a Secret that holds a token."""


def step(struct: struct_pb2.Struct) -> Raw:
    """Return a step's input; it is converted once for all calls that bring the same."""
    return _remembered(struct)


def request(
    req: fnv1.RunFunctionRequest,
    step: Raw,
    cached: Callable[[Objects, Objects], NodeCache] | None = None,
) -> Request:
    """Return a request as plain values.

    Args:
        req: As it came; it is not changed, and must not be while the result is in use.
        step: Its step's input.
        cached: Makes the cache of what earlier steps composed and what is observed.
    """
    there = req.required_resources
    required = {
        name: _required(found[0].resource) if (found := there[name].items) else None
        for name in there
    }
    enrols = step.get("kind") == enrol.KIND
    composite = req.observed.composite.resource
    status = composite.fields.get("status")
    recorded, held = _marks(req.observed)
    asked = req.context.fields.get(names.CONTEXT_PREVIEW)
    resources = Objects(req.observed.resources, lazily, observed.normalised)
    desired = Objects(req.desired.resources)
    return Request(
        xr=_composite(composite, parsing.shared(step, _read_paths)),
        told={} if status is None else chosen(status.struct_value, _XR_STATUS),
        resources=resources,
        whole=Objects(req.observed.resources),
        desired=desired,
        cache=None if cached is None else cached(desired, resources),
        held=held if enrols else frozenset(),
        recorded=recorded,
        required=required,
        step=step,
        preview=asked is not None and asked.bool_value,
    )


def _required(struct: struct_pb2.Struct) -> Raw:
    fields = struct.fields
    kind = fields.get("kind")
    if kind is not None and kind.string_value in _CATALOGUE:
        return _remembered(struct)
    if _says(fields, "type", names.TOKEN_SECRET_TYPE):
        return chosen(struct, _OF_TOKEN)
    return manifest(struct)


def _read(data: bytes) -> Shared:
    digest = hashlib.sha256(data).digest()
    return Shared(manifest(struct_pb2.Struct.FromString(data)), digest)


_read_known = functools.lru_cache(maxsize=_REMEMBERED_MAX)(_read)
_read_xr = functools.lru_cache(maxsize=_XRS_MAX)(_read)


def _remembered(struct: struct_pb2.Struct) -> Shared:
    # Crossplane sends a map in any order.
    data = struct.SerializeToString(deterministic=True)
    return _read_known(data) if len(data) <= _REMEMBERED_MAX_BYTES else _read(data)


def _composite(struct: struct_pb2.Struct, paths: Sequence[fieldpath.Path]) -> Shared:
    """Return what is read of the composite: its identity and part of its spec."""
    read = observed.chosen(struct, {"metadata": _XR_HEAD})
    for path in paths:
        observed.copy_path(struct, read, path)
    data = read.SerializeToString(deterministic=True)
    return _read_xr(data) if len(data) <= _XR_MAX_BYTES else _read(data)


def _read_paths(step: Raw) -> Sequence[fieldpath.Path]:
    """Return where a step reads in the spec of its XR."""
    if step.get("kind") != enrol.KIND:
        return _DECLARED
    paths = {_RETRY}
    entries = step.get("resources")
    for entry in entries if isinstance(entries, list) else ():
        text = mapping(entry).get("labelsFrom")
        # What is no path is refused when the step is read.
        with contextlib.suppress(ContractError):
            paths |= {fieldpath.parse("labelsFrom", text)} if isinstance(text, str) else set()
    return sorted(paths, key=fieldpath.show)


class Objects(Mapping[str, dict[str, Any]]):
    """Objects of a request by name, each cut down and converted when somebody looks at it.

    A pipeline may compose hundreds that are nobody's business here.

    Args:
        source: The resources.
        cut: Cuts an object down to what is read; None: it is read whole.
        convert: Converts what is left of it.
    """

    def __init__(
        self,
        source: Mapping[str, fnv1.Resource],
        convert: Callable[[struct_pb2.Struct], dict[str, Any]] = plain,
        cut: Callable[[struct_pb2.Struct], struct_pb2.Struct] | None = None,
    ) -> None:
        self._source = source
        self._cut = cut
        self._convert = convert
        self._structs: dict[str, struct_pb2.Struct] = {}
        self._read: dict[str, dict[str, Any]] = {}

    def resource(self, name: str) -> bytes:
        """Return everything that can be read under a name, as bytes that equal ones share."""
        # Crossplane sends a map in any order.
        one = self._source[name] if self._cut is None else self._struct(name)
        return bytes(one.SerializeToString(deterministic=True))

    def _struct(self, name: str) -> struct_pb2.Struct:
        found = self._structs.get(name)
        if found is None:
            # Indexing a protobuf map creates the entry: look before reading.
            if name not in self._source:
                raise KeyError(name)
            found = self._source[name].resource
            found = self._structs[name] = found if self._cut is None else self._cut(found)
        return found

    def __getitem__(self, name: str) -> dict[str, Any]:
        found = self._read.get(name)
        if found is None:
            found = self._read[name] = self._convert(self._struct(name))
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._source)

    def __len__(self) -> int:
        return len(self._source)

    def __contains__(self, name: object) -> bool:
        return name in self._source


def _marks(state: fnv1.State) -> tuple[frozenset[str], frozenset[str]]:
    """Return which resources are records, and which carry the hold, without converting any."""
    recorded: list[str] = []
    held: list[str] = []
    resources = state.resources
    for name in resources:
        fields = resources[name].resource.fields
        if _says(fields, "kind", names.RECORD_KIND):
            recorded.append(name)
        head = fields.get("metadata")
        labels = None if head is None else head.struct_value.fields.get("labels")
        if labels is not None and _says(labels.struct_value.fields, names.LABEL_HOLD, "true"):
            held.append(name)
    return frozenset(recorded), frozenset(held)


def _says(fields: Mapping[str, struct_pb2.Value], key: str, text: str) -> bool:
    # Indexing a protobuf map creates the entry: look before reading.
    value = fields.get(key)
    return value is not None and bool(value.string_value == text)
