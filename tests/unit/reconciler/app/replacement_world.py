"""A world whose node does not come, on a cluster that refuses what breaks the order.

What the tests of recreating share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from function.contract.conditions import ConditionType, ObservedCondition, find
from function.contract.record import SubstrateReference
from function.contract.strategy import Phase
from tests.fakes.management_cluster import InMemoryManagementCluster
from tests.fakes.memory import FrozenClock, MemoryStore
from tests.unit.reconciler.app.enrolled_world import EnrolledWorld
from tests.unit.reconciler.app.enrolled_world import record as enrolled
from tests.unit.reconciler.app.world import World

TIMEOUT = timedelta(minutes=15)


@dataclass
class StrictCluster(InMemoryManagementCluster):
    """Refuses to let anything go while a node is in the mesh or a token could bring one."""

    store: MemoryStore | None = None

    async def release(self, reference: SubstrateReference, namespace: str, *, uid: str) -> None:
        self._nobody_can_come()
        await super().release(reference, namespace, uid=uid)

    async def write_status(self, record: dict[str, Any], status: dict[str, Any]) -> None:
        if status.get("substrate") == "Absent" and "deletionTimestamp" not in record["metadata"]:
            self._nobody_can_come()
            self._its_delete_is_let_through(status["xrName"])
        await super().write_status(record, status)

    def _nobody_can_come(self) -> None:
        assert self.store is not None
        assert all(node.deregistered_at is not None for node in self.store.nodes.values())
        assert all(row.spent for row in self.store.tokens.values())

    def _its_delete_is_let_through(self, name: str) -> None:
        live = next((item for ref, item in self.objects.items() if ref[2] == name), None)
        assert live is None or live.released


def make_world(
    make: Callable[..., World] = World,
    *,
    store: MemoryStore | None = None,
    clock: FrozenClock | None = None,
    **registration: Any,
) -> World:
    """Return a world with or without a word on registration."""
    parts: dict[str, Any] = {"raw": enrolled()} if make is EnrolledWorld else {}
    if store is not None:
        parts["store"] = store
    world = make(cluster=StrictCluster(), clock=clock, **parts)
    assert isinstance(world.cluster, StrictCluster)
    world.cluster.store = world.store
    if registration:
        world.raw["spec"]["declaration"]["registration"] = registration
    return world


async def waiting_world(**registration: Any) -> World:
    """Return a world whose machine is ready and whose node has not come."""
    world = make_world(**({"policy": "Recreate"} | registration))
    await world.tick_until_quiet()
    assert world.resource.phase is Phase.ENROLLING
    return world


async def overdue_world(*, silent: bool = False, **registration: Any) -> World:
    """Return a world whose time is up: no node came, or one that never reported."""
    world = await waiting_world(**registration)
    if silent:
        world.register()
        await world.tick_until_quiet()
        assert world.resource.phase is Phase.READY
    world.store.clock.advance(TIMEOUT)
    return world


def stalled_of(world: World) -> ObservedCondition | None:
    """Return its Stalled condition while that is True."""
    stalled = find(world.status, ConditionType.STALLED)
    return stalled if stalled is not None and stalled.status == "True" else None


def reason_of(world: World) -> str | None:
    """Return why it stalls, or None."""
    stalled = stalled_of(world)
    return None if stalled is None else stalled.reason


def audit_of(world: World) -> list[str]:
    """Return what was audited, in order."""
    return [row.action for row in world.store.audit]


def uid_of(world: World) -> str:
    """Return the uid of the one machine there is."""
    (live,) = world.cluster.objects.values()
    return live.uid
