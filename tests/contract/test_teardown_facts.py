"""What a teardown must know of an aggregate comes back from the store as it was put there."""

from __future__ import annotations

from dataclasses import replace

from function.contract.record import Enrolment, SubstrateReference
from reconciler.domain.aggregate.children import Child
from tests.contract.worlds import World
from tests.unit.reconciler import samples

DISK = SubstrateReference(api_version="cloud.test/v1", kind="Disk", name="vm")
CHILDREN = (Child(reference=DISK, uid="u"), Child(reference=samples.SUBSTRATE))
KNOBS = Enrolment(base_url="https://api.example.org", plexd_sha256={"amd64": "0" * 64})


async def test_a_new_aggregate_has_neither_children_nor_a_document(world: World) -> None:
    resource = await world.resource()

    assert (resource.children, resource.rendered_with) == ((), None)


async def test_children_and_knobs_come_back_as_they_were_stored(world: World) -> None:
    resource = await world.resource()

    await world.repository.update(replace(resource, children=CHILDREN, rendered_with=KNOBS))

    stored = await world.repository.get(resource.id)
    assert (stored.children, stored.rendered_with) == (CHILDREN, KNOBS)


async def test_a_new_aggregate_may_bring_them_along(world: World) -> None:
    resource = await world.resource(children=CHILDREN, rendered_with=KNOBS)

    assert (resource.children, resource.rendered_with) == (CHILDREN, KNOBS)
