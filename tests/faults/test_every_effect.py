"""Faults 1, 2, 3, 12 and 25 at every side effect, on a real API server and a real Postgres.

An effect is a request that changes something, or a commit. Each is preceded and followed by
a kill, repeated, refused once and for ever, and done without an answer, one at a time; what
is left is what a life without faults leaves: one consumed token, each event once, in order.
`HYPOTHESIS_PROFILE=long` does the same where the XR is what was deleted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

import pytest

from tests.faults.cases import Case, Faultless, Plain, begun, fail_for_ever, live_all
from tests.faults.ground import Ground
from tests.faults.outcome import outcome
from tests.faults.stagehand import Way
from tests.faults.wire import Effect, Mode
from tests.integration.load.agents import LONG

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

BATCH: Final = 4
"""Lives side by side: while one waits for a server, another one works."""
EFFECTS_MAX: Final = 36
"""What the longer half of a life has, in whole batches: each strikes something."""
KILLS: Final = [Mode.KILL_AFTER, *([Mode.KILL_BEFORE] if LONG else [])]
"""Dying before an effect leaves what dying after the one before it does: nothing but reads lies
between. `HYPOTHESIS_PROFILE=long` tries both."""
BATCHES: Final = range(0, EFFECTS_MAX, BATCH)
PATIENCE: Final = 12
"""Rounds for which an effect fails before it is mended: the last one of a teardown is tried
often enough in them to see what is said of it."""
KINDS_MAX: Final = 18
"""The kinds of effects that the longer half of a life has, in pairs."""


def batch(plain: Faultless, first: int, mode: Mode) -> list[Case]:
    """Pair the effects of both halves of a life, so many at once."""
    pairs = list(zip_longest(plain.provision, plain.teardown))[first : first + BATCH]
    assert pairs, "it strikes nothing: EFFECTS_MAX is too large"
    return [
        Case(mode=mode, provision=provision, teardown=teardown) for provision, teardown in pairs
    ]


def kinds(effects: Sequence[Effect]) -> list[Effect]:
    """Return the first effect of each kind."""
    return [effect for effect in effects if effect.nth == 1]


def around_the_deletion(effects: Sequence[Effect]) -> list[Effect]:
    """Return what differs where the reconciler deletes the substrate, and its neighbours."""
    at = [effect.label for effect in effects].index("DELETE xgenericvms")
    return list(effects[at - 1 : at + 2])


@pytest.mark.parametrize("mode", KILLS)
@pytest.mark.parametrize("first", BATCHES)
async def test_f01_a_kill_at_any_effect_changes_nothing(
    ground: Ground, plain: Plain, first: int, mode: Mode
) -> None:
    whole = await plain.of(ground, Way.REPLACED)

    await live_all(ground, Way.REPLACED, whole, batch(whole, first, mode))


@pytest.mark.parametrize("first", BATCHES)
async def test_f02_a_step_done_twice_changes_nothing(
    ground: Ground, plain: Plain, first: int
) -> None:
    whole = await plain.of(ground, Way.REPLACED)

    await live_all(ground, Way.REPLACED, whole, batch(whole, first, Mode.REPEAT))


@pytest.mark.parametrize("first", BATCHES)
async def test_f03_an_effect_refused_once_changes_nothing(
    ground: Ground, plain: Plain, first: int
) -> None:
    whole = await plain.of(ground, Way.REPLACED)

    await live_all(ground, Way.REPLACED, whole, batch(whole, first, Mode.FAIL))


@pytest.mark.parametrize("number", range(0, KINDS_MAX, 2))
async def test_f03_an_effect_refused_for_ever_is_tried_seldom_said_and_made_good(
    ground: Ground, plain: Plain, number: int
) -> None:
    whole = await plain.of(ground, Way.REPLACED)
    pairs = list(zip_longest(kinds(whole.provision), kinds(whole.teardown)))[number : number + 2]
    assert pairs, "it strikes nothing: KINDS_MAX is too large"

    async with asyncio.TaskGroup() as group:
        for provision, teardown in pairs:
            group.create_task(_mended(ground, whole, provision, teardown))


async def _mended(
    ground: Ground, plain: Faultless, provision: Effect | None, teardown: Effect | None
) -> None:
    try:
        async with begun(ground) as life:
            if provision is not None:
                await fail_for_ever(life, provision, PATIENCE)
            await life.until_ready()
            assert await outcome(life) == plain.ready
            await life.delete(Way.REPLACED)
            if teardown is not None:
                await fail_for_ever(life, teardown, PATIENCE)
            await life.until_gone()
            assert await outcome(life) == plain.gone
    except Exception as error:
        error.add_note(f"for ever: {provision} / {teardown}")
        raise


@pytest.mark.parametrize("first", BATCHES)
async def test_f12_f25_an_effect_whose_answer_is_lost_changes_nothing(
    ground: Ground, plain: Plain, first: int
) -> None:
    whole = await plain.of(ground, Way.REPLACED)

    await live_all(ground, Way.REPLACED, whole, batch(whole, first, Mode.LOSE))


@pytest.mark.parametrize("mode", [mode for mode in Mode if mode is not Mode.EVER])
async def test_f01_f02_f03_nor_do_they_where_the_reconciler_deletes_the_substrate(
    ground: Ground, plain: Plain, mode: Mode
) -> None:
    whole = await plain.of(ground, Way.XR_GONE)
    struck = whole.teardown if LONG else around_the_deletion(whole.teardown)
    assert struck
    cases = [Case(mode=mode, provision=None, teardown=effect) for effect in struck]

    for first in range(0, len(cases), BATCH):
        await live_all(ground, Way.XR_GONE, whole, cases[first : first + BATCH])


@pytest.mark.parametrize("way", Way)
async def test_f01_the_cases_cover_every_effect(ground: Ground, plain: Plain, way: Way) -> None:
    whole = await plain.of(ground, way)

    assert 20 <= len(whole.provision) <= EFFECTS_MAX
    assert 20 <= len(whole.teardown) <= EFFECTS_MAX
    assert max(len(kinds(whole.provision)), len(kinds(whole.teardown))) <= KINDS_MAX
