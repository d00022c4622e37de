"""What the store knows of leftovers, and how their findings are kept."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import asyncpg
import pytest
from click.testing import CliRunner

from function.contract.record import SubstrateReference
from function.contract.strategy import Phase
from reconciler.adapters.postgres.fence import Store
from reconciler.adapters.postgres.orphan_ledger import PostgresOrphanLedger
from reconciler.domain.broker.orphans import (
    REMEDY,
    Finding,
    Marked,
    Orphan,
    Unrecorded,
    namespace,
)
from reconciler.domain.broker.protected_object import ProtectedObject
from reconciler.domain.broker.resource import ProvisionedResource
from reconciler.main import cli
from reconciler.ports.broker import IssuedToken
from reconciler.ports.identity import Registered
from tests.contract.worlds import ELSEWHERE, World
from tests.unit.reconciler import samples

pytestmark = pytest.mark.integration

SIBLING = SubstrateReference(api_version="cloud.test/v1", kind="Network", name="net")
ORPHANS = [
    Orphan(finding=Finding.RECORD_MISSING, subject="pr-1", detail="record shop/web is gone"),
    Orphan(finding=Finding.NODE_OF_DELETED, subject="node n", detail="at 100.64.0.7"),
]


@pytest.fixture
def ledger(pool: asyncpg.Pool) -> PostgresOrphanLedger:
    return PostgresOrphanLedger(Store(pool), samples.CLUSTER)


async def _deleted(
    world: World, resource: ProvisionedResource, token: IssuedToken | None = None
) -> None:
    requested = await world.repository.record_deletion_intent(
        resource.request_deletion(datetime.now(UTC))
    )
    if token is not None:
        await world.deregistrar.deregister(token.id)
    await world.repository.update(requested.enter(Phase.DELETED, datetime.now(UTC)))


def _marked(reference: SubstrateReference, namespace: str = samples.NAMESPACE) -> Marked:
    return Marked(
        api_version=reference.api_version,
        kind=reference.kind,
        namespace=namespace,
        name=reference.name,
        record="web-1-abc",
        uid="uid-of-it",
    )


async def test_every_kind_that_was_ever_protected_is_known(
    world: World, ledger: PostgresOrphanLedger
) -> None:
    protected = (*samples.resource().protected, ProtectedObject(reference=SIBLING, sibling=True))
    await _deleted(world, await world.resource(protected=protected))

    kinds = await ledger.kinds()

    assert set(kinds) == {
        (samples.SUBSTRATE.api_version, samples.SUBSTRATE.kind),
        (SIBLING.api_version, SIBLING.kind),
    }


async def test_an_object_is_unprotected_when_its_aggregate_is_deleted_or_elsewhere(
    world: World, ledger: PostgresOrphanLedger
) -> None:
    held = samples.SUBSTRATE.model_copy(update={"name": "held"})
    gone = samples.SUBSTRATE.model_copy(update={"name": "gone"})
    await world.resource("web-1", protected=(ProtectedObject(reference=held),))
    await _deleted(
        world, await world.resource("web-2", protected=(ProtectedObject(reference=gone),))
    )
    asked = [_marked(held), _marked(gone), _marked(held, "elsewhere"), _marked(SIBLING)]

    assert list(await ledger.unprotected(asked)) == asked[1:]
    assert list(await ledger.unprotected([])) == []


async def test_records_are_expected_of_what_nobody_deletes(
    world: World, ledger: PostgresOrphanLedger
) -> None:
    resource = await world.resource("web-1")
    await _deleted(world, await world.resource("web-2"))

    assert list(await ledger.expected_records()) == [
        Unrecorded(
            namespace=resource.key.namespace, record=resource.record.name, handle=resource.xr_name
        )
    ]


async def test_a_node_in_the_mesh_is_left_when_its_resource_is_deleted(
    world: World, ledger: PostgresOrphanLedger
) -> None:
    for name, leaves in (("web-1", True), ("web-2", False), ("web-3", None)):
        claimed = await world.repository.update(replace(await world.resource(name), generation=1))
        token = await world.token(claimed)
        assert isinstance(await world.register(claimed, token), Registered)
        stored = await world.repository.update(replace(claimed, bootstrap_token_id=token.id))
        if leaves is not None:
            await _deleted(world, stored, token if leaves else None)
        if leaves is False:
            left = stored

    (found,) = await ledger.left_nodes()

    assert found.finding is Finding.NODE_OF_DELETED
    assert left.xr_name in found.detail
    assert found.involved == namespace(left.key.namespace)


async def test_findings_are_kept_from_the_first_sweep_to_the_last(
    world: World, ledger: PostgresOrphanLedger, pool: asyncpg.Pool
) -> None:
    first = await ledger.settle(set(ORPHANS))
    again = await ledger.settle(set(ORPHANS))
    await ledger.settle(set(ORPHANS[1:]))
    anew = await ledger.settle(set(ORPHANS))

    assert (set(first), list(again), list(anew)) == (set(ORPHANS), [], ORPHANS[:1])
    rows = await pool.fetch(
        "SELECT subject, gone_at IS NULL AS stands FROM plexsphere.orphans ORDER BY found_at"
    )
    told = sorted((row["subject"], row["stands"]) for row in rows)
    assert told == [("node n", True), ("pr-1", False), ("pr-1", True)]


async def test_what_stands_is_not_written(
    world: World, ledger: PostgresOrphanLedger, pool: asyncpg.Pool
) -> None:
    await ledger.settle(set(ORPHANS))
    before = await pool.fetch("SELECT xmin, * FROM plexsphere.orphans ORDER BY subject")

    await ledger.settle(set(ORPHANS))

    assert await pool.fetch("SELECT xmin, * FROM plexsphere.orphans ORDER BY subject") == before


async def test_another_cluster_has_leftovers_of_its_own(
    world: World, ledger: PostgresOrphanLedger, pool: asyncpg.Pool
) -> None:
    await world.tenancy.ensure_cluster("elsewhere", "Elsewhere")
    await world.resource("web-1")
    elsewhere = PostgresOrphanLedger(Store(pool), ELSEWHERE)
    await ledger.settle(set(ORPHANS))

    await elsewhere.settle(set())

    assert list(await elsewhere.kinds()) == []
    assert list(await elsewhere.expected_records()) == []
    assert list(await ledger.settle(set(ORPHANS))) == []


async def test_the_command_prints_what_stands_and_what_can_be_done(
    world: World, ledger: PostgresOrphanLedger, dsn: str
) -> None:
    quiet = await _printed(dsn)
    await ledger.settle(set(ORPHANS))

    told = await _printed(dsn)

    assert quiet == "nothing is left over\n"
    for orphan in ORPHANS:
        assert f"{orphan.finding.value}  {orphan.subject}\n" in told
        assert orphan.detail in told
        assert REMEDY[orphan.finding] in told


async def _printed(dsn: str) -> str:
    environ = {"PLEXSPHERE_DSN": dsn}
    result = await asyncio.to_thread(CliRunner().invoke, cli, ["orphans"], env=environ)
    assert result.exit_code == 0, result.output
    return result.output
