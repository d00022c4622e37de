"""The schema's history, run up and down on a real server."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from enum import StrEnum

import asyncpg
import pytest

from function.contract.strategy import BootstrapState, Phase
from reconciler.adapters.postgres.aggregates.aggregate_rows import COLUMNS
from reconciler.adapters.postgres.connection import migrate
from reconciler.adapters.postgres.registration import token_issuer
from reconciler.domain.events.audit import AuditAction
from reconciler.domain.events.kinds import AggregateType, FleetEventType, IdentityEventType
from reconciler.domain.events.lifecycle import EventType
from reconciler.domain.identity.registration import RepeatDetail
from tests.contract.worlds import World

pytestmark = pytest.mark.integration

REVISIONS = ["0001", "0023", "0026", "0027", "0028"]

CATALOGUE = """
SELECT format('%s.%s %s %s %s', table_name, column_name, data_type, is_nullable,
              coalesce(column_default, identity_generation))
FROM information_schema.columns WHERE table_schema = 'plexsphere'
UNION ALL
SELECT format('%s %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
FROM pg_constraint WHERE connamespace = 'plexsphere'::regnamespace
UNION ALL
SELECT indexdef FROM pg_indexes WHERE schemaname = 'plexsphere'
UNION ALL
SELECT format('%s %s %s', relname, objsubid, description)
FROM pg_description JOIN pg_class ON pg_class.oid = objoid
WHERE relnamespace = 'plexsphere'::regnamespace
ORDER BY 1
"""


async def _catalogue(dsn: str) -> list[str]:
    connection = await asyncpg.connect(dsn)
    try:
        return [row[0] for row in await connection.fetch(CATALOGUE)]
    finally:
        await connection.close()


async def _constraint(dsn: str, name: str) -> str:
    connection = await asyncpg.connect(dsn)
    try:
        definition = await connection.fetchval(
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = $1", name
        )
        return str(definition)
    finally:
        await connection.close()


def _quoted(text: str) -> set[str]:
    return set(re.findall(r"'([^']*)'", text))


def _values(members: Iterable[StrEnum]) -> set[str]:
    return {member.value for member in members}


async def test_up_gives_every_revision_in_order(empty_dsn: str) -> None:
    assert await migrate.current(empty_dsn) is None

    for revision in REVISIONS:
        assert await migrate.migrate(empty_dsn, target=revision) == revision
        assert await migrate.current(empty_dsn) == revision

    assert migrate.head() == REVISIONS[-1]


async def test_up_down_and_up_again_gives_the_same_catalogue(empty_dsn: str) -> None:
    catalogues = {}
    for revision in REVISIONS:
        await migrate.migrate(empty_dsn, target=revision)
        catalogues[revision] = await _catalogue(empty_dsn)

    for revision in reversed(REVISIONS[:-1]):
        assert await migrate.downgrade(empty_dsn, revision) == revision
        assert await _catalogue(empty_dsn) == catalogues[revision]
    assert await migrate.downgrade(empty_dsn, "base") is None
    await migrate.migrate(empty_dsn)

    assert await _catalogue(empty_dsn) == catalogues[REVISIONS[-1]]


async def test_base_leaves_no_table_of_ours(empty_dsn: str) -> None:
    await migrate.migrate(empty_dsn)

    await migrate.downgrade(empty_dsn, "base")

    tables = {line.split(".")[0].split(" ")[0] for line in await _catalogue(empty_dsn)}
    assert tables <= {"schema_version", "plexsphere", "CREATE"}


async def test_five_migrators_at_once_make_one_schema(empty_dsn: str) -> None:
    answers = await asyncio.gather(*(migrate.migrate(empty_dsn) for _ in range(5)))

    assert set(answers) == {REVISIONS[-1]}


async def test_migrating_twice_changes_nothing(dsn: str) -> None:
    before = await _catalogue(dsn)

    await migrate.migrate(dsn)

    assert await _catalogue(dsn) == before


@pytest.mark.parametrize("up", [True, False])
async def test_an_unknown_revision_is_refused_and_changes_nothing(dsn: str, *, up: bool) -> None:
    with pytest.raises(migrate.MigrationError, match="no path to revision 0999"):
        await (migrate.migrate(dsn, target="0999") if up else migrate.downgrade(dsn, "0999"))

    assert await migrate.current(dsn) == REVISIONS[-1]


async def test_a_step_that_fails_leaves_nothing_behind(empty_dsn: str) -> None:
    await migrate.migrate(empty_dsn, target="0026")
    connection = await asyncpg.connect(empty_dsn)
    await connection.execute("CREATE TABLE plexsphere.nodes ()")
    before = await _catalogue(empty_dsn)

    with pytest.raises(migrate.MigrationError, match="42P07"):
        await migrate.migrate(empty_dsn)

    await connection.close()
    assert await _catalogue(empty_dsn) == before
    assert await migrate.current(empty_dsn) == "0026"


async def test_a_guard_of_several_generations_can_go_down(empty_dsn: str) -> None:
    await migrate.migrate(empty_dsn, target="0028")
    connection = await asyncpg.connect(empty_dsn)
    await connection.execute("SET session_replication_role = replica")
    await connection.execute(
        "INSERT INTO plexsphere.provisioned_resource_outbox_token "
        "(provisioned_resource_id, event_type, generation) "
        "SELECT '00000000-0000-0000-0000-000000000001', 'broker.ProvisionedResourceReady', n "
        "FROM generate_series(1, 3) AS n"
    )

    await migrate.downgrade(empty_dsn, "0027")

    count = await connection.fetchval(
        "SELECT count(*) FROM plexsphere.provisioned_resource_outbox_token"
    )
    await connection.close()
    assert count == 1


async def test_nothing_goes_down_while_a_machine_is_made_anew(world: World, dsn: str) -> None:
    await world.resource()
    connection = await asyncpg.connect(dsn)
    await connection.execute("UPDATE plexsphere.provisioned_resources SET recreating_since = now()")
    before = await migrate.current(dsn)

    with pytest.raises(migrate.MigrationError, match="machines are being made anew"):
        await migrate.downgrade(dsn, "0027")

    assert await migrate.current(dsn) == before
    await connection.execute("UPDATE plexsphere.provisioned_resources SET recreating_since = NULL")
    assert await migrate.downgrade(dsn, "0027") == "0027"
    await connection.close()


@pytest.mark.parametrize(
    ("name", "members"),
    [
        ("provisioned_resources_status_check", [*Phase]),
        ("provisioned_resource_outbox_token_event_type_check", [*EventType]),
        ("outbox_events_event_type_check", [*EventType, *IdentityEventType, *FleetEventType]),
        ("outbox_events_aggregate_type_check", [*AggregateType]),
        ("broker_audit_action_check", [*AuditAction]),
        ("enrolment_audit_detail_check", [*RepeatDetail]),
        ("enrolment_evidence_detail_check", [*RepeatDetail]),
    ],
)
async def test_a_check_holds_exactly_the_members_of_its_set(
    dsn: str, name: str, members: list[StrEnum]
) -> None:
    assert _quoted(await _constraint(dsn, name)) == _values(members)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE plexsphere.broker_audit SET reason = 'another'",
        "DELETE FROM plexsphere.broker_audit",
        "TRUNCATE plexsphere.broker_audit",
    ],
)
async def test_the_audit_is_only_appended_to(dsn: str, statement: str) -> None:
    connection = await asyncpg.connect(dsn)
    await connection.execute(
        "INSERT INTO plexsphere.broker_audit (id, management_cluster_id, project_id, "
        "provisioned_resource_id, namespace, record_name, action, reason) "
        "SELECT u, u, u, u, 'n', 'r', 'force-release', 'why' FROM gen_random_uuid() AS u"
    )

    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="append-only"):
        await connection.execute(statement)

    kept = await connection.fetchval("SELECT reason FROM plexsphere.broker_audit")
    await connection.close()
    assert kept == "why"


async def test_the_seeds_first_checks_hold_five_phases_and_three_events(empty_dsn: str) -> None:
    await migrate.migrate(empty_dsn, target="0026")

    phases = await _constraint(empty_dsn, "provisioned_resources_status_check")
    types = await _constraint(empty_dsn, "provisioned_resource_outbox_token_event_type_check")

    assert _quoted(phases) == {"Pending", "Provisioning", "Enrolling", "Ready", "Failed"}
    assert _quoted(types) == _values([EventType.REQUESTED, EventType.READY, EventType.FAILED])


@pytest.mark.parametrize(
    "name",
    [
        "management_clusters_slug_unique",
        "project_cluster_assignments_phase_check",
        "provisioned_resources_status_check",
        "provisioned_resource_outbox_token_event_type_check",
    ],
)
async def test_the_seeds_constraint_names_stand(dsn: str, name: str) -> None:
    assert await _constraint(dsn, name) != "None"


async def test_every_column_of_the_aggregate_is_written_and_read(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    rows = await connection.fetch(
        "SELECT column_name FROM information_schema.columns "
        "WHERE table_schema = 'plexsphere' AND table_name = 'provisioned_resources'"
    )
    await connection.close()

    # The outbox's own.
    counted = {"events"}
    assert {row[0] for row in rows} == set(COLUMNS.replace(",", " ").split()) | counted


def test_a_tokens_state_in_sql_is_one_of_the_contract() -> None:
    assert _quoted(token_issuer.STATE) == _values(BootstrapState) - {BootstrapState.NONE}
