"""Validates a registration's body.

The rules of single fields, in the documented order. Source: contracts §1.3.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from function.contract.secrets import TokenPlaintext
from reconciler.domain.aggregate import ids
from reconciler.domain.identity import token
from reconciler.domain.identity.denial import Denial, denial, invariant

FIELD_MAX: Final = 4096
"""Longest text field of a registration, in characters (contracts §1.3)."""

_PUBLIC_KEY: Final = re.compile(r"[A-Za-z0-9+/]{43}=")

_PRIME: Final = 2**255 - 19
_COORDINATE_BITS: Final = 2**255 - 1
"""The highest bit of a coordinate is not part of it (RFC 7748 §5)."""
_SMALL_ORDER: Final = frozenset({
    0,
    1,
    _PRIME - 1,
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
})  # fmt: skip
"""Points whose order divides eight: a secret shared with one is zero, whoever computes it
(RFC 7748 §6.1). Reduced by the prime, so that zero and one also stand for their second texts.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrationBody:
    """A decoded body, before any rule was applied; empty for an absent field."""

    project_id: str = ""
    resource_handle: str = ""
    bootstrap_token: TokenPlaintext = field(default_factory=lambda: TokenPlaintext(""))
    nonce: str = ""
    public_key: str = ""
    requested_resource_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrationRequest:
    """A registration whose fields satisfy their rules.

    Attributes:
        token_digest: SHA-256 of the token's text.
        nonce_digest: SHA-256 of the nonce.
        public_key: 32 raw bytes.
    """

    project_id: ids.ProjectID
    resource_handle: str
    token_digest: bytes
    nonce_digest: bytes
    public_key: bytes


def read(body: RegistrationBody) -> RegistrationRequest | Denial:
    """Turn a decoded body into a request.

    Returns:
        The request, or the denial of the first field that breaks its rule: 422 for the
        invariants, 422 `bootstrap_token_invalid` for a text that is no token, then 400
        `public_key_invalid`, then 403 `kind_mismatch`, which the text alone shows.
    """
    problem = _broken_invariant(body)
    if problem is not None:
        return invariant(problem)
    parts = token.parse(body.bootstrap_token)
    if parts is None:
        return denial("bootstrap_token_invalid")
    public_key = _public_key(body.public_key)
    if public_key is None:
        return denial("public_key_invalid")
    if parts.kind != token.KIND_NODE:
        return denial("kind_mismatch")
    return RegistrationRequest(
        project_id=ids.ProjectID(UUID(body.project_id)),
        resource_handle=body.resource_handle,
        token_digest=token.digest(body.bootstrap_token),
        nonce_digest=hashlib.sha256(body.nonce.encode()).digest(),
        public_key=public_key,
    )


def _broken_invariant(body: RegistrationBody) -> str | None:
    required = {
        "project_id": len(body.project_id),
        "resource_handle": len(body.resource_handle),
        "bootstrap_token": token.length(body.bootstrap_token),
        "nonce": len(body.nonce),
        "public_key": len(body.public_key),
    }
    for name, length in required.items():
        if not length:
            return f"{name} must be present and not empty"
    lengths = {**required, "requested_resource_id": len(body.requested_resource_id)}
    for name, length in lengths.items():
        if length > FIELD_MAX:
            return f"{name} must hold at most {FIELD_MAX} characters"
    if not _is_uuid(body.project_id):
        return "project_id must be a UUID and not the zero one"
    return None


def _is_uuid(text: str) -> bool:
    try:
        value = UUID(text)
    except ValueError:
        return False
    return value.int != 0 and str(value) == text.lower()


def _public_key(text: str) -> bytes | None:
    if _PUBLIC_KEY.fullmatch(text) is None:
        return None
    try:
        raw = base64.b64decode(text, validate=True)
    except binascii.Error:
        return None
    # One key has one text: otherwise a retry's key could not be compared.
    canonical = base64.b64encode(raw).decode() == text
    coordinate = int.from_bytes(raw, "little") & _COORDINATE_BITS
    return raw if canonical and coordinate % _PRIME not in _SMALL_ORDER else None
