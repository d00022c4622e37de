"""What holds a deletion up is told by name, a few of them, and that there are more."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from function.contract.conditions import Reason
from function.contract.record import SubstrateReference
from reconciler.domain.aggregate.children import (
    NAMED_MAX,
    STUCK_S,
    RemainingChild,
    explain_remaining,
)

NOW = datetime(2026, 11, 23, tzinfo=UTC)


def _stuck(number: int) -> RemainingChild:
    reference = SubstrateReference(api_version="cloud.test/v1", kind="Disk", name=f"d-{number}")
    return RemainingChild(reference=reference, deleting_since=NOW - timedelta(seconds=STUCK_S + 1))


@pytest.mark.parametrize("count", [1, NAMED_MAX, NAMED_MAX + 1, NAMED_MAX + 5])
def test_as_many_as_may_be_are_named_and_only_of_more_it_is_said(count: int) -> None:
    said = explain_remaining(
        [_stuck(number) for number in range(count)], now=NOW, waited_s=STUCK_S + 1
    )

    assert said is not None
    reason, message = said
    assert reason is Reason.CHILD_STUCK
    assert message.count(" 'd-") == min(count, NAMED_MAX)
    assert ("Other objects remain, too." in message) == (count > NAMED_MAX)
