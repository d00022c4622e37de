"""Who registers too late, too early, twice or as somebody else: one right answer each, as told.

Over HTTP and a real database; the rows of a registration are the contract tests'.
"""

from __future__ import annotations

import base64

import asyncpg
import pytest

from function.contract.strategy import BootstrapState, Phase
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.ports.store.aggregates import IssuedToken
from tests.integration.http.conftest import Answer, Nodes, wire
from tests.integration.http.test_register import assert_problem
from tests.simulation.evidence import made
from tests.simulation.schedule import Kind
from tests.unit.reconciler import samples

pytestmark = pytest.mark.integration

OTHER_KEY = base64.b64encode(b"the key of another machine's own").decode()


async def _delete(nodes: Nodes, resource: ProvisionedResource, token: IssuedToken) -> None:
    """Take a resource to its end, as a teardown does."""
    repository = nodes.world.repository
    going = await repository.record_deletion_intent(resource.request_deletion(samples.NOW))
    await nodes.world.issuer.revoke(resource.id)
    await nodes.world.deregistrar.deregister(token.id)
    await repository.update(going.enter(Phase.DELETED, going.updated_at))


async def _registered(nodes: Nodes, name: str) -> tuple[dict[str, object], Answer]:
    resource = await nodes.world.resource(name)
    body = wire(resource, await nodes.world.token(resource), nonce=name)
    return body, await nodes.register(body)


async def test_a_node_before_its_substrate_is_reported_ready_is_welcome(nodes: Nodes) -> None:
    resource = await nodes.world.resource()
    assert resource.phase is Phase.PENDING

    answer = await nodes.register(wire(resource, await nodes.world.token(resource)))

    assert answer.status == 201


async def test_a_node_after_its_deletion_was_requested_is_told_its_token_is_revoked(
    nodes: Nodes, pool: asyncpg.Pool
) -> None:
    resource = await nodes.world.resource()
    token = await nodes.world.token(resource)
    await nodes.world.repository.record_deletion_intent(resource.request_deletion(samples.NOW))
    made(Kind.AGENT_SLOW)

    assert_problem(await nodes.register(wire(resource, token)), 403, "token_revoked")
    assert await pool.fetchval("SELECT count(*) FROM plexsphere.nodes") == 0


async def test_a_node_after_its_record_is_gone_is_told_its_token_is_revoked(
    nodes: Nodes, pool: asyncpg.Pool
) -> None:
    resource = await nodes.world.resource()
    token = await nodes.world.token(resource)
    await _delete(nodes, resource, token)

    assert_problem(await nodes.register(wire(resource, token)), 403, "token_revoked")
    assert await pool.fetchval("SELECT count(*) FROM plexsphere.nodes") == 0


async def test_a_node_of_a_deleted_resource_is_not_its_successors(nodes: Nodes) -> None:
    gone = await nodes.world.resource("web")
    old = await nodes.world.token(gone)
    await _delete(nodes, gone, old)
    again = await nodes.world.resource("web")
    fresh = await nodes.world.token(again)

    late = await nodes.register(wire(gone, old, resource_handle=again.xr_name))

    assert again.id != gone.id
    assert_problem(late, 403, "token_revoked")
    assert await nodes.world.issuer.state(fresh.id) is BootstrapState.ISSUED
    assert (await nodes.register(wire(again, fresh))).status == 201


async def test_a_node_that_was_one_before_its_record_went_stays_out(nodes: Nodes) -> None:
    resource = await nodes.world.resource()
    token = await nodes.world.token(resource)
    body = wire(resource, token)
    registered = await nodes.register(body)
    await _delete(nodes, resource, token)

    assert_problem(await nodes.heartbeat(registered), 403, "node_deregistered")
    assert_problem(await nodes.register(body), 403, "token_consumed")


async def test_a_snapshot_of_an_enrolled_machine_that_kept_its_key_is_refused(
    nodes: Nodes,
) -> None:
    body, registered = await _registered(nodes, "a")
    assert (await nodes.heartbeat(registered)).status == 200

    assert_problem(await nodes.register(body), 403, "token_consumed")
    assert (await nodes.heartbeat(registered)).status == 200


async def test_a_snapshot_of_an_enrolled_machine_with_a_key_of_its_own_is_refused(
    nodes: Nodes,
) -> None:
    body, registered = await _registered(nodes, "a")

    restored = await nodes.register({**body, "public_key": OTHER_KEY, "nonce": "restored"})

    assert_problem(restored, 403, "token_consumed")
    assert (await nodes.heartbeat(registered)).status == 200


async def test_a_copy_of_an_enrolled_machine_with_another_resources_token_is_a_conflict(
    nodes: Nodes,
) -> None:
    original, registered = await _registered(nodes, "a")
    resource = await nodes.world.resource("b")
    token = await nodes.world.token(resource)

    copied = wire(resource, token, nonce="b", public_key=original["public_key"])

    assert_problem(await nodes.register(copied), 409, None)
    assert await nodes.world.issuer.state(token.id) is BootstrapState.ISSUED
    assert (await nodes.heartbeat(registered)).status == 200


async def test_a_node_of_another_project_with_a_guessed_handle_is_not_found(nodes: Nodes) -> None:
    ours, theirs = await nodes.world.resource("a"), await nodes.world.neighbour("b")
    token = await nodes.world.token(ours)

    answer = await nodes.register(wire(ours, token, resource_handle=theirs.xr_name))
    unknown = await nodes.register(wire(ours, token, resource_handle="pr-of-nobody"))

    assert_problem(answer, 404, "resource_not_found")
    assert _told(answer) == _told(unknown)
    assert await nodes.world.issuer.state(token.id) is BootstrapState.ISSUED


async def test_a_node_that_names_another_project_than_its_tokens_is_a_mismatch(
    nodes: Nodes,
) -> None:
    ours, theirs = await nodes.world.resource("a"), await nodes.world.neighbour("b")
    token = await nodes.world.token(ours)

    assert_problem(await nodes.register(wire(theirs, token)), 403, "project_mismatch")
    assert await nodes.world.issuer.state(token.id) is BootstrapState.ISSUED


async def test_a_token_of_another_resource_is_not_found(nodes: Nodes) -> None:
    ours, sibling = await nodes.world.resource("a"), await nodes.world.resource("b")
    token = await nodes.world.token(ours)

    answer = await nodes.register(wire(sibling, token))

    assert_problem(answer, 404, "resource_not_found")
    assert await nodes.world.issuer.state(token.id) is BootstrapState.ISSUED


def _told(answer: Answer) -> dict[str, object]:
    """What a client learns from a refusal, but for the request's own name."""
    return {key: value for key, value in answer.json.items() if key != "instance"}
