"""The text of a bootstrap token: how it is composed, read and digested.

The format and its limits. The plaintext stays in `TokenPlaintext`; whoever needs the text
asks it to reveal itself here. Source: contracts §1.3, §3.5.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

from function.contract.secrets import TokenPlaintext
from reconciler.domain.aggregate import ids

KIND_NODE: Final = "node"
ENTROPY_BYTES: Final = 20
"""160 bits: above the 128 that make a fast hash at rest safe, and 32 characters even."""
ENTROPY_BYTES_MIN: Final = 16
TTL_MIN: Final = timedelta(seconds=300)
TTL_MAX: Final = timedelta(hours=24)
"""The issuer's window (contracts §3.5); also the cap on what renewals add up to."""
ENV_PATTERN: Final = re.compile(r"[a-z]+")

_TEXT: Final = re.compile(r"psb_([a-z]+)_([a-z2-7]+)_(node|bridge)_([a-z2-7]{20,})")
_PROJECT_LENGTH: Final = 26
"""Sixteen bytes in unpadded base32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenParts:
    """The parts of a token's text; claims until its digest was found.

    Attributes:
        env: The environment segment.
        project_id: The Project it was minted for.
        kind: `node` or `bridge`.
    """

    env: str
    project_id: ids.ProjectID
    kind: str


def compose(*, env: str, project_id: ids.ProjectID, entropy: bytes) -> TokenPlaintext:
    """Return the text of a node's token.

    Args:
        env: Lower-case letters.
        project_id: The Project it is for.
        entropy: At least 16 bytes from a cryptographic source.

    Raises:
        ValueError: The environment or the entropy breaks its rule.
    """
    if ENV_PATTERN.fullmatch(env) is None:
        message = "cannot compose token: env must be lower-case letters"
        raise ValueError(message)
    if len(entropy) < ENTROPY_BYTES_MIN:
        message = f"cannot compose token: entropy must hold {ENTROPY_BYTES_MIN} bytes or more"
        raise ValueError(message)
    project = _base32(project_id.bytes)
    return TokenPlaintext(f"psb_{env}_{project}_{KIND_NODE}_{_base32(entropy)}")


def length(plaintext: TokenPlaintext) -> int:
    """Return how many characters a text has."""
    return len(plaintext.reveal())


def parse(plaintext: TokenPlaintext) -> TokenParts | None:
    """Return what a token's text says, or None when it is no token."""
    match = _TEXT.fullmatch(plaintext.reveal())
    if match is None or len(match[2]) != _PROJECT_LENGTH:
        return None
    try:
        raw = base64.b32decode(match[2].upper() + "======")
    except binascii.Error:
        return None
    return TokenParts(env=match[1], project_id=ids.ProjectID(UUID(bytes=raw)), kind=match[3])


def digest(plaintext: TokenPlaintext) -> bytes:
    """Return the SHA-256 of the whole text, which is what is stored and looked up.

    Source: design §5, "Tokens": a slow password hash would only be a lever for attackers.
    """
    return hashlib.sha256(plaintext.reveal().encode()).digest()


def _base32(raw: bytes) -> str:
    return base64.b32encode(raw).decode().rstrip("=").lower()
