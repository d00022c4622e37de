"""What becomes of events that were tried."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from reconciler.domain.events.delivery import (
    ATTEMPTS_MAX,
    DELIVERED,
    ERROR_MAX,
    RETRY_MAX,
    SINK_PAUSE_MAX_S,
    Attempt,
    Delivery,
    DeliveryOutcome,
    judge,
    sink_pause_s,
)

FAILED = Delivery(outcome=DeliveryOutcome.FAILED, error="HTTP 500")
REFUSED = Delivery(outcome=DeliveryOutcome.REFUSED, error="HTTP 400")


def _attempt(delivery: Delivery, *, attempts: int = 0, event: UUID | None = None) -> Attempt:
    return Attempt(event_id=event or uuid4(), attempts=attempts, delivery=delivery)


def test_what_was_taken_is_published() -> None:
    taken = _attempt(DELIVERED)

    judgement = judge([taken])

    assert judgement.published == (taken.event_id,)
    assert not judgement.setbacks
    assert not judgement.sink_down


@pytest.mark.parametrize("others", [[], [_attempt(DELIVERED)]], ids=["alone", "beside a success"])
def test_what_is_refused_is_parked_at_once(others: list[Attempt]) -> None:
    [setback] = judge([*others, _attempt(REFUSED)]).setbacks

    assert (setback.retry_in, setback.attempts, setback.error) == (None, 1, "HTTP 400")


@pytest.mark.parametrize("second", [FAILED, REFUSED])
@pytest.mark.parametrize("first", [FAILED, REFUSED])
def test_a_sink_that_takes_nothing_is_to_blame_and_no_event(
    first: Delivery, second: Delivery
) -> None:
    judgement = judge([_attempt(first, attempts=ATTEMPTS_MAX - 1), _attempt(second)])

    assert judgement.sink_down
    assert [item.attempts for item in judgement.setbacks] == [ATTEMPTS_MAX - 1, 0]
    assert {item.retry_in for item in judgement.setbacks} == {timedelta(seconds=2)}


def test_a_refusal_after_others_that_were_not_taken_parks_nothing() -> None:
    [setback] = judge([_attempt(REFUSED)], failures=1).setbacks

    assert (setback.retry_in, setback.attempts) == (timedelta(seconds=4), 0)


def test_what_a_sink_that_is_away_did_not_take_steps_aside_for_half_a_minute_at_most() -> None:
    steps = [judge([_attempt(FAILED)], failures=count).setbacks[0].retry_in for count in range(9)]

    assert steps == [timedelta(seconds=each) for each in (2, 4, 8, 16, 30, 30, 30, 30, 30)]


def test_a_failure_beside_a_success_counts() -> None:
    [setback] = judge([_attempt(DELIVERED), _attempt(FAILED, attempts=2)]).setbacks

    assert (setback.retry_in, setback.attempts) == (timedelta(seconds=4), 3)


def test_pauses_double_up_to_five_minutes() -> None:
    pauses = [
        judge([_attempt(DELIVERED), _attempt(FAILED, attempts=count)]).setbacks[0].retry_in
        for count in range(ATTEMPTS_MAX - 1)
    ]

    seconds = [1, 2, 4, 8, 16, 32, 64, 128, 256]
    assert pauses == [timedelta(seconds=each) for each in seconds] + [RETRY_MAX] * 2


def test_the_twelfth_failure_parks() -> None:
    [setback] = judge([_attempt(DELIVERED), _attempt(FAILED, attempts=11)]).setbacks

    assert (setback.retry_in, setback.attempts) == (None, 12)


@pytest.mark.parametrize(("error", "kept"), [("", "unknown"), ("x" * 999, "x" * ERROR_MAX)])
def test_an_error_is_kept_within_its_column(error: str, kept: str) -> None:
    refused = Delivery(outcome=DeliveryOutcome.REFUSED, error=error)

    [setback] = judge([_attempt(refused)]).setbacks

    assert setback.error == kept


def test_nothing_tried_is_nothing_down() -> None:
    assert not judge([]).sink_down


def test_a_sink_is_left_alone_longer_and_longer() -> None:
    assert [sink_pause_s(count) for count in (1, 2, 3, 4, 5, 10_000)] == [
        1.0, 2.0, 4.0, 8.0, SINK_PAUSE_MAX_S, SINK_PAUSE_MAX_S,
    ]  # fmt: skip
