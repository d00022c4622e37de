"""What enrolment does when its collaborators do not."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from function.contract.strategy import BootstrapState
from reconciler.adapters.clock import SystemClock, UUIDv7Source
from reconciler.adapters.http.rate_limit import TokenBuckets
from reconciler.adapters.identity.secret_source import SystemSecretSource
from reconciler.app.registration.registration import (
    ATTEMPTS,
    RegistrationPorts,
    RegistrationService,
)
from reconciler.domain.aggregate import ids
from reconciler.domain.identity.denial import Denial
from reconciler.domain.identity.heartbeat import HeartbeatBody
from reconciler.domain.identity.registration_body import (
    RegistrationBody,
    RegistrationRequest,
    read,
)
from reconciler.ports.registration import (
    AllocationLostError,
    DeniedRegistration,
    NewNode,
    NodeState,
    Registered,
    RegistrationUnit,
    StoreUnavailableError,
)
from tests.contract.worlds import World, body, memory_world, unknown_token
from tests.fakes.identity import InMemoryEnrolmentStore


class FlakyStore(InMemoryEnrolmentStore):
    """A store that loses addresses, or is gone."""

    lost = 0
    gone = False
    audit_gone = False

    @asynccontextmanager
    async def registration(self) -> AsyncIterator[RegistrationUnit]:
        if self.gone:
            raise StoreUnavailableError
        async with super().registration() as unit:
            yield unit
            if self.lost:
                self.lost -= 1
                raise AllocationLostError

    async def record_denial(self, denial: DeniedRegistration) -> None:
        if self.audit_gone:
            raise StoreUnavailableError
        await super().record_denial(denial)


def _request(given: RegistrationBody) -> RegistrationRequest:
    request = read(given)
    assert isinstance(request, RegistrationRequest)
    return request


@pytest.fixture
async def world() -> World:
    world = await memory_world()
    assert isinstance(world.enrolment_store, InMemoryEnrolmentStore)
    return replace(world, enrolment_store=FlakyStore(world.enrolment_store.store))


def _store(world: World) -> FlakyStore:
    assert isinstance(world.enrolment_store, FlakyStore)
    return world.enrolment_store


@pytest.mark.parametrize("lost", [1, ATTEMPTS - 1])
async def test_a_lost_address_is_tried_again(world: World, lost: int) -> None:
    resource = await world.resource()
    _store(world).lost = lost

    registered = await world.register(resource, await world.token(resource))

    assert isinstance(registered, Registered)
    assert world.registered == [resource.id]


async def test_losing_too_often_is_contention_without_effect(world: World) -> None:
    resource = await world.resource()
    token = await world.token(resource)
    _store(world).lost = ATTEMPTS

    refused = await world.register(resource, token)

    assert isinstance(refused, Denial)
    assert (refused.status, refused.code) == (503, "allocator_contention")
    assert refused.retry_after_s == 1
    assert world.registered == []
    assert await world.issuer.state(token.id) is BootstrapState.ISSUED


async def test_a_store_that_is_gone_is_503(world: World) -> None:
    resource = await world.resource()
    _store(world).gone = True

    refused = await world.register(resource, await world.token(resource))

    assert isinstance(refused, Denial)
    assert (refused.status, refused.code) == (503, "store_unavailable")


async def test_an_audit_that_fails_hides_no_answer(world: World) -> None:
    resource = await world.resource()
    _store(world).audit_gone = True

    refused = await world.register(resource, await world.token(resource), nonce="")

    assert isinstance(refused, Denial)
    assert refused.code == "invariant_violation"


async def test_a_project_spends_its_own_budget_with_tokens_that_are_good_alone(
    world: World,
) -> None:
    old, resource = await world.resource("old"), await world.resource()
    dead, token = await world.token(old), await world.token(resource)
    await world.issuer.revoke(old.id)
    budget = TokenBuckets(per_second=1 / 7, monotonic=lambda: 0.0)
    enrolment = RegistrationService(
        RegistrationPorts(
            store=world.enrolment_store,
            secrets=SystemSecretSource(env="prod"),
            ids=UUIDv7Source(),
            clock=SystemClock(),
            project_budget=budget,
        ),
        on_registered=world.registered.append,
    )

    async def ask(**changes: object) -> Registered | Denial:
        return await enrolment.register(
            body(resource, token, **changes), remote_address="192.0.2.1"
        )

    unknown = await ask(bootstrap_token=unknown_token())
    revoked = await ask(bootstrap_token=dead.plaintext)
    registered = await ask()
    limited = await ask()

    assert isinstance(unknown, Denial)
    assert isinstance(revoked, Denial)
    assert (unknown.code, revoked.code) == ("token_unknown", "token_revoked")
    assert isinstance(registered, Registered)
    assert isinstance(limited, Denial)
    assert (limited.status, limited.retry_after_s) == (429, 7)
    assert budget.take(str(resource.project_id)) == 7
    assert len(budget) == 1


class LockedStore(InMemoryEnrolmentStore):
    """A store whose rows of a node somebody else holds for too long."""

    async def record_report(self, node_id: ids.NodeID, *, nsk_digest: bytes) -> bool:
        raise AllocationLostError

    async def record_heartbeat(
        self, node_id: ids.NodeID, *, binary_version: str
    ) -> datetime | None:
        raise AllocationLostError

    async def read_state(self, node_id: ids.NodeID) -> NodeState | None:
        raise AllocationLostError


async def test_a_node_whose_row_is_held_is_told_to_come_again(world: World) -> None:
    resource = await world.resource()
    node = await world.register(resource, await world.token(resource))
    assert isinstance(node, Registered)
    bearer = "nsk_plexd_" + base64.urlsafe_b64encode(node.node_id.bytes + node.nsk).decode()
    held = replace(world, enrolment_store=LockedStore(_store(world).store)).enrolment
    beat = HeartbeatBody(client_now=datetime.now(UTC), binary_checksum="0" * 64, binary_version="v")

    answers = [
        await held.authenticate(bearer, any_node=True),
        await held.heartbeat(node.node_id, beat),
        await held.state(node.node_id),
    ]

    assert [isinstance(one, Denial) and one.status for one in answers] == [503] * 3


async def test_a_node_that_leaves_between_bearer_and_heartbeat_is_told(world: World) -> None:
    resource = await world.resource()
    token = await world.token(resource)
    node = await world.register(resource, token)
    assert isinstance(node, Registered)
    await world.deregistrar.deregister(token.id)

    beat = HeartbeatBody(client_now=datetime.now(UTC), binary_checksum="0" * 64, binary_version="v")
    refused = await world.enrolment.heartbeat(node.node_id, beat)

    assert isinstance(refused, Denial)
    assert refused.code == "node_deregistered"


async def test_a_transaction_that_fails_leaves_the_fake_as_it_was(world: World) -> None:
    resource = await world.resource()
    token = await world.token(resource)
    store = _store(world)
    store.lost = 1

    async def admit() -> None:
        request = _request(body(resource, token))
        async with store.registration() as unit:
            facts = await unit.facts(request)
            assert facts.token is not None
            node = NewNode(
                id=UUIDv7Source().node_id(),
                token=facts.token,
                nsk_digest=bytes(32),
            )
            await unit.admit(request, node)

    with pytest.raises(AllocationLostError):
        await admit()

    assert await world.issuer.state(token.id) is BootstrapState.ISSUED
    assert not await world.deregistrar.node_registered(token.id)
