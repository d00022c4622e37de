"""The node secret key (NSK) and the bearer that a node makes of it.

Belongs here: the bearer's format and the digest at rest. Not here: randomness, rows.
Source: contracts §1.5.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from function.contract.secrets import TokenPlaintext
from reconciler.domain.broker import ids

NSK_BYTES: Final = 32
"""An AES-256 key; plexd refuses any other length."""
_BEARER_BYTES: Final = 16 + NSK_BYTES
_BEARER_LENGTH: Final = 64
"""48 bytes in unpadded base64url."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeBearer:
    """What a node presents: which node it says it is, and the digest of its key."""

    node_id: ids.NodeID
    nsk_digest: bytes


def text(nsk: bytes) -> TokenPlaintext:
    """Return a key as the registration's reply carries it: 44 characters of base64."""
    return TokenPlaintext(base64.b64encode(nsk).decode())


def digest(nsk: bytes) -> bytes:
    """Return the SHA-256 of a key, which is all that is stored."""
    return hashlib.sha256(nsk).digest()


def parse_bearer(credential: str) -> NodeBearer | None:
    """Read `nsk_<env>_<base64url(node id, key)>`, or return None.

    Split at the first two underscores only, because base64url contains them.
    """
    parts = credential.split("_", 2)
    if len(parts) != 3 or parts[0] != "nsk" or not parts[1]:
        return None
    if len(parts[2]) != _BEARER_LENGTH:
        return None
    try:
        raw = base64.b64decode(parts[2], altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    if len(raw) != _BEARER_BYTES:
        return None
    node_id = ids.NodeID(UUID(bytes=raw[:16]))
    return NodeBearer(node_id=node_id, nsk_digest=digest(raw[16:]))


def same(left: bytes, right: bytes) -> bool:
    """Compare two digests in constant time."""
    return hmac.compare_digest(left, right)
