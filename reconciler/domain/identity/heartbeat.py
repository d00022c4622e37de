"""Whether a node's request is answered: its bearer and its heartbeat, as tables.

Belongs here: the order of the checks. Not here: decoding, rows, the clock.
Source: contracts §1.5, §1.6.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from reconciler.domain.broker import ids
from reconciler.domain.identity import node_key
from reconciler.domain.identity.denial import Denial, denial
from reconciler.domain.identity.node_key import NodeBearer

SKEW_MAX: Final = timedelta(seconds=60)
TEXT_MAX: Final = 256
"""Longest checksum or version, in characters: both are short by nature, and one is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatBody:
    """A decoded heartbeat."""

    client_now: datetime
    binary_checksum: str
    binary_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownNode:
    """What is stored about the node that a bearer names."""

    nsk_digest: bytes
    deregistered: bool


def authenticate(
    bearer: NodeBearer | None, known: KnownNode | None, *, path_node: ids.NodeID | None
) -> Denial | None:
    """Check a bearer against the node it names and the node the path names.

    Args:
        bearer: None when the request carries none that can be read.
        known: None when no node has the bearer's id.
        path_node: None when the path names no UUID.

    Returns:
        None when the request comes from the live node of the path.
    """
    if bearer is None:
        return denial("unauthorized")
    if known is None or not node_key.same(known.nsk_digest, bearer.nsk_digest):
        return denial("nsk_invalid")
    if path_node != bearer.node_id:
        return denial("node_id_mismatch")
    if known.deregistered:
        return denial("node_deregistered")
    return None


def check(body: HeartbeatBody, *, now: datetime) -> Denial | None:
    """Check a heartbeat's fields; None when they are in order."""
    if not body.binary_checksum:
        return denial("binary_checksum_empty")
    if not body.binary_version:
        return denial("binary_version_empty")
    texts = (body.binary_checksum, body.binary_version)
    if not all(text.isprintable() and len(text) <= TEXT_MAX for text in texts):
        return denial("malformed_heartbeat_request")
    if abs(body.client_now - now) > SKEW_MAX:
        return denial("clock_skew")
    return None
