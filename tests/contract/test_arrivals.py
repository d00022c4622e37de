"""Who comes when: other Projects, copies, repetitions, early and late nodes, and what is told.

The rows of one registration are `test_enrolment`'s.
"""

from __future__ import annotations

import base64
import logging
from datetime import UTC, datetime

import pytest

from function.contract.strategy import BootstrapState, Phase
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.identity.denial import Denial
from reconciler.domain.identity.heartbeat import HeartbeatBody
from reconciler.domain.identity.peers import Peers
from reconciler.domain.identity.registration import READMISSIONS_MAX, RepeatDetail
from reconciler.ports.registration import NodeState, Registered
from reconciler.ports.store.aggregates import IssuedToken
from tests.contract.worlds import World
from tests.simulation.evidence import made
from tests.simulation.schedule import Kind
from tests.unit.reconciler import samples

pytestmark = pytest.mark.contract

KEY = base64.b64encode(b"one key in two machines, or more").decode()


async def _arrive(world: World, name: str, **changes: object) -> tuple[IssuedToken, Registered]:
    resource = await world.resource(name)
    token = await world.token(resource)
    return token, await _registered(world, resource, token, **changes)


async def _registered(
    world: World, resource: ProvisionedResource, token: IssuedToken, **changes: object
) -> Registered:
    answer = await world.register(resource, token, **changes)
    assert isinstance(answer, Registered)
    return answer


async def _refused(
    world: World, resource: ProvisionedResource, token: IssuedToken, **changes: object
) -> Denial:
    answer = await world.register(resource, token, **changes)
    assert isinstance(answer, Denial)
    return answer


async def _state(world: World, node: Registered) -> NodeState:
    state = await world.enrolment.state(node.node_id)
    assert isinstance(state, NodeState)
    return state


def _bearer(node: Registered) -> str:
    raw = node.node_id.bytes + node.nsk
    return "nsk_plexd_" + base64.urlsafe_b64encode(raw).decode()


class TestTwoProjects:
    async def test_their_nodes_do_not_see_each_other(self, world: World) -> None:
        _, ours = await _arrive(world, "a")
        other = await world.neighbour("b")

        theirs = await _registered(world, other, await world.token(other))

        assert theirs.mesh.peers == Peers()
        assert (await _state(world, ours)).peers == Peers()
        assert theirs.mesh.mesh_ip != ours.mesh.mesh_ip

    async def test_a_token_opens_no_other_project(self, world: World) -> None:
        ours, theirs = await world.resource("a"), await world.neighbour("b")
        token = await world.token(ours)

        refused = await _refused(world, theirs, token)

        assert (refused.status, refused.code) == (403, "project_mismatch")

    async def test_a_guessed_handle_of_another_project_is_not_found(self, world: World) -> None:
        ours, theirs = await world.resource("a"), await world.neighbour("b")
        token = await world.token(ours)

        refused = await _refused(world, ours, token, resource_handle=theirs.xr_name)

        assert (refused.status, refused.code) == (404, "resource_not_found")
        assert await world.issuer.state(token.id) is BootstrapState.ISSUED


class TestCopies:
    async def test_a_snapshot_without_an_identity_is_refused_and_told_apart(
        self, world: World
    ) -> None:
        resource = await world.resource()
        token = await world.token(resource)
        node = await _registered(world, resource, token)

        refused = await _refused(world, resource, token, public_key=KEY, nonce="fresh")
        made(Kind.AGENT_CLONED)

        assert (refused.status, refused.code) == (403, "token_consumed")
        (entry,) = await world.backdoor.denials()
        assert (entry.node_id, entry.detail) == (node.node_id, RepeatDetail.OTHER_KEY)

    async def test_a_clone_with_the_key_of_a_live_node_is_refused(self, world: World) -> None:
        await _arrive(world, "a", public_key=KEY)
        resource = await world.resource("b")
        token = await world.token(resource)

        refused = await _refused(world, resource, token, public_key=KEY)

        assert (refused.status, refused.code) == (409, "key_in_use")
        assert await world.issuer.state(token.id) is BootstrapState.ISSUED

    async def test_a_key_may_come_again_once_its_node_left(self, world: World) -> None:
        token, _ = await _arrive(world, "a", public_key=KEY)
        await world.deregistrar.deregister(token.id)

        await _arrive(world, "b", public_key=KEY)

    async def test_a_later_generation_may_bring_its_own_key_again(self, world: World) -> None:
        resource = await world.resource()
        first = await world.token(resource, 1)
        await _registered(world, resource, first, public_key=KEY)
        await world.deregistrar.deregister(first.id)

        await _registered(world, resource, await world.token(resource, 2), public_key=KEY)


class TestRepetitions:
    async def test_a_node_that_pulled_its_state_lost_nothing(self, world: World) -> None:
        resource = await world.resource()
        token = await world.token(resource)
        node = await _registered(world, resource, token)
        assert await world.enrolment.authenticate(_bearer(node), any_node=True) == node.node_id
        await _state(world, node)

        refused = await _refused(world, resource, token)

        assert refused.code == "token_consumed"
        (entry,) = await world.backdoor.denials()
        assert entry.detail is RepeatDetail.REPORTED

    async def test_each_fresh_key_is_audited_and_logged_without_a_value(
        self, world: World, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        resource = await world.resource()
        token = await world.token(resource)
        nodes = [await _registered(world, resource, token) for _ in range(3)]

        entries = await world.backdoor.readmissions()

        assert [(entry.code, entry.status) for entry in entries] == [("readmitted", 201)] * 2
        for entry in entries:
            assert (entry.node_id, entry.token_id) == (nodes[0].node_id, token.id)
            assert (entry.project_id, entry.remote_address) == (resource.project_id, "192.0.2.1")
        said = f"node_readmitted node={nodes[0].node_id} token={token.id} address=192.0.2.1"
        assert [record.getMessage() for record in caplog.records].count(said) == 2
        assert token.plaintext.reveal() not in caplog.text

    async def test_fresh_keys_have_an_end(self, world: World) -> None:
        resource = await world.resource()
        token = await world.token(resource)
        nodes = {(await _registered(world, resource, token)).node_id}
        for _ in range(READMISSIONS_MAX):
            nodes.add((await _registered(world, resource, token)).node_id)

        refused = await _refused(world, resource, token)

        assert len(nodes) == 1
        assert refused.code == "token_consumed"
        (entry,) = await world.backdoor.denials()
        assert entry.detail is RepeatDetail.TOO_OFTEN

    async def test_a_replaced_key_says_so(self, world: World) -> None:
        resource = await world.resource()
        token = await world.token(resource)
        old = await _registered(world, resource, token)
        new = await _registered(world, resource, token)

        assert await world.enrolment.authenticate(_bearer(new), any_node=True) == new.node_id
        answer = await world.enrolment.authenticate(_bearer(old), any_node=True)

        assert isinstance(answer, Denial)
        assert (answer.status, answer.code) == (401, "nsk_revoked")

    async def test_the_oldest_of_all_keys_is_as_good_as_the_last(self, world: World) -> None:
        resource = await world.resource()
        token = await world.token(resource)
        times = range(1 + READMISSIONS_MAX)
        oldest, *rest = [await _registered(world, resource, token) for _ in times]

        answer = await world.enrolment.authenticate(_bearer(oldest), any_node=True)

        assert answer == oldest.node_id
        refused = [
            await world.enrolment.authenticate(_bearer(node), any_node=True) for node in rest
        ]
        told = {(item.status, item.code) for item in refused if isinstance(item, Denial)}
        assert (len(refused), told) == (READMISSIONS_MAX, {(401, "nsk_revoked")})


class TestEarlyAndLate:
    async def test_a_node_before_its_substrate_is_ready_is_welcome(self, world: World) -> None:
        resource = await world.resource()
        assert resource.phase in {Phase.PENDING, Phase.PROVISIONING}

        await _registered(world, resource, await world.token(resource))

    async def test_a_deletion_request_ends_the_token_before_anything_else(
        self, world: World
    ) -> None:
        resource = await world.resource()
        token = await world.token(resource)
        await world.repository.record_deletion_intent(resource.request_deletion(samples.NOW))

        late = await _refused(world, resource, token)

        assert (late.status, late.code) == (403, "token_revoked")

    async def test_a_node_that_left_is_a_tombstone_and_no_peer(self, world: World) -> None:
        token, gone = await _arrive(world, "a")
        _, stays = await _arrive(world, "b")
        before = await _state(world, stays)

        await world.deregistrar.deregister(token.id)

        after = await _state(world, stays)
        assert [peer.node_id for peer in before.peers.read()] == [gone.node_id]
        assert after.peers == Peers()
        assert after.changed_at >= before.changed_at
        assert await world.enrolment.authenticate(_bearer(gone), any_node=True) == Denial(
            status=403, code="node_deregistered", detail="the node is deregistered"
        )
        late = await world.enrolment.state(gone.node_id)
        assert isinstance(late, Denial)
        assert late.code == "node_deregistered"

    async def test_a_state_tells_when_its_node_was_heard(self, world: World) -> None:
        _, node = await _arrive(world, "a")
        beat = HeartbeatBody(
            client_now=datetime.now(UTC), binary_checksum="0" * 64, binary_version="v"
        )

        before = await _state(world, node)
        at = await world.enrolment.heartbeat(node.node_id, beat)

        assert before.last_heartbeat_at is None
        assert (await _state(world, node)).last_heartbeat_at == at


class TestEvents:
    async def test_a_node_comes_once_and_leaves_once(self, world: World) -> None:
        resource = await world.resource()
        token = await world.token(resource)
        node = await _registered(world, resource, token)
        await _registered(world, resource, token)
        for _ in range(2):
            await world.deregistrar.deregister(token.id)

        came, left = await world.backdoor.events(node.node_id)

        assert (came.type, came.aggregate_sequence) == ("identity.NodeRegistered", 1)
        assert (left.type, left.aggregate_sequence) == ("identity.NodeDeregistered", 2)
        told = dict(came.payload)
        assert told.pop("EventID") != left.payload["EventID"]
        assert datetime.fromisoformat(told.pop("OccurredAt")).tzinfo is not None
        ids_told = {
            "NodeID": str(node.node_id),
            "ProjectID": str(samples.PROJECT),
            "DomainID": told["DomainID"],
            "ProvisionedResourceID": str(resource.id),
            "BootstrapTokenID": str(token.id),
            "MeshIP": "100.64.0.1",
        }
        # The store adds the names that the ids stand for (`test_producers`).
        assert {name: told[name] for name in ids_told} == ids_told

    async def test_a_replaced_node_is_told_to_have_left(self, world: World) -> None:
        resource = await world.resource()
        token = await world.token(resource, 1)
        old = await _registered(world, resource, token)

        await world.deregistrar.deregister(token.id)
        await _registered(world, resource, await world.token(resource, 2))

        types = [event.type for event in await world.backdoor.events(old.node_id)]
        assert types == ["identity.NodeRegistered", "identity.NodeDeregistered"]


async def test_what_others_do_does_not_move_a_nodes_own_reachability(world: World) -> None:
    first, second = await world.resource("a"), await world.resource("b")
    node = await _registered(world, first, await world.token(first))
    before = await _state(world, node)
    token = await world.token(second)
    await _registered(world, second, token)
    await world.deregistrar.deregister(token.id)

    early, late = await _state(world, node), await _state(world, node)

    assert before.changed_at <= early.changed_at
    assert early.changed_at == late.changed_at
