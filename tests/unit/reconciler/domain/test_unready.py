"""Of all that is not ready one object is told, and whether its words are news."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest

from function.contract.conditions import ObservedCondition
from function.contract.record import SubstrateReference
from reconciler.domain.record import unready
from reconciler.domain.record.unready import UnreadyObject

LIMIT = timedelta(minutes=30)
TOKEN = "psb_prod_0123456789abcdef"


def _seen(
    name: str, depth: int, served: bool = True, **said: tuple[str, str, str]
) -> UnreadyObject:
    reference = SubstrateReference(api_version="cloud.test/v1", kind="Server", name=name)
    conditions = {
        kind: ObservedCondition(status=status, reason=reason, message=message)
        for kind, (status, reason, message) in said.items()
    }
    return UnreadyObject(reference=reference, depth=depth, conditions=conditions, served=served)


def _unreadable(name: str, depth: int) -> UnreadyObject:
    reference = SubstrateReference(api_version="cloud.test/v1", kind="Server", name=name)
    return UnreadyObject(reference=reference, depth=depth, conditions=None)


def _told(*seen: UnreadyObject, before: str = "", ended: bool = False) -> str:
    return unready.explain(seen, limit=LIMIT, exists=True, ended=ended, before=before).message


SYNCED = ("True", "ReconcileSuccess", "")
REFUSED = _seen("refused", 1, Synced=("False", "ReconcileError", "quota"), Ready=("False", "", ""))
ASYNC = _seen("async", 2, Synced=SYNCED, LastAsyncOperation=("False", "AsyncCreateFailure", "no"))
PARENT = _seen("parent", 0, Synced=SYNCED, Ready=("False", "Creating", "Unready: refused"))
CREATING = _seen("creating", 2, Synced=SYNCED, Ready=("False", "Creating", ""))
SLOW = _seen("slow", 2, Synced=SYNCED, Ready=("False", "Unavailable", "image is pulled"))
SILENT = _seen("silent", 2)
HIDDEN = _unreadable("hidden", 3)
READY = _seen("ready", 3, Synced=("False", "ReconcileError", "drift"), Ready=("True", "", ""))
IN_ORDER = (ASYNC, REFUSED, SLOW, CREATING, SILENT, PARENT, HIDDEN)
"""From the one that is told before all others to the one that is told after them."""


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(IN_ORDER, 2)))
def test_a_refusal_is_told_before_a_delay_and_what_is_deep_before_what_waits(
    first: UnreadyObject, second: UnreadyObject
) -> None:
    for seen in itertools.permutations((first, second, READY)):
        message = _told(*seen)
        assert f"'{first.reference.name}'" in message
        assert f"'{second.reference.name}'" not in message


def test_what_is_ready_is_never_to_blame() -> None:
    assert _told(READY).endswith("None of its objects reports a cause.")
    assert _told() == _told(READY)


def test_what_says_nothing_is_asked_for_its_provider() -> None:
    assert _told(SILENT).endswith("reports no condition yet; check that its provider is running.")


def test_a_token_and_user_data_are_left_out() -> None:
    words = f"cannot create with {TOKEN}, userData: #cloud-config\nruncmd: [plexd]"
    message = _told(_seen("vm", 0, Synced=("False", TOKEN, words)))

    assert TOKEN not in message
    assert "plexd" not in message
    assert "cannot create with [redacted]" in message


def test_words_stay_while_only_what_a_provider_counts_changes() -> None:
    def says(words: str) -> UnreadyObject:
        return _seen("vm", 0, Synced=("False", "ReconcileError", words))

    first = _told(says("refused, RequestID: 1f3a-01 at 12:00:01Z"))

    assert _told(says("refused, RequestID: 9c1e-77 at 12:10:59Z"), before=first) == first
    assert "forbidden" in _told(says("forbidden, RequestID: 9c1e-77"), before=first)
    assert "'other'" in _told(_seen("other", 0, Synced=("False", "x", "refused")), before=first)
    assert "token has ended" in _told(says("refused, RequestID: 2 at 3"), before=first, ended=True)


@pytest.mark.parametrize(
    ("late", "again"),
    [
        (timedelta(), timedelta(minutes=1)),
        (timedelta(hours=1), timedelta(minutes=3)),
        (timedelta(days=1), timedelta(minutes=10)),
    ],
)
def test_the_longer_it_is_late_the_seldomer_it_is_looked_at(
    late: timedelta, again: timedelta
) -> None:
    assert unready.next_look(late) == again
