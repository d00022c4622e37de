"""Every way the node listener refuses, with the contract's status and code.

The closed table. The contract's set of codes is closed too: a code of ours that it does not
have stays in the audit and the log (`told`). Source: contracts §1.3, §1.5, §1.6.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Denial:
    """The refusal of a node's request.

    Attributes:
        status: The HTTP status that the contract gives it.
        code: The contract's code, or ours where it has none; empty for neither.
        detail: One plain sentence, naming fields and never a value.
        retry_after_s: Seconds to wait, where waiting helps.
        told: Whether the reply names the code.
    """

    status: int
    code: str
    detail: str
    retry_after_s: int | None = None
    told: bool = True


_ROWS: Final = (
    Denial(status=400, code="public_key_invalid",
           detail="public_key must be the base64 of a 32-byte X25519 key of full order"),
    Denial(status=422, code="bootstrap_token_invalid",
           detail="bootstrap_token is not a well-formed bootstrap token"),
    Denial(status=403, code="kind_mismatch",
           detail="the bootstrap token is not of the kind that registers nodes"),
    Denial(status=403, code="token_unknown", detail="the bootstrap token is unknown", told=False),
    Denial(status=403, code="token_revoked", detail="the bootstrap token was revoked"),
    Denial(status=403, code="token_consumed", detail="the bootstrap token was consumed"),
    Denial(status=403, code="token_expired", detail="the bootstrap token has expired"),
    Denial(status=403, code="project_mismatch",
           detail="the bootstrap token belongs to another project than project_id"),
    Denial(status=403, code="nonce_collision",
           detail="the nonce was used by another registration of this project"),
    Denial(status=404, code="resource_not_found",
           detail="resource_handle names no resource that this token registers"),
    Denial(status=409, code="key_in_use",
           detail="public_key is the key of another live node of this mesh", told=False),
    Denial(status=503, code="pool_exhausted", detail="the mesh has no free address",
           retry_after_s=30),
    Denial(status=503, code="subrange_exhausted",
           detail="the project's part of the mesh has no free address", retry_after_s=30),
    Denial(status=503, code="allocator_contention",
           detail="too many nodes are registering; retry later", retry_after_s=1),
    Denial(status=503, code="store_unavailable",
           detail="the store is unavailable; retry later", retry_after_s=2, told=False),
    Denial(status=401, code="unauthorized", detail="a bearer token with a node key is required"),
    Denial(status=401, code="nsk_invalid", detail="the bearer token is not a current node key"),
    Denial(status=401, code="nsk_revoked", detail="the bearer token is a key that was replaced"),
    Denial(status=403, code="node_id_mismatch", detail="the bearer token belongs to another node"),
    Denial(status=403, code="node_deregistered", detail="the node is deregistered"),
    Denial(status=400, code="malformed_heartbeat_request",
           detail="the body must be an object with client_now, binary_checksum, "
                  "binary_version and nat_summary"),
    Denial(status=400, code="binary_checksum_empty",
           detail="binary_checksum must be a SHA-256 in 64 lower-case hexadecimal digits or "
                  "44 characters of base64"),
    Denial(status=400, code="binary_version_empty", detail="binary_version must not be empty"),
    Denial(status=400, code="clock_skew",
           detail="client_now must lie within 60 s of the server's clock"),
)  # fmt: skip

_BY_CODE: Final = {row.code: row for row in _ROWS}


def denial(code: str) -> Denial:
    """Return the row of a code.

    Raises:
        KeyError: The code is not in the table, which is a mistake of ours.
    """
    return _BY_CODE[code]


def rate_limited(retry_after_s: int) -> Denial:
    """Return the denial of what came too often."""
    return Denial(
        status=429,
        code="rate_limited",
        detail="too many requests; wait for Retry-After seconds",
        retry_after_s=retry_after_s,
        told=False,
    )


def invariant(detail: str) -> Denial:
    """Return the denial of a field that breaks an invariant."""
    return Denial(status=422, code="invariant_violation", detail=detail)
