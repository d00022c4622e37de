"""The tables of a node's requests: bearer and heartbeat.

The order of the checks. Source: contracts §1.5, §1.6.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from reconciler.domain.aggregate import ids
from reconciler.domain.identity import node_key
from reconciler.domain.identity.denial import Denial, denial
from reconciler.domain.identity.node_key import NodeBearer

SKEW_MAX: Final = timedelta(seconds=60)
VERSION_MAX: Final = 256
"""Longest version, in characters: it is short by nature, and stored."""

_HEX_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_BASE64_SHA256: Final = re.compile(r"[A-Za-z0-9+/]{43}=")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatBody:
    """A decoded heartbeat.

    Attributes:
        client_now: The node's clock, with its time zone.
        binary_checksum: Empty for an absent field.
        binary_version: Empty for an absent field.
    """

    client_now: datetime
    binary_checksum: str
    binary_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownNode:
    """The stored facts about the node that a bearer names.

    Attributes:
        other_nsk_digests: The keys that were answered besides, before it or, once the node
            reported with an older one, after it.
        reported: Whether it ever made an authenticated call.
    """

    nsk_digest: bytes
    deregistered: bool
    other_nsk_digests: tuple[bytes, ...] = ()
    reported: bool = True


def authenticate(
    bearer: NodeBearer | None,
    known: KnownNode | None,
    *,
    path_node: ids.NodeID | None,
) -> Denial | None:
    """Check a bearer against the node it names and the node the path names.

    Of several answers to one registration nobody knows which arrived. So until a node reports,
    each key is good; the one that it reports with is its key from then on.

    Args:
        bearer: None when the request carries none that can be read.
        known: None when no node has the bearer's id.
        path_node: None when the path names no UUID; the bearer's own where it names no node.

    Returns:
        None when the request comes from the live node of the path.
    """
    if bearer is None:
        return denial("unauthorized")
    if known is None:
        return denial("nsk_invalid")
    fault = _key_fault(known, bearer.nsk_digest)
    if fault is not None:
        return denial(fault)
    if path_node != bearer.node_id:
        return denial("node_id_mismatch")
    return denial("node_deregistered") if known.deregistered else None


def _key_fault(known: KnownNode, digest: bytes) -> str | None:
    if node_key.same(known.nsk_digest, digest):
        return None
    if not any(node_key.same(other, digest) for other in known.other_nsk_digests):
        return "nsk_invalid"
    return "nsk_revoked" if known.reported else None


def check(body: HeartbeatBody, *, now: datetime) -> Denial | None:
    """Check a heartbeat's fields in the documented order: shape, clock, checksum, version.

    Args:
        body: The decoded heartbeat.
        now: This process's clock.

    Returns:
        None when they are in order.
    """
    version = body.binary_version
    if len(version) > VERSION_MAX or not version.isprintable():
        return denial("malformed_heartbeat_request")
    if abs(body.client_now - now) > SKEW_MAX:
        return denial("clock_skew")
    if not _is_sha256(body.binary_checksum):
        return denial("binary_checksum_empty")
    if not version.strip():
        return denial("binary_version_empty")
    return None


def _is_sha256(text: str) -> bool:
    if _HEX_SHA256.fullmatch(text):
        return True
    if not _BASE64_SHA256.fullmatch(text):
        return False
    try:
        return base64.b64encode(base64.b64decode(text, validate=True)).decode() == text
    except binascii.Error:
        return False
