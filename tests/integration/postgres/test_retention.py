"""What is over leaves the store, and nothing else does."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import asyncpg
import pytest
from click.testing import CliRunner

from function.contract.strategy import BootstrapState, Phase
from reconciler.adapters.postgres.aggregates import retention
from reconciler.adapters.postgres.aggregates.retention import PostgresRetention
from reconciler.app.housekeeping.retention import Retention
from reconciler.domain.aggregate.protected_object import ProtectedObject
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.events import lifecycle
from reconciler.domain.identity.denial import Denial
from reconciler.main import cli
from reconciler.ports.registration import Registered
from reconciler.ports.store.aggregates import IssuedToken
from reconciler.ports.store.retention import Remains
from tests.contract.worlds import World
from tests.unit.reconciler import samples

pytestmark = pytest.mark.integration

DAY = timedelta(days=1)
KEEP = {
    Remains.EVENTS: 7 * DAY,
    Remains.TOKENS: 30 * DAY,
    **dict.fromkeys((Remains.RESOURCES, Remains.ORPHANS), 90 * DAY),
}
LONG_AGO, YESTERDAY = timedelta(days=100), timedelta(hours=24)

AGE_RESOURCE = """
UPDATE plexsphere.provisioned_resources
SET created_at = created_at - $2::interval, updated_at = updated_at - $2::interval,
    deletion_requested_at = deletion_requested_at - $2::interval
WHERE id = $1
"""
AGE_TOKENS = """
UPDATE plexsphere.bootstrap_tokens
SET issued_at = issued_at - $2::interval, expires_at = expires_at - $2::interval,
    consumed_at = consumed_at - $2::interval, revoked_at = revoked_at - $2::interval
WHERE provisioned_resource_id = $1
"""
AGE_NODES = """
UPDATE plexsphere.nodes
SET registered_at = registered_at - $2::interval,
    deregistered_at = deregistered_at - $2::interval
WHERE provisioned_resource_id = $1
"""
PUBLISH = """
UPDATE plexsphere.outbox_events SET published_at = now() - $2::interval, id = $3 WHERE id = $1
"""
COUNTS = """
SELECT (SELECT count(*) FROM plexsphere.provisioned_resources),
       (SELECT count(*) FROM plexsphere.bootstrap_tokens),
       (SELECT count(*) FROM plexsphere.nodes),
       (SELECT count(*) FROM plexsphere.registration_nonces),
       (SELECT count(*) FROM plexsphere.provisioned_resource_outbox_token)
"""


class Past:
    """Lets time pass for single rows, and counts what is left."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._retention = Retention(PostgresRetention(pool), KEEP)

    async def age(self, resource: ProvisionedResource, by: timedelta) -> None:
        """Make an aggregate, its tokens and its nodes older."""
        for statement in (AGE_RESOURCE, AGE_TOKENS, AGE_NODES):
            await self._pool.execute(statement, resource.id, by)

    async def publish(self, by: timedelta, *, but: int = 0) -> None:
        """Publish every event but some of the newest, a while ago, as a relay did then."""
        rows = await self._pool.fetch(
            "SELECT id FROM plexsphere.outbox_events WHERE published_at IS NULL ORDER BY sequence"
        )
        for row in rows[: len(rows) - but]:
            await self._pool.execute(PUBLISH, row["id"], by, _older(row["id"], by))

    async def clean(self) -> dict[Remains, int]:
        """Make a pass."""
        return dict(await self._retention.make_pass())

    async def counts(self) -> tuple[int, ...]:
        """Count resources, tokens, nodes, nonces and event guards."""
        return tuple(await self._pool.fetchrow(COUNTS))


@pytest.fixture
def past(pool: asyncpg.Pool) -> Past:
    return Past(pool)


def _older(event_id: UUID, by: timedelta) -> UUID:
    """Return the UUIDv7 of an earlier millisecond."""
    number = UUID(int=event_id.int).int
    return UUID(int=number - ((by // timedelta(milliseconds=1)) << 80))


async def _gone(
    world: World, resource: ProvisionedResource, token: IssuedToken | None = None
) -> ProvisionedResource:
    """Tear an aggregate down to Deleted."""
    requested = await world.repository.record_deletion_intent(
        resource.request_deletion(datetime.now(UTC))
    )
    if token is not None:
        await world.deregistrar.deregister(token.id)
    deleted = requested.enter(Phase.DELETED, datetime.now(UTC))
    return await world.repository.update(
        deleted, event=lifecycle.on_phase(requested, Phase.DELETED)
    )


async def _life(world: World, name: str) -> ProvisionedResource:
    """Take an aggregate with a node through its whole life."""
    resource = await world.resource(name)
    resource, token = await _generation(world, resource, 1)
    assert isinstance(await world.register(resource, token), Registered)
    return await _gone(world, resource, token)


async def _generation(
    world: World, resource: ProvisionedResource, number: int
) -> tuple[ProvisionedResource, IssuedToken]:
    claimed = await world.repository.update(replace(resource, generation=number))
    token = await world.token(claimed, number)
    return await world.repository.update(replace(claimed, bootstrap_token_id=token.id)), token


async def test_a_life_that_was_over_long_ago_leaves_no_row(world: World, past: Past) -> None:
    resource = await _life(world, "web-1")
    await past.publish(LONG_AGO)
    await past.age(resource, LONG_AGO)

    removed = await past.clean()

    assert removed[Remains.TOKENS] == removed[Remains.RESOURCES] == 1
    assert await past.counts() == (0, 0, 0, 0, 0)
    assert await world.backdoor.events(resource.id) == []


async def test_what_was_over_yesterday_stays(world: World, past: Past) -> None:
    resource = await _life(world, "web-1")
    await past.publish(YESTERDAY)
    await past.age(resource, YESTERDAY)
    before = await past.counts()

    removed = await past.clean()

    assert set(removed.values()) == {0}
    assert await past.counts() == before
    assert len(await world.backdoor.events(resource.id)) == 3


async def test_a_pass_again_removes_nothing(world: World, past: Past) -> None:
    await past.age(await _life(world, "web-1"), LONG_AGO)
    await past.publish(LONG_AGO)
    await past.clean()

    assert set((await past.clean()).values()) == {0}


async def test_a_live_node_keeps_its_token_and_its_nonce_however_old(
    world: World, past: Past
) -> None:
    resource, token = await _generation(world, await world.resource(), 1)
    await world.register(resource, token)
    await past.age(resource, LONG_AGO)

    await past.clean()

    assert await past.counts() == (1, 1, 1, 1, 1)
    assert await world.deregistrar.find_node(token.id) is not None


async def test_the_newest_token_of_what_lives_stays_however_long_it_is_spent(
    world: World, past: Past
) -> None:
    resource, _ = await _generation(world, await world.resource(), 1)
    await world.issuer.revoke(resource.id)
    await past.age(resource, LONG_AGO)

    await past.clean()

    assert (await past.counts())[:2] == (1, 1)


async def test_the_token_that_an_aggregate_names_stays_while_the_next_is_only_claimed(
    world: World, past: Past
) -> None:
    resource, token = await _generation(world, await world.resource(), 1)
    await world.issuer.revoke(resource.id)
    await world.repository.update(replace(resource, generation=2))
    await past.age(resource, LONG_AGO)

    removed = await past.clean()

    assert removed[Remains.TOKENS] == 0
    assert await world.issuer.state(token.id) is BootstrapState.REVOKED


async def test_an_earlier_generation_leaves_with_its_node_and_the_newest_stays(
    world: World, past: Past
) -> None:
    resource, first = await _generation(world, await world.resource(), 1)
    await world.register(resource, first)
    await world.deregistrar.deregister(first.id)
    await past.age(resource, LONG_AGO)
    resource, second = await _generation(world, resource, 2)
    await world.register(resource, second)

    removed = await past.clean()

    assert removed[Remains.TOKENS] == 1
    assert await past.counts() == (1, 1, 1, 1, 1)
    assert await world.deregistrar.find_node(second.id) is not None


async def test_a_node_that_was_given_up_keeps_its_resource(world: World, past: Past) -> None:
    resource, token = await _generation(world, await world.resource(), 1)
    await world.register(resource, token)
    deleted = await _gone(world, resource)
    await past.age(deleted, LONG_AGO)
    await past.publish(LONG_AGO)

    await past.clean()

    assert (await past.counts())[:3] == (1, 1, 1)


async def test_a_sibling_that_is_not_settled_keeps_its_resource(world: World, past: Past) -> None:
    sibling = ProtectedObject(reference=samples.NETWORK, sibling=True)
    resource = await world.resource("pool")
    resource = await world.repository.update(
        replace(resource, protected=(*resource.protected, sibling))
    )
    deleted = await _gone(world, resource)
    await past.age(deleted, LONG_AGO)
    await past.publish(LONG_AGO)

    await past.clean()

    assert (await past.counts())[0] == 1


async def test_an_event_that_was_not_told_keeps_itself_and_its_resource(
    world: World, past: Past
) -> None:
    resource = await _gone(world, await world.resource())
    await past.age(resource, LONG_AGO)
    await past.publish(LONG_AGO, but=1)

    await past.clean()

    (left,) = await world.backdoor.events(resource.id)
    assert left.type == lifecycle.EventType.DELETED
    assert left.aggregate_sequence == 3
    assert (await past.counts())[0] == 1


async def test_the_order_goes_on_after_told_events_were_removed(world: World, past: Past) -> None:
    resource = await world.resource()
    await past.publish(LONG_AGO)
    await past.clean()
    assert await world.backdoor.events(resource.id) == []

    await world.repository.update(
        replace(resource, phase=Phase.READY), event=lifecycle.on_phase(resource, Phase.READY)
    )

    assert [row.aggregate_sequence for row in await world.backdoor.events(resource.id)] == [2]


async def test_a_machine_that_comes_after_its_tokens_row_went_is_told_the_same_as_a_stranger(
    world: World, past: Past
) -> None:
    resource, token = await _generation(world, await world.resource(), 1)
    deleted = await _gone(world, resource)
    revoked = await world.register(resource, token)
    await past.age(deleted, LONG_AGO)
    await past.clean()

    unknown = await world.register(resource, token)

    assert isinstance(revoked, Denial)
    assert isinstance(unknown, Denial)
    assert (revoked.status, revoked.code) == (403, "token_revoked")
    assert (unknown.status, unknown.code, unknown.told) == (403, "token_unknown", False)


async def test_a_name_whose_row_went_can_be_declared_again(world: World, past: Past) -> None:
    await past.age(await _life(world, "web-1"), LONG_AGO)
    await past.publish(LONG_AGO)
    await past.clean()

    again = await world.resource("web-1")

    assert again.phase is Phase.PENDING


async def test_more_than_a_batch_goes_in_one_pass(
    world: World, past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.app.housekeeping.retention.BATCH", 2)
    for number in range(5):
        await past.age(await _gone(world, await world.resource(f"web-{number}")), LONG_AGO)
    await past.publish(LONG_AGO)

    removed = await past.clean()

    assert removed[Remains.RESOURCES] == 5
    assert removed[Remains.EVENTS] >= 15


async def _found(pool: asyncpg.Pool, subject: str, *, gone: timedelta | None) -> None:
    await pool.execute(
        "INSERT INTO plexsphere.orphans "
        "(management_cluster_id, finding, subject, detail, found_at, gone_at) "
        "VALUES ($1, 'record-missing', $2, 'gone', now() - interval '1 year', "
        "now() - $3::interval)",
        samples.CLUSTER,
        subject,
        gone,
    )


async def test_a_finding_leaves_long_after_it_was_gone_and_one_that_stands_stays(
    world: World, past: Past, pool: asyncpg.Pool
) -> None:
    for subject, gone in (("old", LONG_AGO), ("young", YESTERDAY), ("standing", None)):
        await _found(pool, subject, gone=gone)

    removed = await past.clean()

    left = await pool.fetch("SELECT subject FROM plexsphere.orphans ORDER BY subject")
    assert removed[Remains.ORPHANS] == 1
    assert [row["subject"] for row in left] == ["standing", "young"]


async def test_more_findings_than_a_batch_go_in_one_pass(
    world: World, past: Past, pool: asyncpg.Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.app.housekeeping.retention.BATCH", 2)
    for number in range(5):
        await _found(pool, f"old-{number}", gone=LONG_AGO)

    assert (await past.clean())[Remains.ORPHANS] == 5
    assert (await past.clean())[Remains.ORPHANS] == 0


async def test_a_kind_that_is_kept_for_ever_is_not_looked_at(
    world: World, past: Past, pool: asyncpg.Pool
) -> None:
    await past.age(await _life(world, "web-1"), LONG_AGO)
    await past.publish(LONG_AGO)
    for_ever = Retention(PostgresRetention(pool), dict.fromkeys(Remains))

    removed = await for_ever.make_pass()

    assert set(removed.values()) == {0}
    assert await past.counts() == (1, 1, 1, 1, 3)


async def test_one_process_at_a_time_removes(world: World, past: Past, dsn: str) -> None:
    await past.age(await _gone(world, await world.resource()), LONG_AGO)
    await past.publish(LONG_AGO)
    other = await asyncpg.connect(dsn)
    async with other.transaction():
        await other.execute("SELECT pg_advisory_xact_lock($1)", retention._LOCK_KEY)
        meanwhile = await past.clean()
    await other.close()

    assert set(meanwhile.values()) == {0}
    assert (await past.clean())[Remains.RESOURCES] == 1


async def test_a_row_that_somebody_holds_is_left_for_the_next_pass(
    world: World, past: Past, dsn: str
) -> None:
    held = await _gone(world, await world.resource("web-1"))
    free = await _gone(world, await world.resource("web-2"))
    for resource in (held, free):
        await past.age(resource, LONG_AGO)
    await past.publish(LONG_AGO)
    other = await asyncpg.connect(dsn)
    async with other.transaction():
        await other.execute(
            "SELECT FROM plexsphere.provisioned_resources WHERE id = $1 FOR UPDATE", held.id
        )
        meanwhile = await past.clean()
    await other.close()

    assert meanwhile[Remains.RESOURCES] == 1
    assert (await past.clean())[Remains.RESOURCES] == 1


async def test_the_audit_outlives_what_it_speaks_of(
    world: World, past: Past, pool: asyncpg.Pool
) -> None:
    resource = await _gone(world, await world.resource())
    await pool.execute(
        "INSERT INTO plexsphere.broker_audit (id, at, management_cluster_id, project_id, "
        "provisioned_resource_id, namespace, record_name, action, reason) "
        "VALUES ($1, now() - interval '10 years', $1, $1, $1, 'n', 'r', 'recreate', 'long ago')",
        resource.id,
    )
    await past.age(resource, LONG_AGO)
    await past.publish(LONG_AGO)

    await past.clean()

    (row,) = await world.backdoor.audit(resource.id)
    assert row.reason == "long ago"


async def test_the_command_tells_what_went(
    world: World, past: Past, pool: asyncpg.Pool, dsn: str
) -> None:
    await past.age(await _life(world, "web-1"), LONG_AGO)
    await past.publish(LONG_AGO)
    told = await pool.fetchval("SELECT count(*) FROM plexsphere.outbox_events")

    runner = CliRunner(env={"PLEXSPHERE_DSN": dsn})
    result = await asyncio.to_thread(runner.invoke, cli, ["retain"])

    went = [f"events: {told}", "tokens: 1", "resources: 1", "orphans: 0"]
    assert result.output == "".join(f"{each} removed\n" for each in went)
