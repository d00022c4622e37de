"""Which substrate a node came from: every combination of what may be known."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from reconciler.domain.guard.substrate_identity import IdentityMatch, SubstrateIdentity, judge

UIDS = (None, "a", "b", "c")
UNLOOKED = [
    SubstrateIdentity(registered=registered, known=known, shown=shown)
    for registered, known, shown in itertools.product((False, True), UIDS, UIDS)
]
LOOKED = [
    replace(identity, looked=True, live=live)
    for identity, live in itertools.product(UNLOOKED, UIDS)
]


@pytest.mark.parametrize(
    ("known", "shown", "looked", "live", "expected"),
    [
        (None, None, False, None, IdentityMatch.LEAVE),
        (None, "a", False, None, IdentityMatch.LOOK),
        (None, "a", True, "a", IdentityMatch.REMEMBER),
        # The word of a backup, before the function ran again.
        (None, "a", True, "b", IdentityMatch.LEAVE),
        (None, "a", True, None, IdentityMatch.LEAVE),
        ("a", "a", False, None, IdentityMatch.LEAVE),
        ("a", None, False, None, IdentityMatch.LEAVE),
        ("a", "b", False, None, IdentityMatch.LOOK),
        ("a", "b", True, "b", IdentityMatch.OTHER),
        ("a", "b", True, "c", IdentityMatch.OTHER),
        # A cache that lags behind.
        ("a", "b", True, "a", IdentityMatch.LEAVE),
        ("a", "b", True, None, IdentityMatch.GONE),
        # The first run of an XR that was applied again sees nothing.
        ("a", None, True, "a", IdentityMatch.LEAVE),
        ("a", None, True, "b", IdentityMatch.OTHER),
        ("a", None, True, None, IdentityMatch.GONE),
    ],
)
def test_under_a_live_node(
    known: str | None, shown: str | None, looked: bool, live: str | None, expected: IdentityMatch
) -> None:
    identity = SubstrateIdentity(
        registered=True, known=known, shown=shown, looked=looked, live=live
    )

    assert judge(identity) is expected


def test_every_combination_has_an_answer_and_a_look_is_asked_for_once() -> None:
    assert {judge(identity) for identity in UNLOOKED + LOOKED} == set(IdentityMatch)
    assert all(judge(identity) is not IdentityMatch.LOOK for identity in LOOKED)


def test_nothing_is_remembered_or_accused_without_a_look() -> None:
    for identity in UNLOOKED:
        assert judge(identity) in {IdentityMatch.LEAVE, IdentityMatch.LOOK, IdentityMatch.FORGET}


def test_without_a_node_any_uid_is_right() -> None:
    for identity in UNLOOKED + LOOKED:
        if not identity.registered:
            known = identity.known is not None
            assert judge(identity) is (IdentityMatch.FORGET if known else IdentityMatch.LEAVE)


def test_who_is_not_known_yet_is_not_accused() -> None:
    for identity in LOOKED:
        if identity.known is None:
            assert judge(identity) in {IdentityMatch.LEAVE, IdentityMatch.REMEMBER}


def test_the_one_that_is_remembered_is_never_lost_while_it_is_there() -> None:
    for identity in LOOKED:
        if identity.registered and identity.known is not None:
            lost = judge(identity) in {IdentityMatch.OTHER, IdentityMatch.GONE}
            assert lost is (identity.live != identity.known)
