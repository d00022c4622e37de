"""Whoever deletes whatever whenever: the node is out first, nothing is left, events are told once.

Every way meets every phase, and either of them every crash; `make test-long` runs all three with
one another. The lives of one crash run beside one another, because they mostly wait; a test is what
one of them came to.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from typing import Final

import pytest

from dev.process import Child
from dev.stack import Stack
from function.contract.strategy import Phase
from tests.e2e import matrix_ways
from tests.e2e.at_once import AT_ONCE
from tests.e2e.conftest import LONG
from tests.e2e.matrix import Cell, Crash, Life, Way, make_projects
from tests.e2e.standby import leads, standby
from tests.e2e.world import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(6000 if LONG else 1500)]

ALL: Final = [
    Cell(way=way, phase=phase, crash=crash)
    for way, phase, crash in itertools.product(Way, Phase, Crash)
]
CRASHES: Final = list(Crash)
CELLS: Final = [
    cell
    for cell in ALL
    if LONG
    or cell.crash
    is CRASHES[(list(Way).index(cell.way) + list(Phase).index(cell.phase)) % len(CRASHES)]
]

Outcomes = dict[Cell, BaseException | None]


@pytest.fixture(scope="module")
def outcomes(stack: Stack) -> Outcomes:
    make_projects(stack, CELLS)
    told: Outcomes = dict.fromkeys(CELLS)
    for crash in Crash:
        lives = [Life(stack, cell) for cell in CELLS if cell.crash is crash]
        for start in range(0, len(lives), AT_ONCE):
            # The stack's own one leads: it was there first.
            beside = standby(stack) if crash is Crash.LED_BY_ANOTHER else nullcontext()
            with beside as other:
                told.update(_wave(stack, crash, lives[start : start + AT_ONCE], other))
                assert other is None or leads(stack, other)
    return told


def _wave(stack: Stack, crash: Crash, lives: Sequence[Life], other: Child | None) -> Outcomes:
    told: Outcomes = {}
    with ThreadPoolExecutor(max_workers=len(lives)) as pool:

        def each(step: Callable[[Life], None], chosen: Iterable[Life]) -> None:
            at_work = {life: pool.submit(step, life) for life in chosen if life.cell not in told}
            for life, future in at_work.items():
                if (error := future.exception()) is not None:
                    told[life.cell] = error

        # Whoever is Pending does not stay so for long.
        each(Life.arrive, [life for life in lives if life.cell.phase is not Phase.PENDING])
        each(Life.arrive, [life for life in lives if life.cell.phase is Phase.PENDING])
        if crash is Crash.DOWN:
            stack.kill_reconciler()
        each(matrix_ways.delete, lives)
        if crash in {Crash.KILLED, Crash.LED_BY_ANOTHER}:
            stack.kill_reconciler()
        if other is not None:
            wait_for(partial(leads, stack, other), "another leader")
        if crash is not Crash.NONE:
            stack.start_reconciler()
        each(matrix_ways.finish, lives)
    return told


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_nothing_is_left_and_the_node_was_out_first(outcomes: Outcomes, cell: Cell) -> None:
    error = outcomes[cell]
    if error is not None:
        raise error


def test_every_pair_of_way_phase_and_crash_is_among_them() -> None:
    for first, second in itertools.combinations(("way", "phase", "crash"), 2):
        wanted = {(getattr(cell, first), getattr(cell, second)) for cell in ALL}
        assert {(getattr(cell, first), getattr(cell, second)) for cell in CELLS} == wanted
