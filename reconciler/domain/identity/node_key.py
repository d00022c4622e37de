"""The node secret key (NSK) and the bearer that a node makes of it.

The bearer's format and the digest at rest. Source: contracts §1.5.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from reconciler.domain.aggregate import ids

NSK_BYTES: Final = 32
"""An AES-256 key; plexd refuses any other length."""
_BEARER: Final = re.compile(r"nsk_[^_]+_([A-Za-z0-9_-]{64})")
"""48 bytes in unpadded base64url; the environment is informational, but not empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeBearer:
    """A node's credential: the node that it claims to be, and the digest of its key."""

    node_id: ids.NodeID
    nsk_digest: bytes


def digest(nsk: bytes) -> bytes:
    """Return the SHA-256 of a key, which is all that is stored."""
    return hashlib.sha256(nsk).digest()


def parse_bearer(credential: str) -> NodeBearer | None:
    """Read `nsk_<env>_<base64url(node id, key)>`, or return None.

    Only the first two underscores separate, because base64url contains them.
    """
    match = _BEARER.fullmatch(credential)
    if match is None:
        return None
    raw = base64.urlsafe_b64decode(match[1])
    node_id = ids.NodeID(UUID(bytes=raw[:16]))
    return NodeBearer(node_id=node_id, nsk_digest=digest(raw[16:]))


def same(left: bytes, right: bytes) -> bool:
    """Compare two digests in constant time."""
    return hmac.compare_digest(left, right)
