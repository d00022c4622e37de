"""Fault 53: a credential is rotated or revoked in mid-life and in mid-teardown."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.faults.cases import Plain, begun
from tests.faults.ground import Ground
from tests.faults.outcome import outcome
from tests.faults.stagehand import SECRET, Life, Way

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

ROUNDS = 3


async def rotate(life: Life) -> None:
    """Put another value into the Secret, as its ExternalSecret's controller does."""
    path = f"/api/v1/namespaces/{life.namespace}/secrets/{SECRET}"
    await life.call("PATCH", path, {"stringData": {"token": "rotated"}})
    life.forget()


async def move(life: Life) -> None:
    """Take the credential from another place of the vault."""
    life.catalogue.lend(vault="acme/demo-2")
    life.forget()


async def withdraw(life: Life) -> None:
    """Lend it to the Project no more."""
    life.catalogue.lend(nobody=True)
    life.forget()


async def forget(life: Life) -> None:
    """Take it out of the catalogue, and blueprint and cloud with it."""
    life.catalogue.forget()
    life.forget()


Change = Callable[[Life], Awaitable[None]]
CHANGES = pytest.mark.parametrize("change", [rotate, move, withdraw, forget])


@CHANGES
async def test_f53_a_credential_that_changes_under_a_node_leaves_it_and_all_it_needs(
    ground: Ground, plain: Plain, change: Change
) -> None:
    whole = await plain.of(ground, Way.REPLACED)
    async with begun(ground) as life:
        await life.until_ready()

        await change(life)
        for _ in range(ROUNDS):
            await life.round()
        kept = await outcome(life)
        await life.delete(Way.REPLACED)
        await life.until_gone()

        assert kept == whole.ready
        assert await outcome(life) == whole.gone


@CHANGES
@pytest.mark.parametrize("way", list(Way))
@pytest.mark.parametrize("rounds", range(1, ROUNDS))
async def test_f53_a_credential_that_changes_in_mid_teardown_holds_nothing_up(
    ground: Ground, plain: Plain, change: Change, way: Way, rounds: int
) -> None:
    whole = await plain.of(ground, way)
    async with begun(ground) as life:
        await life.until_ready()
        await life.delete(way)
        for _ in range(rounds):
            await life.round()
        assert await life.record() is not None, "it is over before the change"

        await change(life)
        await life.until_gone()

        assert await outcome(life) == whole.gone


@CHANGES
async def test_f53_a_credential_that_changes_before_the_machine_is_there_harms_nothing(
    ground: Ground, plain: Plain, change: Change
) -> None:
    whole = await plain.of(ground, Way.REPLACED)
    async with begun(ground) as life:
        await life.look()
        assert await life.resource() is not None
        assert await life.substrate() is None

        await change(life)
        for _ in range(ROUNDS):
            await life.round()
        life.catalogue.remember()
        await life.until_ready()
        await life.delete(Way.REPLACED)
        await life.until_gone()

        assert await outcome(life) == whole.gone
