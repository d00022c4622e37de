"""When what is seen of a management cluster is believed, over every cause."""

from __future__ import annotations

import itertools

import pytest

from reconciler.domain.guard.circuit_breaker import (
    ACCEPTABLE,
    CALM_S,
    SILENCE_S,
    BreakerCause,
    BreakerFacts,
    BreakerMode,
    causes,
    few,
    next_mode,
    shrank,
)

SUSPECT = {
    BreakerCause.RECORDS_VANISHED: BreakerFacts(aggregates=10, missing=4),
    BreakerCause.SUBSTRATES_LOST: BreakerFacts(aggregates=10, lost=4),
    BreakerCause.LIST_SHRANK: BreakerFacts(doubts=frozenset({BreakerCause.LIST_SHRANK})),
    BreakerCause.WENT_BACK: BreakerFacts(doubts=frozenset({BreakerCause.WENT_BACK})),
    BreakerCause.API_SERVER_FAILS: BreakerFacts(answers=20, failures=11),
    BreakerCause.CACHE_STALE: BreakerFacts(silent_s=SILENCE_S + 1),
    BreakerCause.STORE_UNREACHABLE: BreakerFacts(store=False),
}

NORMAL = [
    BreakerFacts(),
    BreakerFacts(aggregates=10, missing=3, lost=3),
    BreakerFacts(aggregates=10_000, missing=200, lost=200),
    BreakerFacts(answers=19, failures=19),
    BreakerFacts(answers=100, failures=50),
    BreakerFacts(silent_s=SILENCE_S),
]


def test_every_cause_has_facts() -> None:
    assert set(SUSPECT) == set(BreakerCause)


@pytest.mark.parametrize("cause", BreakerCause)
def test_suspect_facts_freeze_at_once_and_name_their_cause(cause: BreakerCause) -> None:
    mode = next_mode(BreakerMode(), SUSPECT[cause], now=0.0)

    assert mode == BreakerMode(causes=frozenset({cause}), frozen=True)


@pytest.mark.parametrize("facts", NORMAL)
def test_normal_facts_freeze_nothing(facts: BreakerFacts) -> None:
    assert causes(facts) == frozenset()
    assert next_mode(BreakerMode(), facts, now=0.0) == BreakerMode()


@pytest.mark.parametrize("cause", BreakerCause)
def test_it_thaws_by_itself_after_a_calm_minute_and_not_before(cause: BreakerCause) -> None:
    mode = next_mode(BreakerMode(), SUSPECT[cause], now=0.0)

    mode = next_mode(mode, BreakerFacts(), now=10.0)
    still = next_mode(mode, BreakerFacts(), now=10.0 + CALM_S - 1)
    over = next_mode(still, BreakerFacts(), now=10.0 + CALM_S)

    assert (still.frozen, still.causes) == (True, frozenset({cause}))
    assert over == BreakerMode()


def test_a_cause_that_returns_begins_the_calm_anew() -> None:
    mode = next_mode(BreakerMode(), SUSPECT[BreakerCause.WENT_BACK], now=0.0)
    mode = next_mode(mode, BreakerFacts(), now=1.0)
    mode = next_mode(mode, SUSPECT[BreakerCause.WENT_BACK], now=50.0)

    mode = next_mode(mode, BreakerFacts(), now=51.0)

    assert next_mode(mode, BreakerFacts(), now=51.0 + CALM_S - 1).frozen


@pytest.mark.parametrize("cause", BreakerCause)
def test_a_persons_word_ends_what_a_person_can_judge(cause: BreakerCause) -> None:
    facts = SUSPECT[cause]
    accepted = BreakerFacts(
        **{slot: getattr(facts, slot) for slot in facts.__slots__} | {"accepted": True}
    )
    frozen = next_mode(BreakerMode(), facts, now=0.0)

    assert next_mode(frozen, accepted, now=1.0).frozen == (cause not in ACCEPTABLE)


def test_it_is_total_over_every_combination_of_causes() -> None:
    for size in range(len(BreakerCause) + 1):
        for chosen in itertools.combinations(BreakerCause, size):
            facts = BreakerFacts(doubts=frozenset(chosen))
            assert causes(facts) == frozenset(chosen)


@pytest.mark.parametrize(
    ("number", "of", "expected"),
    [(3, 0, True), (4, 0, False), (4, 199, False), (4, 200, True), (200, 10_000, True)],
)
def test_a_few_are_three_or_one_in_fifty(number: int, of: int, expected: bool) -> None:
    assert few(number, of=of) is expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [(3, 0, False), (4, 0, True), (100, 90, False), (100, 89, True), (5, 9, False)],
)
def test_a_list_shrank_when_it_lacks_more_than_one_in_ten(
    before: int, after: int, expected: bool
) -> None:
    assert shrank(before, after) is expected
