"""Keeps what settled nodes composed, for calls that change nothing of them.

A node is looked up by a keyed digest of everything that its composition reads. What is kept,
from the second time that it is met, is the part of the response that it made. A settled node
has registered, or none is expected, and no token Secret came for it, so what is kept holds no
live token. Source: docs/decisions/0010.
"""

from __future__ import annotations

import array
import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple

from crossplane.function.proto.v1 import run_function_pb2 as fnv1

from function.model.call import ComposedNode, NodeSlice
from function.wire.requests import Objects

ENTRIES_MAX: Final = 4096
"""Nodes that are kept: forty XRs of a hundred each."""

BYTES_MAX: Final = 32 * 1024 * 1024
"""What they may take: a sixteenth of what the function's container is given."""

_MET_PER_ENTRY: Final = 4
"""Digests of nodes that were met once, for each node that is kept; one takes some 150 bytes."""

_CHARACTER_BYTES: Final = 4
"""What a character of a message takes at most."""

_OVERHEAD_BYTES: Final = 4096
"""What a node takes beside its objects and messages: digest, conditions, the values around them."""


class _Kept(NamedTuple):
    node: ComposedNode
    composed: bytes
    size_bytes: int


class SettledNodes:
    """Settled nodes by the digest of what they were composed from; the least used goes first.

    Args:
        key: Random, for the digests: what is digested holds tokens that were used.
    """

    def __init__(
        self, *, key: bytes, entries_max: int = ENTRIES_MAX, bytes_max: int = BYTES_MAX
    ) -> None:
        self._key = key
        self._entries_max = entries_max
        self._bytes_max = bytes_max
        self._kept: OrderedDict[bytes, _Kept] = OrderedDict()
        self._met: OrderedDict[bytes, None] = OrderedDict()
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def digest(self, parts: list[bytes]) -> bytes:
        """Return a keyed digest that tells every part from its neighbours."""
        frame = array.array("Q", (len(parts), *map(len, parts))).tobytes()
        return hashlib.sha256(b"".join((self._key, frame, *parts))).digest()

    def get(self, digest: bytes) -> _Kept | None:
        """Return a node; it is dropped last."""
        found = self._kept.get(digest)
        if found is not None:
            self._kept.move_to_end(digest)
        return found

    def met(self, digest: bytes) -> bool:
        """Whether a node was met before; one that changes in each call is not worth keeping."""
        if digest in self._met:
            return True
        self._met[digest] = None
        if len(self._met) > _MET_PER_ENTRY * self._entries_max:
            self._met.popitem(last=False)
        return False

    def keep(self, digest: bytes, node: ComposedNode, composed: bytes) -> None:
        """Keep a node, and drop others until all are within the bounds."""
        self._met.pop(digest, None)
        messages = sum(len(verdict.message) for verdict in node.outcome.verdicts)
        size = _OVERHEAD_BYTES + len(composed) + _CHARACTER_BYTES * messages
        self._drop(digest)
        # The manifests are in what was composed.
        bare = replace(node.outcome, record=None, substrate=None)
        self._kept[digest] = _Kept(replace(node, outcome=bare, resources={}), composed, size)
        self.size_bytes += size
        while len(self._kept) > self._entries_max or self.size_bytes > self._bytes_max:
            self._drop(next(iter(self._kept)))

    def _drop(self, digest: bytes) -> None:
        gone = self._kept.pop(digest, None)
        self.size_bytes -= 0 if gone is None else gone.size_bytes


class LRUNodeCache:
    """The kept nodes as one call meets them."""

    def __init__(self, kept: SettledNodes, desired: Objects, observed: Objects) -> None:
        self._kept = kept
        self._desired = desired
        self._observed = observed
        self._found: list[bytes] = []
        self._fresh: list[tuple[bytes, ComposedNode]] = []

    def composed(
        self, part: NodeSlice, compose: Callable[[], ComposedNode | None]
    ) -> ComposedNode | None:
        """Return what happens to a node: what is kept for its slice, else what is composed now."""
        parts = [*part.said]
        for name in part.given:
            parts += (name.encode(), self._desired.resource(name))
        for name in part.observed:
            parts += (name.encode(), self._observed.resource(name))
        digest = self._kept.digest(parts)
        found = self._kept.get(digest)
        if found is not None:
            self._found.append(found.composed)
            return found.node
        node = compose()
        if node is not None and node.settled and self._kept.met(digest):
            self._fresh.append((digest, node))
        return node

    def restore(self, desired: fnv1.State) -> None:
        """Write what the nodes that were found had composed."""
        if self._found:
            # An entry of a map that is parsed later replaces the one before it.
            desired.MergeFromString(b"".join(self._found))

    def keep(self, desired: fnv1.State) -> None:
        """Keep the settled nodes that were composed again, as they stand in the response."""
        for digest, node in self._fresh:
            made = fnv1.State()
            for name in node.resources:
                made.resources[name].CopyFrom(desired.resources[name])
            self._kept.keep(digest, node, made.SerializeToString())
