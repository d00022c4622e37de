"""What nobody can flush: readmissions, denials of a known token, and another block's denials."""

from __future__ import annotations

import asyncio
import base64
import ipaddress
from collections import Counter
from typing import Final

import asyncpg
import pytest

from reconciler.adapters.postgres.registration import enrolment_audit
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.identity.registration import RepeatDetail
from reconciler.ports.registration import DeniedRegistration, Registered
from reconciler.ports.store.aggregates import IssuedToken
from tests.contract.worlds import World, body

pytestmark = pytest.mark.integration

THIEF: Final = base64.b64encode(b"the key of another machine, ours").decode()
STRANGER: Final = DeniedRegistration(
    code="token_unknown", status=403, remote_address="198.51.100.7"
)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enrolment_audit, "DENIALS_MAX", 12)
    monkeypatch.setattr(enrolment_audit, "BLOCK_DENIALS_MAX", 8)
    monkeypatch.setattr(enrolment_audit, "PRUNE_EVERY", 10)
    monkeypatch.setattr(enrolment_audit, "TOKEN_ENTRIES_MAX", 4)


async def _from(
    world: World, resource: ProvisionedResource, token: IssuedToken, address: str, **changes: object
) -> None:
    await world.enrolment.register(body(resource, token, **changes), remote_address=address)


async def _used(world: World) -> tuple[ProvisionedResource, IssuedToken]:
    resource = await world.resource()
    token = await world.token(resource)
    assert isinstance(await world.register(resource, token), Registered)
    return resource, token


async def _strangers(pool: asyncpg.Pool) -> Counter[str]:
    rows = await pool.fetch("SELECT remote_address FROM plexsphere.enrolment_audit")
    return Counter(row["remote_address"] for row in rows)


async def _flood(pool: asyncpg.Pool, address: str, times: int = 40) -> None:
    entry = DeniedRegistration(code="token_unknown", status=403, remote_address=address)
    for _ in range(times):
        await enrolment_audit.append(pool, entry)


async def test_strangers_push_out_no_theft_and_no_readmission(
    world: World, pool: asyncpg.Pool
) -> None:
    resource, token = await _used(world)
    await world.register(resource, token)
    await world.register(resource, token, public_key=THIEF)

    await _flood(pool, STRANGER.remote_address)

    (readmitted,) = await world.backdoor.readmissions()
    assert readmitted.token_id == token.id
    stolen = [entry for entry in await world.backdoor.denials() if entry.token_id is not None]
    assert [(entry.code, entry.detail) for entry in stolen] == [
        ("token_consumed", RepeatDetail.OTHER_KEY)
    ]


async def test_a_used_token_in_a_thiefs_hands_pushes_out_nothing(
    world: World, pool: asyncpg.Pool
) -> None:
    resource, token = await _used(world)
    other = await world.resource("other")
    spent = await world.token(other)
    await world.register(other, spent)
    await world.register(other, spent, public_key=THIEF)
    await world.register(resource, token, public_key=THIEF)

    for _ in range(30):
        await _from(world, resource, token, "192.0.2.9", public_key=THIEF)

    rows = await pool.fetch("SELECT * FROM plexsphere.enrolment_evidence ORDER BY sequence")
    assert [(row["bootstrap_token_id"], row["times"]) for row in rows] == [
        (spent.id, 1),
        (token.id, 31),
    ]
    ours = rows[1]
    assert ours["provisioned_resource_id"] == resource.id
    assert (ours["remote_address"], ours["last_address"]) == ("192.0.2.1", "192.0.2.9")
    assert ours["at"] < ours["last_at"]
    assert (await world.backdoor.denials())[0].token_id == spent.id


async def test_a_thief_with_many_addresses_fills_a_tokens_share_and_no_more(
    world: World, pool: asyncpg.Pool
) -> None:
    resource, token = await _used(world)

    for block in range(20):
        await _from(world, resource, token, f"198.51.{block}.1", public_key=THIEF)
    await _from(world, resource, token, "203.0.113.1", nonce="another")

    rows = await pool.fetch("SELECT * FROM plexsphere.enrolment_evidence ORDER BY sequence")
    assert [(str(row["block"]), row["detail"], row["times"]) for row in rows] == [
        *((f"198.51.{block}.0/24", "other_key", 1) for block in range(4)),
        ("0.0.0.0/0", "other_key", 16),
        ("0.0.0.0/0", "other_nonce", 1),
    ]
    assert (rows[4]["remote_address"], rows[4]["last_address"]) == ("198.51.4.1", "198.51.19.1")


async def test_every_readmission_is_kept(world: World) -> None:
    resource, token = await _used(world)
    for block in range(20):
        await _from(world, resource, token, f"198.51.{block}.1", public_key=THIEF)

    for _ in range(20):
        await world.register(resource, token)

    assert len(await world.backdoor.readmissions()) == 20


async def test_a_contended_registration_is_evidence_of_its_token(
    world: World, pool: asyncpg.Pool
) -> None:
    await _used(world)
    resource = await world.resource("late")
    token = await world.token(resource)
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT FROM plexsphere.mesh_free FOR UPDATE")
        await world.register(resource, token)

    (entry,) = await world.backdoor.denials()

    assert (entry.code, entry.token_id) == ("allocator_contention", token.id)


async def test_one_block_pushes_out_no_other(pool: asyncpg.Pool) -> None:
    await _flood(pool, "203.0.113.1", 1)

    for last in range(40):
        await _flood(pool, f"198.51.100.{last}", 1)
    await _flood(pool, "198.51.101.1", 9)

    kept = await _strangers(pool)
    assert kept["203.0.113.1"] == 1
    blocks = Counter(address.rpartition(".")[0] for address in kept.elements())
    assert blocks["198.51.100"] <= 8
    assert sum(kept.values()) <= 12
    assert kept["198.51.100.39"] == 1


@pytest.mark.parametrize(
    ("address", "block"),
    [
        ("192.0.2.77", "192.0.2.0/24"),
        ("2001:db8:1:2:3::4", "2001:db8:1::/48"),
        ("::ffff:192.0.2.77", "192.0.2.0/24"),
        ("fe80::1%eth0", "fe80::/48"),
        ("unknown", "0.0.0.0/32"),
        ("", "0.0.0.0/32"),
    ],
)
async def test_an_address_belongs_to_its_network(
    pool: asyncpg.Pool, address: str, block: str
) -> None:
    found = await pool.fetchval("SELECT plexsphere.address_block($1)", address)

    assert found == ipaddress.ip_network(block)


async def test_a_denial_without_a_detail_is_counted_too(world: World, pool: asyncpg.Pool) -> None:
    resource = await world.resource()
    token = await world.token(resource)
    await world.issuer.revoke(resource.id)

    for _ in range(3):
        await world.register(resource, token)

    rows = await pool.fetch("SELECT code, detail, times FROM plexsphere.enrolment_evidence")
    assert [tuple(row) for row in rows] == [("token_revoked", None, 3)]


async def test_ten_denials_at_once_are_one_entry_with_their_count(
    world: World, pool: asyncpg.Pool
) -> None:
    resource, token = await _used(world)

    await asyncio.gather(*(world.register(resource, token, public_key=THIEF) for _ in range(10)))

    rows = await pool.fetch("SELECT times FROM plexsphere.enrolment_evidence")
    assert [row["times"] for row in rows] == [10]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE plexsphere.enrolment_evidence SET code = 'another'",
        "UPDATE plexsphere.enrolment_evidence SET times = times - 1",
        "UPDATE plexsphere.enrolment_evidence SET last_at = last_at - interval '1 s'",
        "UPDATE plexsphere.enrolment_evidence SET remote_address = '192.0.2.99', times = times + 1",
        "DELETE FROM plexsphere.enrolment_evidence",
        "TRUNCATE plexsphere.enrolment_evidence",
    ],
)
async def test_evidence_is_appended_to_and_counted_and_never_rewritten(
    world: World, pool: asyncpg.Pool, statement: str
) -> None:
    resource, token = await _used(world)
    await world.register(resource, token, public_key=THIEF)
    before = await pool.fetch("SELECT * FROM plexsphere.enrolment_evidence")

    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="append-only"):
        await pool.execute(statement)

    assert await pool.fetch("SELECT * FROM plexsphere.enrolment_evidence") == before
