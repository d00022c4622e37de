"""The third table: what is done about a resource's tokens, over every combination."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import fields, replace
from datetime import timedelta

import pytest

from function.contract.strategy import BootstrapState
from reconciler.domain.identity.token_life import (
    MINT_PAUSE,
    Generation,
    TokenAction,
    TokenLife,
    TokenLifeFacts,
    decide,
)
from tests.unit.reconciler.samples import NOW

FLAGS = [field.name for field in fields(TokenLifeFacts) if field.name != "state"]


def every() -> Iterator[TokenLifeFacts]:
    for state in BootstrapState:
        for flags in itertools.product((False, True), repeat=len(FLAGS)):
            yield TokenLifeFacts(state=state, **dict(zip(FLAGS, flags, strict=True)))


EVERY = list(every())


def expected(s: TokenLifeFacts) -> TokenAction:
    if s.going or s.registered:
        return TokenAction.NOTHING
    if s.substrate:
        reopened = s.state is BootstrapState.EXPIRED and s.renewable
        if s.state is BootstrapState.ISSUED or reopened:
            return TokenAction.RENEW
        stranded = s.state in (BootstrapState.EXPIRED, BootstrapState.REVOKED)
        return TokenAction.STALL if stranded else TokenAction.NOTHING
    if s.state is BootstrapState.ISSUED and s.delivered:
        return TokenAction.NOTHING
    hindrances = {
        TokenAction.EXHAUSTED: s.exhausted,
        TokenAction.AWAIT_NAMESPACE: not s.open,
        TokenAction.AWAIT_POLICIES: not s.policies,
        TokenAction.AWAIT_PAUSE: not s.rested,
    }
    return next((action for action, hinders in hindrances.items() if hinders), TokenAction.MINT)


def test_every_situation_has_the_action_that_is_meant() -> None:
    assert len(EVERY) == len(BootstrapState) * 2 ** len(FLAGS)
    for situation in EVERY:
        assert decide(situation) is expected(situation), situation


def test_no_token_is_minted_while_a_substrate_may_carry_one_or_the_resource_goes() -> None:
    for situation in EVERY:
        if situation.substrate or situation.going or situation.registered:
            assert decide(situation) is not TokenAction.MINT


def test_no_token_is_minted_once_there_is_no_further_generation() -> None:
    assert not any(decide(one) is TokenAction.MINT for one in EVERY if one.exhausted)


def test_a_spent_token_is_never_renewed() -> None:
    for situation in EVERY:
        if decide(situation) is TokenAction.RENEW:
            assert situation.state in (BootstrapState.ISSUED, BootstrapState.EXPIRED)
            assert situation.state is BootstrapState.ISSUED or situation.renewable


@pytest.mark.parametrize(("hours", "renewable"), [(0, True), (23.9, True), (24, False)])
def test_a_window_opens_again_until_a_day_after_issue(hours: float, renewable: bool) -> None:
    newest = generation(1, BootstrapState.EXPIRED, issued_at=NOW)
    life = TokenLife(generations=(newest,), now=NOW + timedelta(hours=hours))

    assert life.renewable is renewable
    assert not TokenLife(generations=(), now=NOW).renewable


def test_after_minting_there_is_nothing_to_do_and_after_stalling_it_stays_so() -> None:
    for situation in EVERY:
        action = decide(situation)
        if action is TokenAction.MINT:
            minted = replace(situation, state=BootstrapState.ISSUED, delivered=True, rested=False)
            assert decide(minted) is TokenAction.NOTHING
        if action is TokenAction.STALL:
            assert decide(replace(situation, rested=True, policies=True)) is TokenAction.STALL


def generation(number: int, state: BootstrapState, **times: object) -> Generation:
    given = {"issued_at": NOW + number * timedelta(minutes=1), "consumed_at": None, **times}
    return Generation(number=number, state=state, **given)  # type: ignore[arg-type]  # a test's shorthand


@pytest.mark.parametrize(
    ("generations", "state"),
    [
        ([], BootstrapState.NONE),
        ([generation(1, BootstrapState.ISSUED)], BootstrapState.ISSUED),
        ([generation(1, BootstrapState.REVOKED)], BootstrapState.REVOKED),
        (
            [generation(2, BootstrapState.ISSUED), generation(1, BootstrapState.EXPIRED)],
            BootstrapState.ISSUED,
        ),
        (
            [generation(2, BootstrapState.REVOKED), generation(1, BootstrapState.ISSUED)],
            BootstrapState.ISSUED,
        ),
        (
            [generation(2, BootstrapState.EXPIRED), generation(1, BootstrapState.CONSUMED)],
            BootstrapState.EXPIRED,
        ),
        (
            [
                generation(2, BootstrapState.REVOKED),
                generation(1, BootstrapState.CONSUMED, consumed_at=NOW + timedelta(minutes=5)),
            ],
            BootstrapState.CONSUMED,
        ),
        (
            [
                generation(2, BootstrapState.REVOKED),
                generation(1, BootstrapState.CONSUMED, consumed_at=NOW + timedelta(seconds=90)),
            ],
            BootstrapState.REVOKED,
        ),
    ],
)
def test_one_state_speaks_for_all_generations(
    generations: list[Generation], state: BootstrapState
) -> None:
    life = TokenLife(generations=tuple(generations), now=NOW + timedelta(hours=1))

    assert life.state is state
    spent = state in (BootstrapState.CONSUMED, BootstrapState.REVOKED)
    assert life.drops_secrets is spent


@pytest.mark.parametrize(("since", "rested"), [(29.9, False), (30.0, True)])
def test_half_a_minute_lies_between_two_generations(since: float, rested: bool) -> None:
    newest = generation(1, BootstrapState.EXPIRED, issued_at=NOW)
    life = TokenLife(generations=(newest,), now=NOW + timedelta(seconds=since))

    assert life.rested is rested
    assert timedelta(seconds=30) == MINT_PAUSE
