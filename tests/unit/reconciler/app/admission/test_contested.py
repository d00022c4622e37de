"""What one aggregate protects is refused to another until it is gone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from function.contract.conditions import ConditionType, find
from reconciler.app.converge.requeue import AGAIN_S
from tests.unit.reconciler import samples
from tests.unit.reconciler.app.enrolled_world import EnrolledWorld, record
from tests.unit.reconciler.app.world import GONE

RIVAL = {**samples.XR, "apiVersion": "platform.test/v1", "kind": "Pool", "name": "rival"}


def _rival(world: EnrolledWorld, *, siblings: bool = True) -> EnrolledWorld:
    """Return another composite's resource on the same cluster and store, a minute later."""
    world.store.clock.advance(timedelta(minutes=1))
    raw: dict[str, Any] = record("other", siblings=siblings)
    raw["spec"]["declaration"]["xr"] = RIVAL
    raw["metadata"]["ownerReferences"][0] |= RIVAL
    return EnrolledWorld(raw=raw, cluster=world.cluster, store=world.store)


async def _ready() -> EnrolledWorld:
    world = EnrolledWorld(raw=record())
    await world.until_ready()
    return world


async def test_a_sibling_of_another_composite_is_refused_with_its_holder() -> None:
    first = await _ready()
    rival = _rival(first)

    again = await rival.tick()

    admitted = find(rival.status, ConditionType.ADMITTED)
    assert admitted is not None
    assert (admitted.status, admitted.reason) == ("False", "ProtectedElsewhere")
    assert "Network 'net' is protected for Pool 'pool', resource 'server'" in admitted.message
    assert again == AGAIN_S
    assert len(first.store.resources) == 1
    assert first.cluster.records_in[samples.NAMESPACE] == 1


async def test_it_is_accepted_once_the_holder_is_gone() -> None:
    first = await _ready()
    rival = _rival(first)
    await rival.tick()

    first.delete(xr=GONE)
    await first.tick_until_quiet()
    await rival.tick()

    admitted = find(rival.status, ConditionType.ADMITTED)
    assert admitted is not None
    assert admitted.status == "True"


async def test_a_sibling_that_an_accepted_record_lists_later_is_refused_and_the_rest_stays() -> (
    None
):
    first = await _ready()
    rival = _rival(first, siblings=False)
    await rival.until_ready()
    accepted = rival.resource.protected

    rival.raw["spec"]["substrate"] = record("other")["spec"]["substrate"]
    rival.raw["spec"]["substrate"][0]["name"] = accepted[0].reference.name
    again = await rival.tick()

    admitted = find(rival.status, ConditionType.ADMITTED)
    assert admitted is not None
    assert admitted.reason == "ProtectedElsewhere"
    assert again == AGAIN_S
    assert rival.status["phase"] == "Ready"
    assert accepted in [item.protected for item in rival.store.resources.values()]
