"""What `ports.store.census.Census` promises."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from uuid_utils.compat import uuid7

from function.contract import names
from function.contract.strategy import MeshRole, Phase
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.protected_object import ProtectedObject
from reconciler.domain.aggregate.resource import ProvisionedResource, RecordIdentity
from reconciler.ports.store import census
from reconciler.ports.store.census import CredentialUse
from tests.contract.worlds import ELSEWHERE, World
from tests.unit.reconciler import samples

pytestmark = pytest.mark.contract


async def _made(world: World, name: str, **changes: object) -> ProvisionedResource:
    """Store another aggregate of the world's Project."""
    first = await world.resource()
    identity = ids.ProvisionedResourceID(uuid7())
    substrate = samples.SUBSTRATE.model_copy(update={"name": names.xr_name(identity)})
    fields = {
        "id": identity,
        "xr_name": names.xr_name(identity),
        "key": replace(first.key, name=name),
        "record": RecordIdentity(name=f"{name}-record", uid=str(uuid7())),
        "protected": (ProtectedObject(reference=substrate),),
        "version": 0,
        **changes,
    }
    return await world.repository.create(replace(first, **fields))  # type: ignore[arg-type]  # fields all


async def _deleted(world: World, resource: ProvisionedResource) -> ProvisionedResource:
    asked = await world.repository.record_deletion_intent(resource.request_deletion(samples.NOW))
    return await world.repository.update(replace(asked, phase=Phase.DELETED))


async def test_what_is_deleted_is_not_counted(world: World) -> None:
    here = (await world.resource()).key.namespace
    second = await _made(world, "second")
    assert await world.repository.count_in_namespace(here) == 2

    await _deleted(world, second)

    assert await world.repository.count_in_namespace(here) == 1
    assert await world.repository.count_in_namespace("elsewhere") == 0


async def test_a_namespace_is_emptied_once_all_that_was_in_it_is_deleted(world: World) -> None:
    first = await world.resource()
    second = await _made(world, "second")
    await _made(world, "third", key=replace(first.key, name="third", namespace="beside"))
    await _deleted(world, second)
    assert await world.repository.emptied(samples.CLUSTER) == []

    await _deleted(world, first)

    assert await world.repository.emptied(samples.CLUSTER) == [first.key.namespace]
    assert await world.repository.emptied(ELSEWHERE) == []


async def test_a_credential_in_use_is_named_once_per_kind_of_use(world: World) -> None:
    here = (await world.resource()).key.namespace
    await _made(world, "second")
    enrolled = samples.ENROLLED.model_copy(update={"cloud_credential": "demo-main"})
    await _made(world, "pool", accepted=enrolled)
    gone = samples.DECLARATION.model_copy(update={"cloud_credential": "gone"})
    await _deleted(world, await _made(world, "third", accepted=gone))

    assert await world.repository.credential_uses(here) == [
        CredentialUse(credential="demo-main", enrolled=False),
        CredentialUse(credential="demo-main", enrolled=True),
    ]


async def test_pages_follow_each_other_without_gap_or_repetition(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("reconciler.adapters.postgres.aggregates.counts", "tests.fakes.census"):
        monkeypatch.setattr(f"{module}.PAGE", 2)
    made = {(await _made(world, f"n{number}")).id for number in range(4)}
    made.add((await world.resource()).id)

    pages = [await world.repository.sightings(samples.CLUSTER)]
    while pages[-1]:
        pages.append(await world.repository.sightings(samples.CLUSTER, after=pages[-1][-1]))

    seen = [sighting for page in pages for sighting in page]
    assert [len(page) for page in pages] == [2, 2, 1, 0]
    assert {sighting.id for sighting in seen} == made
    places = [(sighting.created_at, sighting.id) for sighting in seen]
    assert all(first < second for first, second in pairwise(places))


async def test_a_sighting_tells_what_a_sweep_asks(world: World) -> None:
    resource = await world.resource()

    (seen,) = await world.repository.sightings(samples.CLUSTER)

    assert seen == census.RecordEntry(
        id=resource.id,
        created_at=resource.created_at,
        namespace=resource.key.namespace,
        record=resource.record.name,
        credential="demo-main",
        asked=False,
        version=resource.version,
        expects_node=True,
        node=None,
    )


async def test_it_tells_a_requested_deletion_and_a_machine_that_is_no_node(world: World) -> None:
    standalone = samples.DECLARATION.model_copy(update={"mesh_role": MeshRole.STANDALONE})
    resource = await _made(world, "lone", accepted=standalone)
    await world.repository.record_deletion_intent(resource.request_deletion(samples.NOW))

    (seen,) = await world.repository.sightings_of(
        samples.CLUSTER, namespace=resource.key.namespace, record=resource.record.name
    )

    assert (seen.asked, seen.expects_node) == (True, False)


async def test_what_is_deleted_or_anothers_is_not_seen(world: World) -> None:
    resource = await world.resource()
    elsewhere = ids.management_cluster_id("elsewhere")
    where = {"namespace": resource.key.namespace, "record": resource.record.name}
    assert await world.repository.sightings(elsewhere) == []
    assert await world.repository.sightings_of(elsewhere, **where) == []

    await _deleted(world, resource)

    assert await world.repository.sightings(samples.CLUSTER) == []
    assert await world.repository.sightings_of(samples.CLUSTER, **where) == []


async def test_deleted_ones_with_a_sibling_to_settle_are_found_by_their_record(
    world: World,
) -> None:
    sibling = ProtectedObject(reference=samples.NETWORK, sibling=True)
    server = ProtectedObject(reference=samples.SERVER)
    resource = await _made(world, "p", accepted=samples.ENROLLED, protected=(server, sibling))
    deleted = await _deleted(world, resource)
    where = {"namespace": deleted.key.namespace, "record": deleted.record.name}

    assert await world.repository.unsettled(samples.CLUSTER) == [deleted.id]
    assert await world.repository.unsettled(samples.CLUSTER, **where) == [deleted.id]
    assert await world.repository.unsettled(samples.CLUSTER, **where | {"record": "x"}) == []
    assert await world.repository.unsettled(ids.management_cluster_id("elsewhere")) == []


async def test_those_that_never_settle_keep_none_of_the_others_waiting(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("reconciler.adapters.postgres.aggregates.counts", "tests.fakes.census"):
        monkeypatch.setattr(f"{module}.PAGE", 2)
    left = []
    for number in range(3):
        sibling = ProtectedObject(reference=samples.NETWORK, sibling=True)
        server = ProtectedObject(
            reference=samples.SERVER.model_copy(update={"name": f"server-{number}"})
        )
        parts = {"accepted": samples.ENROLLED, "protected": (server, sibling)}
        left.append((await _deleted(world, await _made(world, f"p{number}", **parts))).id)

    looks = [await world.repository.unsettled(samples.CLUSTER) for _ in range(3)]

    assert [len(look) for look in looks] == [2, 1, 2]
    assert set(looks[0]) | set(looks[1]) == set(left)
    assert looks[2] == looks[0]


async def test_nobody_said_that_the_cluster_is_as_it_seems(world: World) -> None:
    await world.resource()

    assert not await world.repository.thawed(samples.CLUSTER, within=timedelta(hours=1))
