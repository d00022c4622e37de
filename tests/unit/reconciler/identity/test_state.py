"""How lately a node was heard, on every boundary."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from reconciler.domain.identity.state import Reachability, judge
from tests.unit.reconciler.samples import NOW

CAME = NOW - timedelta(days=1)
TICK = timedelta(microseconds=1)


def seconds_ago(seconds: int, more: timedelta = timedelta()) -> datetime:
    return NOW - timedelta(seconds=seconds) - more


@pytest.mark.parametrize(
    ("heard", "state", "since"),
    [
        (None, Reachability.NEVER_REPORTED, CAME),
        (NOW + timedelta(seconds=1), Reachability.HEALTHY, CAME),
        (NOW, Reachability.HEALTHY, CAME),
        (seconds_ago(90, -TICK), Reachability.HEALTHY, CAME),
        (seconds_ago(90), Reachability.STALE, NOW),
        (seconds_ago(300), Reachability.STALE, seconds_ago(210)),
        (seconds_ago(300, TICK), Reachability.UNREACHABLE, NOW - TICK),
        (seconds_ago(3600), Reachability.UNREACHABLE, seconds_ago(3300)),
    ],
)
def test_silence_is_judged(heard: datetime | None, state: Reachability, since: datetime) -> None:
    verdict = judge(last_heartbeat_at=heard, changed_at=CAME, now=NOW)

    assert (verdict.state, verdict.changed_at) == (state, since)
    assert verdict.last_heartbeat_at == heard


def test_the_values_are_the_contracts() -> None:
    assert {str(state) for state in Reachability} == {
        "never_reported", "healthy", "stale", "unreachable",
    }  # fmt: skip
