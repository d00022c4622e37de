"""Every event of every context, told in the transaction of its change and as its schema says."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg
import jsonschema
import pytest

from function.contract.strategy import Phase
from reconciler.adapters.postgres.connection import migrate
from reconciler.adapters.postgres.outbox.relay_store import PostgresOutbox
from reconciler.adapters.postgres.registration.operator_store import PostgresOperatorStore
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.events import lifecycle
from reconciler.domain.events.catalogue import CATALOGUE
from tests.contract.worlds import HOUR, World
from tests.unit.reconciler import samples

pytestmark = pytest.mark.integration

TOLD = """
SELECT id, aggregate_type, aggregate_id, aggregate_sequence, event_type, payload, occurred_at
FROM plexsphere.outbox_events
WHERE ($1::uuid IS NULL OR aggregate_id = $1) ORDER BY aggregate_id, aggregate_sequence
"""
PAST = """
UPDATE plexsphere.bootstrap_tokens
SET issued_at = issued_at - interval '2 hours', expires_at = expires_at - interval '2 hours'
WHERE id = $1
"""
ISSUED = "identity.BootstrapTokenIssued"
REVOKED = "identity.BootstrapTokenRevoked"
EXPIRED = "identity.BootstrapTokenExpired"
ASSIGNED = "managementfleet.ProjectClusterAssigned"
READY = "managementfleet.ProjectNamespaceReady"
TERMINATED = "managementfleet.ProjectNamespaceTerminated"


async def _rows(pool: asyncpg.Pool, aggregate: UUID | None = None) -> Sequence[Any]:
    return await pool.fetch(TOLD, aggregate)  # type: ignore[no-any-return]


async def _types(pool: asyncpg.Pool, aggregate: UUID) -> list[str]:
    rows = await _rows(pool, aggregate)
    assert [row["aggregate_sequence"] for row in rows] == list(range(1, len(rows) + 1))
    return [row["event_type"] for row in rows]


async def _tell_expired(dsn: str) -> int:
    outbox = PostgresOutbox(dsn)
    try:
        return await outbox.tell_expired()
    finally:
        await outbox.close()


async def _enter(world: World, resource: ProvisionedResource, phase: Phase) -> ProvisionedResource:
    event = lifecycle.on_phase(resource, phase, failure="quota")
    return await world.repository.update(replace(resource, phase=phase), event=event)


async def _assign(world: World, phase: str, *, cluster: str = "local") -> None:
    cluster_id = await world.tenancy.ensure_cluster(cluster, cluster)
    await world.tenancy.assign_project(
        samples.PROJECT, cluster_id, namespace=samples.NAMESPACE, phase=phase
    )


async def _live(world: World, dsn: str, pool: asyncpg.Pool) -> None:
    """Bring about every event there is."""
    await _assign(world, "Ready")
    await _assign(world, "Terminating")
    await _assign(world, "Deleted")
    failed = await _enter(world, await world.resource("failing"), Phase.FAILED)
    late = await world.token(failed)
    await pool.execute(PAST, late.id)
    await _tell_expired(dsn)
    resource = await world.resource("web-1")
    token = await world.token(resource)
    await world.token(resource, generation=2)
    await world.register(resource, token)
    resource = await _enter(world, await world.repository.get(resource.id), Phase.READY)
    resource = await world.repository.record_deletion_intent(
        replace(
            resource,
            phase=Phase.DEREGISTERING,
            deletion_requested_at=resource.updated_at + timedelta(seconds=1),
        )
    )
    await world.deregistrar.deregister(token.id)
    await _enter(world, resource, Phase.DELETED)


async def test_every_event_of_every_context_is_as_its_schema_says(
    world: World, dsn: str, pool: asyncpg.Pool
) -> None:
    await _live(world, dsn, pool)

    rows = await _rows(pool)

    assert {row["event_type"] for row in rows} == set(CATALOGUE)
    formats = jsonschema.Draft202012Validator.FORMAT_CHECKER
    for row in rows:
        kind = CATALOGUE[row["event_type"]]
        jsonschema.Draft202012Validator(kind.schema(), format_checker=formats).validate(
            row["payload"]
        )
        read = kind.payload.model_validate(row["payload"])
        assert (read.EventID, read.OccurredAt) == (UUID(int=row["id"].int), row["occurred_at"])
        assert row["aggregate_type"] == kind.aggregate
        assert read.EventID.version == 7
        assert read.EventID.variant == "specified in RFC 4122"


async def test_no_token_is_in_any_event(world: World, dsn: str, pool: asyncpg.Pool) -> None:
    resource = await world.resource()
    token = await world.token(resource)
    await world.register(resource, token)
    secret = token.plaintext.reveal()

    every = " ".join(str(dict(row)) for row in await _rows(pool))

    assert secret not in every
    assert secret.rpartition("_")[2] not in every


async def test_each_transition_has_one_id(world: World, pool: asyncpg.Pool) -> None:
    """Promise 6: repeated writes of one attempt are one event."""
    resource = await world.resource()
    for _ in range(3):
        resource = await _enter(world, resource, Phase.READY)

    types = await _types(pool, resource.id)

    assert types == ["broker.ProvisionedResourceRequested", "broker.ProvisionedResourceReady"]


async def test_ids_minted_by_the_database_are_in_the_order_of_time(pool: asyncpg.Pool) -> None:
    minted = [await pool.fetchval("SELECT plexsphere.new_event_id()") for _ in range(50)]

    stamps = [item.int >> 80 for item in minted]
    assert stamps == sorted(stamps)
    assert abs(stamps[0] / 1000 - (await pool.fetchval("SELECT now()")).timestamp()) < 60
    assert {UUID(int=item.int).version for item in minted} == {7}
    assert len(set(minted)) == 50


class TestTokens:
    async def test_one_that_is_revoked_with_its_resource(
        self, world: World, pool: asyncpg.Pool
    ) -> None:
        resource = await world.resource()
        token = await world.token(resource)

        await world.issuer.revoke(resource.id)
        await world.issuer.revoke(resource.id)

        assert await _types(pool, token.id) == [ISSUED, REVOKED]

    async def test_one_whose_generation_was_issued_before_tells_nothing(
        self, world: World, pool: asyncpg.Pool
    ) -> None:
        resource = await world.resource()
        await world.token(resource)
        before = len(await _rows(pool))

        with pytest.raises(Exception, match="was issued before"):
            await world.token(resource)

        assert len(await _rows(pool)) == before

    async def test_the_others_when_one_is_consumed(self, world: World, pool: asyncpg.Pool) -> None:
        resource = await world.resource()
        first, second = await world.token(resource), await world.token(resource, generation=2)

        await world.register(resource, first)

        assert await _types(pool, first.id) == [ISSUED]
        assert await _types(pool, second.id) == [ISSUED, REVOKED]

    async def test_one_that_an_operator_revokes(self, world: World, pool: asyncpg.Pool) -> None:
        token = await world.token(await world.resource())

        for _ in range(2):
            await PostgresOperatorStore(pool).revoke(samples.PROJECT, token.id, by="ann")

        assert await _types(pool, token.id) == [ISSUED, REVOKED]

    async def test_one_that_expires_is_told_once_by_whoever_looks(
        self, world: World, dsn: str, pool: asyncpg.Pool
    ) -> None:
        token = await world.token(await world.resource())
        await pool.execute(PAST, token.id)

        told = await asyncio.gather(*(_tell_expired(dsn) for _ in range(4)))

        assert sum(told) == 1
        assert await _types(pool, token.id) == [ISSUED, EXPIRED]
        row = (await _rows(pool, token.id))[-1]
        assert row["payload"]["ExpiresAt"] == row["payload"]["OccurredAt"]

    async def test_one_whose_window_opens_anew_expires_again(
        self, world: World, dsn: str, pool: asyncpg.Pool
    ) -> None:
        token = await world.token(await world.resource())
        await pool.execute(PAST, token.id)
        await _tell_expired(dsn)

        await world.issuer.extend(token.id, ttl=HOUR)
        assert await _tell_expired(dsn) == 0
        await pool.execute(PAST, token.id)
        await _tell_expired(dsn)

        assert await _types(pool, token.id) == [ISSUED, EXPIRED, EXPIRED]

    async def test_one_that_was_spent_does_not_expire(
        self, world: World, dsn: str, pool: asyncpg.Pool
    ) -> None:
        resource = await world.resource()
        token = await world.token(resource)
        await world.issuer.revoke(resource.id)
        await pool.execute(PAST, token.id)

        assert await _tell_expired(dsn) == 0


class TestFleet:
    async def test_a_cluster_is_registered_once(self, world: World, pool: asyncpg.Pool) -> None:
        cluster = await world.tenancy.ensure_cluster("eu-1", "Europe 1")
        await world.tenancy.ensure_cluster("eu-1", "Europe One")

        [row] = await _rows(pool, cluster)

        data = row["payload"]
        assert (data["Name"], data["Slug"], data["Region"]) == ("Europe 1", "eu-1", "")

    async def test_a_project_is_assigned_and_its_namespace_ready_once(
        self, world: World, pool: asyncpg.Pool
    ) -> None:
        for _ in range(3):
            await _assign(world, "Ready")

        assert await _types(pool, samples.PROJECT) == [ASSIGNED, READY]

    async def test_a_namespace_that_is_ready_later(self, world: World, pool: asyncpg.Pool) -> None:
        await _assign(world, "Pending")
        await _assign(world, "Provisioning")
        await _assign(world, "Ready")

        assert await _types(pool, samples.PROJECT) == [ASSIGNED, READY]

    async def test_a_namespace_that_was_terminated_and_made_anew(
        self, world: World, pool: asyncpg.Pool
    ) -> None:
        for phase in ("Ready", "Terminating", "Terminating", "Ready"):
            await _assign(world, phase)

        assert await _types(pool, samples.PROJECT) == [ASSIGNED, READY, TERMINATED, READY]

    async def test_a_project_that_moves_is_assigned_again(
        self, world: World, pool: asyncpg.Pool
    ) -> None:
        await _assign(world, "Ready")
        await _assign(world, "Terminating")
        await _assign(world, "Deleted")
        await _assign(world, "Pending", cluster="other")

        assert await _types(pool, samples.PROJECT) == [ASSIGNED, READY, TERMINATED, ASSIGNED]
        last = (await _rows(pool, samples.PROJECT))[-1]["payload"]
        assert last["ManagementClusterID"] == str(ids.management_cluster_id("other"))


async def test_a_placement_counts_on_after_going_back_and_forth(
    world: World, dsn: str, pool: asyncpg.Pool
) -> None:
    await _assign(world, "Ready")
    await migrate.downgrade(dsn, "0027")
    await migrate.migrate(dsn)
    await pool.expire_connections()

    await _assign(world, "Terminating")
    await _assign(world, "Deleted")

    assert await _types(pool, samples.PROJECT) == [ASSIGNED, READY, TERMINATED]
