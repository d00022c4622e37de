"""What is remembered of nodes between calls, and digests of what they were made of.

The bounds, the digests, taking the bootstrap out of what is kept and putting one in again.
Nothing that is kept holds a bootstrap token. Source: docs/decisions/0010.
"""

from __future__ import annotations

import array
import base64
import hashlib
import os
import sys
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from google.protobuf import struct_pb2

from function.compose import conditions
from function.contract.redaction import redacted
from function.contract.secrets import TokenPlaintext
from function.model.call import Composed, ComposedNode, Copied, Digest, Outcome, Place, Read
from function.render.documents import cloudinit, template
from function.render.fields import fieldpath
from function.wire import observed

ENTRIES_MAX: Final = 4096
"""Nodes that are remembered: forty XRs of a hundred each."""

BYTES_MAX: Final = 32 * 1024 * 1024
"""What they may take: a sixteenth of what the function's container is given."""

_CHARACTER_BYTES: Final = 4
"""What a character takes at most."""

_OVERHEAD_BYTES: Final = 4096
"""What a node takes beside its objects: digests, conditions, the values around them."""

_KEY: Final = os.urandom(32)
"""What is digested holds tokens; keyed, a digest says nothing to who reads the memory's keys."""


class Nodes:
    """Nodes by the digest of what they were made of, the oldest forgotten first.

    Safe on one event loop: nothing here awaits.
    """

    def __init__(self, *, entries_max: int = ENTRIES_MAX, bytes_max: int = BYTES_MAX) -> None:
        self._entries_max = entries_max
        self._bytes_max = bytes_max
        self._nodes: OrderedDict[bytes, ComposedNode] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def size_bytes(self) -> int:
        """What all take, roughly."""
        return self._bytes

    def get(self, digest: bytes) -> ComposedNode | None:
        """Return a node; it is forgotten last."""
        found = self._nodes.get(digest)
        if found is not None:
            self._nodes.move_to_end(digest)
        return found

    def keep(self, digest: bytes, node: ComposedNode, desired: fnv1.State) -> None:
        """Remember a node, unless what is left of it looks as if it held a token.

        Args:
            digest: Of what it was made of.
            node: What became of it.
            desired: Where its objects were written.
        """
        said = replace(node.outcome, record=None, substrate=None)
        copies: dict[str, Copied | None] = {}
        for name, composed in node.resources.items():
            copies[name] = None if composed is None else _copied(node, name, composed, desired)
            if composed is not None and copies[name] is None:
                return
        if _tells(node, said, [copy for copy in copies.values() if copy is not None]):
            return
        self._forget(digest)
        self._nodes[digest] = replace(node, outcome=said, resources=copies, token=None)
        self._bytes += _size(self._nodes[digest])
        self._trim()

    def retell(self, digest: bytes, node: ComposedNode) -> None:
        """Remember a node that is known, with what it says now, which is redacted already."""
        if any(template.packed(verdict.message) for verdict in node.outcome.verdicts):
            return
        self._bytes += _told(node) - _told(self._nodes[digest])
        self._nodes[digest] = node
        self._trim()

    def _trim(self) -> None:
        while len(self._nodes) > self._entries_max or self._bytes > self._bytes_max:
            self._forget(next(iter(self._nodes)))

    def _forget(self, digest: bytes) -> None:
        gone = self._nodes.pop(digest, None)
        self._bytes -= 0 if gone is None else _size(gone)


@dataclass(frozen=True, slots=True, kw_only=True)
class LRUNodeCache:
    """The nodes as one call meets them.

    Attributes:
        req: The call's request.
    """

    nodes: Nodes
    req: fnv1.RunFunctionRequest

    def digest(self, read: Read) -> Digest:
        """Return a digest of everything that is named."""
        desired, there = self.req.desired.resources, self.req.observed.resources
        parts = [*read.said]
        # Crossplane sends a map in any order.
        for name in read.desired:
            parts += (name.encode(), desired[name].resource.SerializeToString(deterministic=True))
        # What tells one name, object and part from the next, whatever they hold.
        frame = [len(read.said), len(read.desired)]
        texts: dict[str, str] = {}
        for name in read.observed:
            seen = observed.fingerprint(there[name].resource)
            # Only the record's messages are told on as they are.
            parts += (name.encode(), repr(sorted(texts.items())).encode(), *seen.parts)
            texts = seen.texts
            frame.append(len(seen.parts))
        frame += map(len, parts)
        # One number in front of all says how many there are.
        data = b"".join((_KEY, array.array("Q", (len(frame), *frame)).tobytes(), *parts))
        return Digest(key=hashlib.sha256(data).digest(), texts=texts)

    def known(self, digest: Digest, token: TokenPlaintext | None) -> ComposedNode | None:
        """Return what became of a node that read the same, or None."""
        found = self.nodes.get(digest.key)
        if found is None:
            return None
        outcome = _retold(found.outcome, digest.texts)
        if outcome is not found.outcome:
            # It goes on saying so: the next call has nothing to tell anew.
            found = ComposedNode(outcome=outcome, resources=found.resources, holds=found.holds)
            self.nodes.retell(digest.key, found)
        if token is None:
            return found
        resources = dict(found.resources)
        for name, copy in found.resources.items():
            if isinstance(copy, Copied) and copy.carried:
                resources[name] = Copied(
                    data=copy.data, carried=copy.carried, ready=copy.ready, token=token
                )
        return ComposedNode(outcome=outcome, resources=resources, holds=found.holds)


def _retold(outcome: Outcome, texts: Mapping[str, str]) -> Outcome:
    """Return what was said, with what the record's conditions say now."""
    told = conditions.with_messages(outcome.verdicts, texts)
    if told is outcome.verdicts:
        return outcome
    return Outcome(
        record=outcome.record,
        substrate=outcome.substrate,
        ready=outcome.ready,
        open=outcome.open,
        verdicts=told,
        status=outcome.status,
        ttl=outcome.ttl,
        requirements=outcome.requirements,
    )


def restore(target: struct_pb2.Struct, copy: Copied, seen: struct_pb2.Struct | None) -> None:
    """Write an object as it was composed before, with its bootstrap.

    Args:
        target: Where to.
        copy: The object.
        seen: It as it is observed; None: it is not there, or carries none.
    """
    target.ParseFromString(copy.data)
    for (path, encoded), texts in copy.carried.items():
        value = _find(target, path)
        if value is None:
            continue
        there = None if seen is None or texts is not None else _find(seen, path)
        if texts is not None:
            value.string_value = _joined(texts, copy.token, encoded=encoded)
        elif there is not None:
            value.CopyFrom(there)


def _joined(texts: tuple[str, ...], token: TokenPlaintext | None, *, encoded: bool) -> str:
    text = texts[0] if token is None else cloudinit.plaintext(token).join(texts)
    return base64.b64encode(text.encode()).decode("ascii") if encoded else text


def _parted(value: str, token: TokenPlaintext, *, encoded: bool) -> tuple[str, ...]:
    text = base64.b64decode(value).decode() if encoded else value
    return tuple(text.split(cloudinit.plaintext(token)))


def _copied(
    node: ComposedNode, name: str, composed: Composed | Copied, desired: fnv1.State
) -> Copied | None:
    """Return what is kept of an object; None: it is not as it must be to be kept."""
    # Indexing a protobuf map creates the entry: look before reading.
    if name not in desired.resources:
        return None
    struct = desired.resources[name].resource
    places = node.carried.get(name, ()) if node.carried else ()
    if places:
        whole, struct = struct, struct_pb2.Struct()
        struct.CopyFrom(whole)
    carried: dict[Place, tuple[str, ...] | None] = {}
    for path, encoded in places:
        value = _find(struct, path)
        if value is None:
            return None
        text = value.string_value
        carried[path, encoded] = (
            None if node.token is None else _parted(text, node.token, encoded=encoded)
        )
        value.Clear()
    return Copied(data=struct.SerializeToString(), carried=carried, ready=composed.ready)


def _find(struct: struct_pb2.Struct, path: fieldpath.Path) -> struct_pb2.Value | None:
    """Return the value at a path, or None where there is none."""
    value: struct_pb2.Value | None = None
    place: Any = struct.fields
    for segment in path:
        # Indexing a protobuf map creates the entry: look before reading.
        is_there = segment < len(place) if isinstance(segment, int) else segment in place
        if not is_there:
            return None
        value = place[segment]
        kind = value.WhichOneof("kind")
        place = value.list_value.values if kind == "list_value" else value.struct_value.fields
    return value


def _tells(node: ComposedNode, said: Outcome, copies: Sequence[Copied]) -> bool:
    """Whether what is kept looks as if it held a token, or as if one stood in it twice."""
    told = [repr(said)]
    joints = 0
    for copy in copies:
        told.append(copy.data.decode("latin-1"))
        for texts in copy.carried.values():
            told += texts or ()
            joints += len(texts or " ") - 1
    injected = node.token is not None and any(copy.carried for copy in copies)
    if injected and joints != 1:
        return True
    return any(redacted(text) != text or template.packed(text) for text in told)


def _size(node: ComposedNode) -> int:
    texts = [str(value) for value in node.outcome.status.values()]
    size = _OVERHEAD_BYTES + _told(node)
    for copy in node.resources.values():
        if isinstance(copy, Copied):
            size += len(copy.data)
            texts += [text for given in copy.carried.values() for text in given or ()]
    return size + sum(map(sys.getsizeof, texts))


def _told(node: ComposedNode) -> int:
    # A text takes more once somebody encoded it; what is measured twice must be equal.
    return sum(_CHARACTER_BYTES * len(verdict.message) for verdict in node.outcome.verdicts)
