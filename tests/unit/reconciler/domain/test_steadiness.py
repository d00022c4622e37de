"""When what is seen of a management cluster is believed, over every cause."""

from __future__ import annotations

import itertools

import pytest

from reconciler.domain.broker.steadiness import (
    ACCEPTABLE,
    CALM_S,
    SILENCE_S,
    Cause,
    Facts,
    Mode,
    causes,
    few,
    next_mode,
    shrank,
)

SUSPECT = {
    Cause.RECORDS_VANISHED: Facts(aggregates=10, vanished=4),
    Cause.SUBSTRATES_LOST: Facts(aggregates=10, lost=4),
    Cause.LIST_SHRANK: Facts(doubts=frozenset({Cause.LIST_SHRANK})),
    Cause.WENT_BACK: Facts(doubts=frozenset({Cause.WENT_BACK})),
    Cause.API_SERVER_FAILS: Facts(answers=20, failures=11),
    Cause.CACHE_STALE: Facts(silent_s=SILENCE_S + 1),
    Cause.STORE_UNREACHABLE: Facts(store=False),
}

NORMAL = [
    Facts(),
    Facts(aggregates=10, vanished=3, lost=3),
    Facts(aggregates=10_000, vanished=200, lost=200),
    Facts(answers=19, failures=19),
    Facts(answers=100, failures=50),
    Facts(silent_s=SILENCE_S),
]


def test_every_cause_has_facts() -> None:
    assert set(SUSPECT) == set(Cause)


@pytest.mark.parametrize("cause", Cause)
def test_suspect_facts_freeze_at_once_and_name_their_cause(cause: Cause) -> None:
    mode = next_mode(Mode(), SUSPECT[cause], now=0.0)

    assert mode == Mode(causes=frozenset({cause}), frozen=True)


@pytest.mark.parametrize("facts", NORMAL)
def test_normal_facts_freeze_nothing(facts: Facts) -> None:
    assert causes(facts) == frozenset()
    assert next_mode(Mode(), facts, now=0.0) == Mode()


@pytest.mark.parametrize("cause", Cause)
def test_it_thaws_by_itself_after_a_calm_minute_and_not_before(cause: Cause) -> None:
    mode = next_mode(Mode(), SUSPECT[cause], now=0.0)

    mode = next_mode(mode, Facts(), now=10.0)
    still = next_mode(mode, Facts(), now=10.0 + CALM_S - 1)
    over = next_mode(still, Facts(), now=10.0 + CALM_S)

    assert (still.frozen, still.causes) == (True, frozenset({cause}))
    assert over == Mode()


def test_a_cause_that_returns_begins_the_calm_anew() -> None:
    mode = next_mode(Mode(), SUSPECT[Cause.WENT_BACK], now=0.0)
    mode = next_mode(mode, Facts(), now=1.0)
    mode = next_mode(mode, SUSPECT[Cause.WENT_BACK], now=50.0)

    mode = next_mode(mode, Facts(), now=51.0)

    assert next_mode(mode, Facts(), now=51.0 + CALM_S - 1).frozen


@pytest.mark.parametrize("cause", Cause)
def test_a_persons_word_ends_what_a_person_can_judge(cause: Cause) -> None:
    facts = SUSPECT[cause]
    accepted = Facts(
        **{slot: getattr(facts, slot) for slot in facts.__slots__} | {"accepted": True}
    )
    frozen = next_mode(Mode(), facts, now=0.0)

    assert next_mode(frozen, accepted, now=1.0).frozen == (cause not in ACCEPTABLE)


def test_it_is_total_over_every_combination_of_causes() -> None:
    for size in range(len(Cause) + 1):
        for chosen in itertools.combinations(Cause, size):
            facts = Facts(doubts=frozenset(chosen))
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
