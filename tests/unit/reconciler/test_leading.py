"""Who stands for the lease."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import cast
from uuid import UUID

from reconciler.adapters.postgres.connection.lease import PostgresLeases
from reconciler.ports.store.lease import Lease
from reconciler.wiring.leader import leader_election, make_liveness
from tests.unit.reconciler.settings.test_settings import load


class Asked:
    """Leases of somebody else; remembers who asked for one."""

    def __init__(self) -> None:
        self.holders: list[str] = []

    async def acquire(self, key: UUID, *, holder: str, ttl: timedelta) -> Lease | None:
        self.holders.append(holder)
        return None


async def _lead(_: object) -> None:
    raise AssertionError


async def test_a_container_that_starts_again_is_another_holder() -> None:
    leases = Asked()

    for _ in range(2):
        settings = load()
        store = cast("PostgresLeases", leases)
        candidate = leader_election(settings, store, make_liveness(settings))
        standing = asyncio.create_task(candidate.run(_lead))
        async with asyncio.timeout(10):
            await candidate.standing_by.wait()
        standing.cancel()
        await asyncio.gather(standing, return_exceptions=True)

    one, two = (holder.split("/") for holder in leases.holders)
    assert one[:2] == two[:2]
    assert one[2] != two[2]
