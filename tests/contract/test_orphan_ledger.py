"""What `ports.cluster.orphans.OrphanLedger` promises, on the fake and on Postgres."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from function.contract.record import SubstrateReference
from function.contract.strategy import Phase
from reconciler.domain.aggregate.protected_object import ProtectedObject
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.teardown.orphans import (
    MarkedObject,
    Orphan,
    OrphanFinding,
    Unrecorded,
    namespace,
)
from reconciler.ports.registration import Registered
from reconciler.ports.store.aggregates import IssuedToken
from tests.contract.worlds import World
from tests.unit.reconciler import samples

pytestmark = pytest.mark.contract

SIBLING = SubstrateReference(api_version="cloud.test/v1", kind="Network", name="net")
ORPHANS = [
    Orphan(finding=OrphanFinding.RECORD_MISSING, subject="pr-1", detail="record shop/web is gone"),
    Orphan(finding=OrphanFinding.NODE_OF_DELETED, subject="node n", detail="at 100.64.0.7"),
]


async def _deleted(
    world: World, resource: ProvisionedResource, token: IssuedToken | None = None
) -> None:
    requested = await world.repository.record_deletion_intent(
        resource.request_deletion(datetime.now(UTC))
    )
    if token is not None:
        await world.deregistrar.deregister(token.id)
    await world.repository.update(requested.enter(Phase.DELETED, datetime.now(UTC)))


def _marked(reference: SubstrateReference, namespace: str = samples.NAMESPACE) -> MarkedObject:
    return MarkedObject(
        api_version=reference.api_version,
        kind=reference.kind,
        namespace=namespace,
        name=reference.name,
        record="web-1-abc",
        uid="uid-of-it",
    )


async def test_every_kind_that_was_ever_protected_is_known(world: World) -> None:
    protected = (*samples.resource().protected, ProtectedObject(reference=SIBLING, sibling=True))
    await _deleted(world, await world.resource(protected=protected))

    kinds = await world.orphans.kinds()

    assert set(kinds) == {
        (samples.SUBSTRATE.api_version, samples.SUBSTRATE.kind),
        (SIBLING.api_version, SIBLING.kind),
    }


async def test_an_object_is_unprotected_when_its_aggregate_is_deleted_or_elsewhere(
    world: World,
) -> None:
    held = samples.SUBSTRATE.model_copy(update={"name": "held"})
    gone = samples.SUBSTRATE.model_copy(update={"name": "gone"})
    await world.resource("web-1", protected=(ProtectedObject(reference=held),))
    await _deleted(
        world, await world.resource("web-2", protected=(ProtectedObject(reference=gone),))
    )
    asked = [_marked(held), _marked(gone), _marked(held, "elsewhere"), _marked(SIBLING)]

    assert list(await world.orphans.unprotected(asked)) == asked[1:]
    assert list(await world.orphans.unprotected([])) == []


async def test_records_are_expected_of_what_nobody_deletes(world: World) -> None:
    resource = await world.resource("web-1")
    await _deleted(world, await world.resource("web-2"))

    assert list(await world.orphans.expected_records()) == [
        Unrecorded(
            namespace=resource.key.namespace, record=resource.record.name, handle=resource.xr_name
        )
    ]


async def test_a_node_in_the_mesh_is_left_when_its_resource_is_deleted(world: World) -> None:
    for name, leaves in (("web-1", True), ("web-2", False), ("web-3", None)):
        claimed = await world.repository.update(replace(await world.resource(name), generation=1))
        token = await world.token(claimed)
        assert isinstance(await world.register(claimed, token), Registered)
        stored = await world.repository.update(replace(claimed, bootstrap_token_id=token.id))
        if leaves is not None:
            await _deleted(world, stored, token if leaves else None)
        if leaves is False:
            left = stored

    (found,) = await world.orphans.left_nodes()

    assert found.finding is OrphanFinding.NODE_OF_DELETED
    assert left.xr_name in found.detail
    assert found.involved == namespace(left.key.namespace)


async def test_what_stood_not_before_is_told_apart_from_what_stood(world: World) -> None:
    first = await world.orphans.settle(set(ORPHANS))
    again = await world.orphans.settle(set(ORPHANS))
    await world.orphans.settle(set(ORPHANS[1:]))
    anew = await world.orphans.settle(set(ORPHANS))

    assert (set(first), list(again), list(anew)) == (set(ORPHANS), [], ORPHANS[:1])


async def test_a_finding_whose_detail_changed_stands_as_before(world: World) -> None:
    await world.orphans.settle(set(ORPHANS))
    changed = {replace(item, detail="told otherwise") for item in ORPHANS}

    assert list(await world.orphans.settle(changed)) == []
    assert list(await world.orphans.settle(set(ORPHANS))) == []


async def test_one_subject_may_stand_for_two_findings(world: World) -> None:
    other = replace(ORPHANS[0], finding=OrphanFinding.SUBSTRATE_WITHOUT_RECORD)

    await world.orphans.settle({ORPHANS[0]})

    assert list(await world.orphans.settle({ORPHANS[0], other})) == [other]


async def test_another_cluster_has_leftovers_of_its_own(world: World) -> None:
    await world.tenancy.ensure_cluster("elsewhere", "Elsewhere")
    await world.resource("web-1")
    elsewhere = world.foreign_orphans
    await world.orphans.settle(set(ORPHANS))

    await elsewhere.settle(set())

    assert list(await elsewhere.kinds()) == []
    assert list(await elsewhere.expected_records()) == []
    assert list(await world.orphans.settle(set(ORPHANS))) == []
