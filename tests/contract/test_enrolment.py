"""What a registration promises, from the body to the rows (`ports.registration.EnrolmentStore`)."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from uuid_utils.compat import uuid7

from function.contract.strategy import BootstrapState
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.identity import node_key
from reconciler.domain.identity.denial import Denial
from reconciler.domain.identity.heartbeat import HeartbeatBody
from reconciler.domain.identity.peers import Peers
from reconciler.ports.registration import Registered
from reconciler.ports.store.aggregates import IssuedToken
from tests.contract.worlds import World, unknown_token
from tests.simulation.evidence import made
from tests.simulation.schedule import Kind
from tests.unit.reconciler import samples

pytestmark = pytest.mark.contract


async def _registered(
    world: World, resource: ProvisionedResource, token: IssuedToken, **changes: object
) -> Registered:
    answer = await world.register(resource, token, **changes)
    assert isinstance(answer, Registered)
    return answer


async def _report(world: World, registered: Registered) -> datetime | Denial:
    body = HeartbeatBody(
        client_now=datetime.now(UTC), binary_checksum="0" * 64, binary_version="v0.8.0"
    )
    return await world.enrolment.heartbeat(registered.node_id, body)


def _bearer(registered: Registered) -> str:
    raw = registered.node_id.bytes + registered.nsk
    return "nsk_plexd_" + base64.urlsafe_b64encode(raw).decode()


class TestSuccess:
    async def test_a_node_learns_its_mesh(self, world: World) -> None:
        resource = await world.resource()

        node = await _registered(world, resource, await world.token(resource))

        assert node.mesh.mesh_ip == "100.64.0.1"
        assert node.mesh.cidr == "100.64.0.0/29"
        assert node.mesh.signing_key_id.startswith("did:plexsphere:domain:")
        assert len(node.mesh.signing_public_key) == 32
        assert node.mesh.peers == Peers()
        assert len(node.nsk) == node_key.NSK_BYTES
        assert str(node.nsk) not in repr(node)
        assert node.node_id.version == 7

    async def test_it_consumes_its_token_and_tells_the_reconciler(self, world: World) -> None:
        resource = await world.resource()
        token = await world.token(resource)

        await _registered(world, resource, token)

        assert await world.issuer.state(token.id) is BootstrapState.CONSUMED
        assert world.registered == [resource.id]

    async def test_it_revokes_the_other_generations(self, world: World) -> None:
        resource = await world.resource()
        old, new = await world.token(resource, 1), await world.token(resource, 2)

        await _registered(world, resource, old)

        assert await world.issuer.state(new.id) is BootstrapState.REVOKED

    async def test_nodes_see_each_other(self, world: World) -> None:
        one, two = await world.resource("a"), await world.resource("b")
        first = await _registered(world, one, await world.token(one))

        second = await _registered(world, two, await world.token(two))

        (peer,) = second.mesh.peers.read()
        assert (peer.node_id, peer.mesh_ip) == (first.node_id, "100.64.0.1")
        assert second.mesh.mesh_ip == "100.64.0.2"

    async def test_a_later_generation_follows_a_node_that_left(self, world: World) -> None:
        resource = await world.resource()
        token = await world.token(resource, 1)
        first = await _registered(world, resource, token)
        await world.deregistrar.deregister(token.id)

        second = await _registered(world, resource, await world.token(resource, 2))

        assert second.node_id != first.node_id
        assert second.mesh.peers == Peers()
        refused = await _report(world, first)
        assert isinstance(refused, Denial)
        assert refused.code == "node_deregistered"

    async def test_two_projects_may_use_one_nonce(self, world: World) -> None:
        project = await world.tenancy.ensure_project(None, "till", "acme")
        one, two = await world.resource("a"), await world.resource("b")
        two = await world.resource(
            "c", project_id=project, key=replace(two.key, project_id=project, name="c")
        )

        await _registered(world, one, await world.token(one), nonce="n")
        await _registered(world, two, await world.token(two), nonce="n")


class TestLostReply:
    async def test_a_retry_gets_the_same_node_and_a_fresh_key(self, world: World) -> None:
        resource = await world.resource()
        token = await world.token(resource)
        first = await _registered(world, resource, token)

        second = await _registered(world, resource, token)
        made(Kind.AGENT_REPLY_LOST)

        assert second.node_id == first.node_id
        assert second.mesh == first.mesh
        assert (
            await world.enrolment.authenticate(_bearer(second), path_node=first.node_id)
            == first.node_id
        )
        old = await world.enrolment.authenticate(_bearer(first), path_node=first.node_id)
        assert isinstance(old, Denial)
        assert old.code == "nsk_revoked"

    async def test_the_first_key_that_reports_wins(self, world: World) -> None:
        resource = await world.resource()
        token = await world.token(resource)
        keys = [_bearer(await _registered(world, resource, token)) for _ in range(2)]

        answers = await asyncio.gather(
            *(world.enrolment.authenticate(key, any_node=True) for key in keys)
        )

        (refused,) = (answer for answer in answers if isinstance(answer, Denial))
        assert (refused.status, refused.code) == (401, "nsk_revoked")
        again = [await world.enrolment.authenticate(key, any_node=True) for key in keys]
        assert again == answers

    @pytest.mark.parametrize("arrived", [0, 1, 2])
    async def test_of_three_answers_at_once_any_may_be_the_one_that_arrived(
        self, world: World, arrived: int
    ) -> None:
        resource = await world.resource()
        token = await world.token(resource)
        nodes = await asyncio.gather(*(_registered(world, resource, token) for _ in range(3)))
        keys = [_bearer(node) for node in nodes]

        first = await world.enrolment.authenticate(keys[arrived], any_node=True)

        assert {node.node_id for node in nodes} == {first}
        for other in (key for key in keys if key != keys[arrived]):
            refused = await world.enrolment.authenticate(other, any_node=True)
            assert isinstance(refused, Denial)
            assert (refused.status, refused.code) == (401, "nsk_revoked")
        assert await world.enrolment.authenticate(keys[arrived], any_node=True) == first

    async def test_a_bearer_for_another_nodes_path_is_no_report(self, world: World) -> None:
        resource = await world.resource()
        token = await world.token(resource)
        node = await _registered(world, resource, token)

        refused = await world.enrolment.authenticate(_bearer(node), path_node=None)

        assert isinstance(refused, Denial)
        assert refused.code == "node_id_mismatch"
        assert (await _registered(world, resource, token)).node_id == node.node_id

    async def test_it_works_after_the_window_is_over(self, world: World) -> None:
        resource = await world.resource()
        token = await world.token(resource)
        first = await _registered(world, resource, token)
        await world.backdoor.age(token.id, timedelta(hours=2))

        assert (await _registered(world, resource, token)).node_id == first.node_id

    @pytest.mark.parametrize("field", ["nonce", "public_key"])
    async def test_another_nonce_or_key_is_no_retry(self, world: World, field: str) -> None:
        resource = await world.resource()
        token = await world.token(resource)
        await _registered(world, resource, token)

        refused = await world.register(
            resource, token, **{field: base64.b64encode(b"other" * 6 + b"!!").decode()}
        )

        assert isinstance(refused, Denial)
        assert (refused.status, refused.code) == (403, "token_consumed")

    async def test_a_node_that_reported_lost_nothing(self, world: World) -> None:
        resource = await world.resource()
        token = await world.token(resource)
        node = await _registered(world, resource, token)
        assert isinstance(await _report(world, node), datetime)

        refused = await world.register(resource, token)

        assert isinstance(refused, Denial)
        assert refused.code == "token_consumed"

    async def test_a_deregistered_node_stays_out(self, world: World) -> None:
        resource = await world.resource()
        token = await world.token(resource)
        await _registered(world, resource, token)
        await world.deregistrar.deregister(token.id)

        refused = await world.register(resource, token)

        assert isinstance(refused, Denial)
        assert refused.code == "token_consumed"

    async def test_a_resource_being_deleted_takes_nobody_back(self, world: World) -> None:
        resource = await world.resource()
        token = await world.token(resource)
        await _registered(world, resource, token)
        await world.repository.record_deletion_intent(resource.request_deletion(samples.NOW))

        refused = await world.register(resource, token)

        assert isinstance(refused, Denial)
        assert refused.status == 404


Case = Callable[[World, ProvisionedResource, IssuedToken], Awaitable[dict[str, object]]]


async def _unknown(
    world: World, resource: ProvisionedResource, token: IssuedToken
) -> dict[str, object]:
    return {"bootstrap_token": unknown_token()}


async def _revoked(
    world: World, resource: ProvisionedResource, token: IssuedToken
) -> dict[str, object]:
    await world.issuer.revoke(resource.id)
    return {}


async def _expired(
    world: World, resource: ProvisionedResource, token: IssuedToken
) -> dict[str, object]:
    await world.backdoor.age(token.id, timedelta(hours=2))
    return {}


async def _foreign(
    world: World, resource: ProvisionedResource, token: IssuedToken
) -> dict[str, object]:
    return {"project_id": str(uuid7())}


async def _collision(
    world: World, resource: ProvisionedResource, token: IssuedToken
) -> dict[str, object]:
    other = await world.resource("other")
    await world.register(other, await world.token(other), nonce="taken")
    world.registered.clear()
    return {"nonce": "taken"}


async def _wrong_handle(
    world: World, resource: ProvisionedResource, token: IssuedToken
) -> dict[str, object]:
    other = await world.resource("other")
    return {"resource_handle": other.xr_name}


async def _deleting(
    world: World, resource: ProvisionedResource, token: IssuedToken
) -> dict[str, object]:
    await world.repository.record_deletion_intent(resource.request_deletion(samples.NOW))
    return {}


async def _full(
    world: World, resource: ProvisionedResource, token: IssuedToken
) -> dict[str, object]:
    for item in range(6):
        other = await world.resource(f"other-{item}")
        assert isinstance(await world.register(other, await world.token(other)), Registered)
    world.registered.clear()
    return {}


DENIALS: list[tuple[Case, int, str]] = [
    (_unknown, 403, "token_unknown"),
    (_revoked, 403, "token_revoked"),
    (_expired, 403, "token_expired"),
    (_foreign, 403, "project_mismatch"),
    (_collision, 403, "nonce_collision"),
    (_wrong_handle, 404, "resource_not_found"),
    (_deleting, 403, "token_revoked"),
    (_full, 503, "pool_exhausted"),
]


class TestDenials:
    @pytest.mark.parametrize(
        ("case", "status", "code"), DENIALS, ids=[item[0].__name__.strip("_") for item in DENIALS]
    )
    async def test_a_denial_has_its_code_and_no_effect(
        self, world: World, case: Case, status: int, code: str
    ) -> None:
        resource = await world.resource()
        token = await world.token(resource)
        changes = await case(world, resource, token)
        before = await world.issuer.state(token.id)

        refused = await world.register(resource, token, **changes)

        assert isinstance(refused, Denial)
        assert (refused.status, refused.code) == (status, code)
        assert await world.issuer.state(token.id) is before
        assert not await world.deregistrar.node_registered(token.id)
        assert world.registered == []

    async def test_it_is_audited_without_a_value(self, world: World) -> None:
        resource = await world.resource()
        token = await world.token(resource)
        await world.issuer.revoke(resource.id)

        await world.register(resource, token)
        await world.register(resource, token, bootstrap_token=unknown_token())
        await world.register(resource, token, nonce="")

        revoked, unknown, empty = await world.backdoor.denials()
        assert (revoked.code, revoked.token_id) == ("token_revoked", token.id)
        assert revoked.project_id == resource.project_id
        assert (unknown.code, unknown.token_id) == ("token_unknown", None)
        assert (empty.code, empty.status) == ("invariant_violation", 422)
        assert revoked.remote_address == "192.0.2.1"

    async def test_what_was_denied_may_be_right_later(self, world: World) -> None:
        resource = await world.resource()
        token = await world.token(resource)
        await world.register(resource, token, resource_handle="pr-other")

        assert isinstance(await world.register(resource, token), Registered)


class TestRaces:
    async def test_ten_nodes_with_one_token_make_one(self, world: World) -> None:
        resource = await world.resource()
        token = await world.token(resource)

        answers = await asyncio.gather(
            *(
                world.register(
                    resource,
                    token,
                    nonce=f"n{item}",
                    public_key=base64.b64encode(bytes([item + 1]) * 32).decode(),
                )
                for item in range(10)
            )
        )
        made(Kind.TWICE_CREATED)

        refused = [item for item in answers if isinstance(item, Denial)]
        assert len(refused) == 9
        assert {item.code for item in refused} == {"token_consumed"}

    async def test_two_generations_at_once_make_one(self, world: World) -> None:
        resource = await world.resource()
        tokens = [await world.token(resource, item) for item in (1, 2)]

        answers = await asyncio.gather(*(world.register(resource, item) for item in tokens))

        assert sum(isinstance(item, Registered) for item in answers) == 1
        (refused,) = (item for item in answers if isinstance(item, Denial))
        assert refused.code == "token_revoked"

    async def test_nodes_that_come_together_get_addresses_of_their_own(self, world: World) -> None:
        resources = [await world.resource(f"r{item}") for item in range(6)]
        tokens = [await world.token(item) for item in resources]

        answers = await asyncio.gather(
            *(
                world.register(resource, token)
                for resource, token in zip(resources, tokens, strict=True)
            )
        )

        addresses = {item.mesh.mesh_ip for item in answers if isinstance(item, Registered)}
        assert addresses == {f"100.64.0.{item}" for item in range(1, 7)}

    async def test_one_nonce_in_two_hands_registers_one(self, world: World) -> None:
        resources = [await world.resource(f"r{item}") for item in range(2)]
        tokens = [await world.token(item) for item in resources]

        answers = await asyncio.gather(
            *(
                world.register(resource, token, nonce="same")
                for resource, token in zip(resources, tokens, strict=True)
            )
        )

        (refused,) = (item for item in answers if isinstance(item, Denial))
        assert refused.code == "nonce_collision"

    async def test_a_node_and_its_deletion_never_pass_each_other(self, world: World) -> None:
        resource = await world.resource()
        token = await world.token(resource)

        answer, _ = await asyncio.gather(
            world.register(resource, token),
            world.repository.record_deletion_intent(resource.request_deletion(samples.NOW)),
        )

        # Whoever came second saw the first: a node is there to deregister, or none came.
        assert await world.deregistrar.node_registered(token.id) == isinstance(answer, Registered)


class TestHeartbeat:
    async def test_a_live_node_is_heard(self, world: World) -> None:
        resource = await world.resource()
        node = await _registered(world, resource, await world.token(resource))

        at = await _report(world, node)

        assert isinstance(at, datetime)
        assert abs(at - datetime.now(UTC)) < timedelta(minutes=1)

    async def test_a_deregistered_node_is_told_so(self, world: World) -> None:
        resource = await world.resource()
        token = await world.token(resource)
        node = await _registered(world, resource, token)
        await world.deregistrar.deregister(token.id)

        refused = await world.enrolment.authenticate(_bearer(node), path_node=node.node_id)

        assert isinstance(refused, Denial)
        assert (refused.status, refused.code) == (403, "node_deregistered")
