"""A random run's deeds come from its seed, and ten minutes have each kind of them."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.e2e.random_run.deeds import (
    DELETIONS,
    MACHINES,
    OF_MACHINES,
    OF_POOLS,
    XRS,
    Fault,
    Kind,
    draw,
)

SEEDS = range(1, 40)


@pytest.mark.parametrize("minutes", [2.0, 10.0])
def test_a_seed_is_one_run(minutes: float) -> None:
    assert draw(7, minutes) == draw(7, minutes)
    assert draw(7, minutes) != draw(8, minutes)


@pytest.mark.parametrize("seed", SEEDS)
def test_ten_minutes_have_each_kind_of_deed_and_each_fault(seed: int) -> None:
    deeds = draw(seed, 10.0).deeds

    assert {deed.kind for deed in deeds} == set(Kind)
    assert {deed.fault for deed in deeds} == set(Fault)


@pytest.mark.parametrize("seed", SEEDS)
def test_each_fault_is_there_when_all_are_applied_for_the_first_time(seed: int) -> None:
    first: dict[int, Fault] = {}
    for deed in draw(seed, 2.0).deeds:
        if deed.kind is Kind.APPLY:
            first.setdefault(deed.target, deed.fault)

    assert len(first) == XRS
    assert set(first.values()) == set(Fault)


@pytest.mark.parametrize("seed", SEEDS)
def test_deeds_come_in_order_within_the_run_and_each_xr_is_applied(seed: int) -> None:
    run = draw(seed, 10.0)
    times = [deed.at_s for deed in run.deeds]

    assert times == sorted(times)
    assert 0 <= times[0] <= times[-1] <= run.length_s
    assert {deed.target for deed in run.deeds if deed.kind is Kind.APPLY} == set(range(XRS))
    assert len(run.parting) == XRS // 2


@pytest.mark.parametrize("seed", SEEDS)
def test_a_deed_is_done_to_what_has_it(seed: int) -> None:
    for deed in draw(seed, 10.0).deeds:
        assert 0 <= deed.target < XRS
        if deed.kind in OF_MACHINES:
            assert deed.target < MACHINES
        if deed.kind in OF_POOLS:
            assert deed.target >= MACHINES


def test_what_was_deleted_is_mostly_applied_again() -> None:
    """Or most deeds of the last minutes would meet nothing."""
    met: Counter[bool] = Counter()
    for seed in SEEDS:
        declared: set[int] = set()
        for deed in draw(seed, 10.0).deeds:
            if deed.kind is Kind.APPLY:
                declared.add(deed.target)
            elif deed.kind is not Kind.KILL:
                met[deed.target in declared] += 1
            if deed.kind in DELETIONS:
                declared.discard(deed.target)
    assert met[True] > 20 * met[False]


def test_two_minutes_are_drawn_too() -> None:
    assert 30 < len(draw(1, 2.0).deeds) < 60
