"""The table of `POST /v1/register`.

Theory of operation. A request and the facts about its token become a decision, by rows
that are asked in the documented order; the first that applies answers:

    no token has this digest                          403 token_unknown
    the token was revoked                             403 token_revoked
    the token was consumed, and this is no retry      403 token_consumed
    the token's window is over                        403 token_expired
    the token is another Project's                    403 project_mismatch
    the nonce was used with another token             403 nonce_collision
    the handle is not the token's resource,
    or that resource is being deleted                 404 resource_not_found
    a live node of another resource has the key       409 key_in_use
    it is a retry                                     the same node, a fresh key
    the Project's own range has no free address       503 subrange_exhausted
    the mesh has no free address                      503 pool_exhausted
    none of these                                     a new node

A retry repeats token, key and nonce of a registration whose node never reported: its
reply was lost. It may be repeated 20 times. Key and nonce are compared in constant time.
Reads no clock, no row, no randomness. Source: contracts §1.3, design §5.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from uuid import UUID

from function.contract.strategy import BootstrapState
from reconciler.domain.aggregate import ids
from reconciler.domain.identity.denial import Denial, denial
from reconciler.domain.identity.registration_body import RegistrationRequest

READMISSIONS_MAX: Final = 20
"""Fresh keys for one node: a lost reply is retried a few times, a loop is a mistake."""


class RepeatDetail(StrEnum):
    """The audit detail of a repeated use of a consumed token."""

    OTHER_KEY = "other_key"
    OTHER_NONCE = "other_nonce"
    REPORTED = "reported"
    LEFT = "left"
    TOO_OFTEN = "too_often"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFacts:
    """A stored token and the resource it is bound to.

    Attributes:
        id: The token's id.
        state: Its state by the database's clock.
        project_id: The Project it was minted for.
        domain_id: That Project's Domain.
        provisioned_resource_id: The resource it is bound to.
        resource_handle: The handle of that resource.
        deletion_requested: Whether that resource's deletion was requested.
    """

    id: ids.BootstrapTokenID
    state: BootstrapState
    project_id: ids.ProjectID
    domain_id: UUID
    provisioned_resource_id: ids.ProvisionedResourceID
    resource_handle: str
    deletion_requested: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorRegistration:
    """The node that this token registered before.

    Attributes:
        node_id: Its id.
        public_key: The key it registered with.
        nonce_digest: The digest of the nonce it used.
        reported: Whether it ever made an authenticated call.
        live: Whether it is still in the mesh.
        readmitted: How often it was given a fresh key.
    """

    node_id: ids.NodeID
    public_key: bytes
    nonce_digest: bytes
    reported: bool
    live: bool
    readmitted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrationFacts:
    """The stored facts about a request.

    Attributes:
        token: None when no token has the request's digest.
        prior: None when the token registered nothing yet.
        nonce_holder: The token that used the nonce in this Project; None for a fresh one.
        key_in_use: Whether a live node of another resource of the Domain has the key.
        address_free: Whether there is an address for a new node.
        own_range: Whether addresses come from a range of the Project's own.
    """

    token: TokenFacts | None
    prior: PriorRegistration | None = None
    nonce_holder: ids.BootstrapTokenID | None = None
    key_in_use: bool = False
    address_free: bool = True
    own_range: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Admit:
    """Make a node."""

    token: TokenFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Readmit:
    """Give an existing node a fresh key, because its reply was lost."""

    token: TokenFacts
    node_id: ids.NodeID


Decision = Admit | Readmit | Denial


def judge(request: RegistrationRequest, facts: RegistrationFacts) -> Decision:
    """Decide a request.

    Returns:
        Total: every pair of request and facts maps to a decision.
    """
    known = facts.token
    if known is None:
        return denial("token_unknown")
    retry = facts.prior is not None and repeat_detail(request, facts.prior) is None
    case = _Case(request=request, facts=facts, token=known, retry=retry)
    for code, applies in _ROWS:
        if applies(case):
            return denial(code)
    if case.retry and facts.prior is not None:
        return Readmit(token=known, node_id=facts.prior.node_id)
    if not facts.address_free:
        return denial("subrange_exhausted" if facts.own_range else "pool_exhausted")
    return Admit(token=known)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    request: RegistrationRequest
    facts: RegistrationFacts
    token: TokenFacts
    retry: bool


_ROWS: Final[tuple[tuple[str, Callable[[_Case], bool]], ...]] = (
    ("token_revoked", lambda case: case.token.state is BootstrapState.REVOKED),
    (
        "token_consumed",
        lambda case: case.token.state is BootstrapState.CONSUMED and not case.retry,
    ),
    ("token_expired", lambda case: case.token.state is BootstrapState.EXPIRED),
    ("project_mismatch", lambda case: case.request.project_id != case.token.project_id),
    ("nonce_collision", lambda case: case.facts.nonce_holder not in {None, case.token.id}),
    (
        "resource_not_found",
        lambda case: (
            case.token.deletion_requested
            or case.request.resource_handle != case.token.resource_handle
        ),
    ),
    ("key_in_use", lambda case: case.facts.key_in_use),
)


def repeat_detail(request: RegistrationRequest, prior: PriorRegistration) -> RepeatDetail | None:
    """Tell why a repetition of a registration is no retry; None when it is one.

    A stranger's key comes first: it is what a stolen token looks like.
    """
    rows = (
        (RepeatDetail.OTHER_KEY, not hmac.compare_digest(prior.public_key, request.public_key)),
        (
            RepeatDetail.OTHER_NONCE,
            not hmac.compare_digest(prior.nonce_digest, request.nonce_digest),
        ),
        (RepeatDetail.REPORTED, prior.reported),
        (RepeatDetail.LEFT, not prior.live),
        (RepeatDetail.TOO_OFTEN, prior.readmitted >= READMISSIONS_MAX),
    )
    return next((detail for detail, applies in rows if applies), None)
