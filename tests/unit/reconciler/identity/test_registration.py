"""The registration's table, over every combination of its facts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from uuid import UUID

import pytest

from function.contract.strategy import BootstrapState
from reconciler.domain.aggregate import ids
from reconciler.domain.identity.denial import Denial
from reconciler.domain.identity.registration import (
    READMISSIONS_MAX,
    Admit,
    Decision,
    PriorRegistration,
    Readmit,
    RegistrationFacts,
    RepeatDetail,
    TokenFacts,
    judge,
    repeat_detail,
)
from reconciler.domain.identity.registration_body import RegistrationRequest
from tests.unit.reconciler import samples

TOKEN_ID = ids.BootstrapTokenID(UUID("0197b1a2-2222-7000-8000-000000000001"))
OTHER_TOKEN = ids.BootstrapTokenID(UUID("0197b1a2-2222-7000-8000-000000000002"))
NODE = ids.NodeID(UUID("0197b1a2-3333-7000-8000-000000000001"))
STRANGER = ids.ProjectID(UUID("0197b1a2-4444-7000-8000-000000000001"))

REQUEST = RegistrationRequest(
    project_id=samples.PROJECT,
    resource_handle="pr-1",
    token_digest=b"t" * 32,
    nonce_digest=b"n" * 32,
    public_key=b"k" * 32,
)
TOKEN = TokenFacts(
    id=TOKEN_ID,
    state=BootstrapState.ISSUED,
    project_id=samples.PROJECT,
    domain_id=UUID(int=1),
    provisioned_resource_id=samples.ID,
    resource_handle="pr-1",
    deletion_requested=False,
)
PRIOR = PriorRegistration(
    node_id=NODE,
    public_key=REQUEST.public_key,
    nonce_digest=REQUEST.nonce_digest,
    reported=False,
    live=True,
)
FREE = RegistrationFacts(token=TOKEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """One row of the exhaustive table."""

    state: BootstrapState
    prior: PriorRegistration | None
    same_project: bool
    nonce: str
    same_handle: bool
    deleting: bool
    free: bool
    key_in_use: bool
    own_range: bool

    @property
    def retry(self) -> bool:
        return self.prior == PRIOR

    def decide(self) -> Decision:
        token = replace(TOKEN, state=self.state, deletion_requested=self.deleting)
        request = replace(
            REQUEST,
            project_id=samples.PROJECT if self.same_project else STRANGER,
            resource_handle="pr-1" if self.same_handle else "pr-2",
        )
        holders = {"fresh": None, "own": TOKEN_ID, "other": OTHER_TOKEN}
        facts = RegistrationFacts(
            token=token,
            prior=self.prior,
            nonce_holder=holders[self.nonce],
            key_in_use=self.key_in_use,
            address_free=self.free,
            own_range=self.own_range,
        )
        return judge(request, facts)

    def expected(self) -> str:
        spent = self.state is BootstrapState.CONSUMED
        rows = (
            ("token_revoked", self.state is BootstrapState.REVOKED),
            ("token_consumed", spent and not self.retry),
            ("token_expired", self.state is BootstrapState.EXPIRED),
            ("project_mismatch", not self.same_project),
            ("nonce_collision", self.nonce == "other"),
            ("resource_not_found", self.deleting or not self.same_handle),
            ("key_in_use", self.key_in_use),
            ("readmit", self.retry),
            ("subrange_exhausted", not self.free and self.own_range),
            ("pool_exhausted", not self.free),
        )
        return next((name for name, applies in rows if applies), "admit")


PRIORS = (
    None,
    PRIOR,
    replace(PRIOR, reported=True),
    replace(PRIOR, live=False),
    replace(PRIOR, public_key=b"x" * 32),
    replace(PRIOR, nonce_digest=b"x" * 32),
    replace(PRIOR, readmitted=READMISSIONS_MAX),
)
STATES = [state for state in BootstrapState if state is not BootstrapState.NONE]
COMBINATIONS = [
    Combination(
        state=state, prior=prior, same_project=project, nonce=nonce, same_handle=handle,
        deleting=deleting, free=free, key_in_use=key, own_range=own,
    )
    for state, prior, project, nonce, handle, deleting, free, key, own in product(
        STATES, PRIORS, (True, False), ("fresh", "own", "other"), (True, False), (True, False),
        (True, False), (True, False), (True, False),
    )
]  # fmt: skip


def _name(decision: Decision) -> str:
    match decision:
        case Admit():
            return "admit"
        case Readmit():
            return "readmit"
        case Denial(code=code):
            return code


def test_every_combination_gives_its_first_row() -> None:
    assert len(COMBINATIONS) == 4 * 7 * 2 * 3 * 2 * 2 * 2 * 2 * 2
    wrong = [item for item in COMBINATIONS if _name(item.decide()) != item.expected()]

    assert wrong == []


def test_nobody_registers_on_a_token_that_is_not_live() -> None:
    for item in COMBINATIONS:
        if item.state is not BootstrapState.ISSUED:
            assert not isinstance(item.decide(), Admit)


def test_nobody_registers_while_the_resource_goes() -> None:
    for item in COMBINATIONS:
        if item.deleting:
            assert isinstance(item.decide(), Denial)


def test_a_node_that_reported_is_never_taken_over() -> None:
    for item in COMBINATIONS:
        if item.prior is not None and item.prior.reported:
            assert not isinstance(item.decide(), Readmit)


@pytest.mark.parametrize("free", [True, False])
def test_an_unknown_token_learns_nothing_else(*, free: bool) -> None:
    facts = RegistrationFacts(token=None, nonce_holder=OTHER_TOKEN, address_free=free)

    decision = judge(replace(REQUEST, project_id=STRANGER), facts)

    assert isinstance(decision, Denial)
    assert (decision.status, decision.code) == (403, "token_unknown")


def test_an_admission_carries_what_was_judged() -> None:
    assert judge(REQUEST, FREE) == Admit(token=TOKEN)


def test_a_retry_gets_its_own_node_even_from_a_full_mesh() -> None:
    consumed = replace(TOKEN, state=BootstrapState.CONSUMED)
    facts = RegistrationFacts(token=consumed, prior=PRIOR, nonce_holder=TOKEN_ID)

    assert judge(REQUEST, facts) == Readmit(token=consumed, node_id=NODE)


def test_every_repetition_that_is_no_retry_is_told_apart() -> None:
    details = [None if prior is None else repeat_detail(REQUEST, prior) for prior in PRIORS]

    assert details[:2] == [None, None]
    assert details[2:] == [
        RepeatDetail.REPORTED,
        RepeatDetail.LEFT,
        RepeatDetail.OTHER_KEY,
        RepeatDetail.OTHER_NONCE,
        RepeatDetail.TOO_OFTEN,
    ]


def test_a_strangers_key_is_told_first() -> None:
    stranger = replace(PRIOR, public_key=b"x" * 32, nonce_digest=b"x" * 32, reported=True)

    assert repeat_detail(REQUEST, stranger) is RepeatDetail.OTHER_KEY
