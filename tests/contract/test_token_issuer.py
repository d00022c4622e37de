"""What `ports.store.aggregates.TokenIssuer` promises."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from uuid_utils.compat import uuid7

from function.contract.strategy import BootstrapState
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.errors import InvalidInputError, StaleAggregateError
from reconciler.domain.identity import token as token_text
from reconciler.domain.identity.denial import Denial
from reconciler.ports.registration import Registered
from reconciler.ports.store.aggregates import IssuedToken
from tests.contract.worlds import HOUR, World, aggregate
from tests.unit.reconciler import samples

pytestmark = pytest.mark.contract


async def test_a_token_names_its_project_and_is_live(world: World) -> None:
    resource = await world.resource()

    drawn = await world.issuer.draw(resource, generation=1)
    issued = await world.issuer.issue(resource, drawn, ttl=HOUR)

    parts = token_text.parse(issued.plaintext)
    assert parts is not None
    assert (parts.env, parts.project_id, parts.kind) == ("prod", resource.project_id, "node")
    assert issued.generation == 1
    assert await world.issuer.state(issued.id) is BootstrapState.ISSUED


async def test_a_generation_is_issued_once(world: World) -> None:
    resource = await world.resource()

    answers = await asyncio.gather(
        *(world.token(resource) for _ in range(5)),
        return_exceptions=True,
    )

    assert sum(isinstance(answer, IssuedToken) for answer in answers) == 1
    assert sum(isinstance(answer, StaleAggregateError) for answer in answers) == 4


async def test_generations_live_beside_each_other(world: World) -> None:
    resource = await world.resource()

    first = await world.token(resource, 1)
    second = await world.token(resource, 2)

    assert await world.issuer.state(first.id) is BootstrapState.ISSUED
    assert await world.issuer.state(second.id) is BootstrapState.ISSUED


async def test_a_resource_that_is_being_deleted_gets_none(world: World) -> None:
    resource = await world.resource()
    await world.repository.record_deletion_intent(resource.request_deletion(samples.NOW))

    with pytest.raises(StaleAggregateError):
        await world.token(resource)


async def test_an_unknown_resource_gets_none(world: World) -> None:
    with pytest.raises(StaleAggregateError):
        await world.token(aggregate())


@pytest.mark.parametrize("ttl", [timedelta(seconds=299), timedelta(hours=24, seconds=1)])
async def test_a_ttl_outside_the_window_is_refused(world: World, ttl: timedelta) -> None:
    resource = await world.resource()

    drawn = await world.issuer.draw(resource, generation=1)
    with pytest.raises(InvalidInputError, match="300 s and 24 h"):
        await world.issuer.issue(resource, drawn, ttl=ttl)


async def test_a_window_ends(world: World) -> None:
    token = await world.token(await world.resource())

    await world.backdoor.age(token.id, HOUR + timedelta(seconds=1))

    assert await world.issuer.state(token.id) is BootstrapState.EXPIRED


async def test_extending_starts_the_window_anew(world: World) -> None:
    token = await world.token(await world.resource())
    await world.backdoor.age(token.id, timedelta(minutes=50))

    await world.issuer.extend(token.id, ttl=HOUR)
    await world.backdoor.age(token.id, timedelta(minutes=50))

    assert await world.issuer.state(token.id) is BootstrapState.ISSUED


async def test_an_expired_window_opens_again_while_the_node_may_come(world: World) -> None:
    token = await world.token(await world.resource())
    await world.backdoor.age(token.id, timedelta(hours=2))

    await world.issuer.extend(token.id, ttl=HOUR)

    assert await world.issuer.state(token.id) is BootstrapState.ISSUED


async def test_the_window_of_a_machine_that_vanished_stays_closed(world: World) -> None:
    resource = await world.resource()
    first = await world.token(resource, 1)
    await world.backdoor.age(first.id, timedelta(hours=2))
    second = await world.token(resource, 2)

    await world.issuer.extend(second.id, ttl=HOUR)
    refused = await world.register(resource, first)

    assert await world.issuer.state(first.id) is BootstrapState.REVOKED
    assert isinstance(refused, Denial)
    assert refused.code == "token_revoked"
    assert (await world.issuer.life(resource.id)).state is BootstrapState.ISSUED
    assert isinstance(await world.register(resource, second), Registered)


async def test_a_generation_that_is_not_minted_ends_no_other(world: World) -> None:
    resource = await world.resource()
    first, second = [await world.token(resource, number) for number in (1, 2)]
    await world.backdoor.age(first.id, timedelta(hours=2))

    with pytest.raises(StaleAggregateError):
        await world.token(resource, 2)

    assert await world.issuer.state(first.id) is BootstrapState.EXPIRED
    assert await world.issuer.state(second.id) is BootstrapState.ISSUED


async def test_extending_never_shortens(world: World) -> None:
    resource = await world.resource()
    drawn = await world.issuer.draw(resource, generation=1)
    token = await world.issuer.issue(resource, drawn, ttl=timedelta(hours=10))

    await world.issuer.extend(token.id, ttl=HOUR)
    await world.backdoor.age(token.id, timedelta(hours=9))

    assert await world.issuer.state(token.id) is BootstrapState.ISSUED


async def test_no_window_outlasts_a_day(world: World) -> None:
    token = await world.token(await world.resource())
    await world.backdoor.age(token.id, timedelta(hours=23, minutes=59))

    await world.issuer.extend(token.id, ttl=HOUR)
    await world.backdoor.age(token.id, timedelta(minutes=2))

    assert await world.issuer.state(token.id) is BootstrapState.EXPIRED


async def test_revoking_takes_every_live_token_of_the_resource_alone(world: World) -> None:
    resource, other = await world.resource("a"), await world.resource("b")
    first, second = await world.token(resource, 1), await world.token(resource, 2)
    foreign = await world.token(other)

    await world.issuer.revoke(resource.id)
    await world.issuer.revoke(resource.id)

    assert await world.issuer.state(first.id) is BootstrapState.REVOKED
    assert await world.issuer.state(second.id) is BootstrapState.REVOKED
    assert await world.issuer.state(foreign.id) is BootstrapState.ISSUED


async def test_a_consumed_token_stays_consumed(world: World) -> None:
    resource = await world.resource()
    token = await world.token(resource)
    await world.register(resource, token)

    await world.issuer.revoke(resource.id)
    await world.issuer.extend(token.id, ttl=HOUR)
    await world.backdoor.age(token.id, timedelta(days=2))

    assert await world.issuer.state(token.id) is BootstrapState.CONSUMED


async def test_a_revoked_token_is_not_extended(world: World) -> None:
    resource = await world.resource()
    token = await world.token(resource)
    await world.issuer.revoke(resource.id)

    await world.issuer.extend(token.id, ttl=HOUR)

    assert await world.issuer.state(token.id) is BootstrapState.REVOKED


async def test_an_unknown_token_has_no_state(world: World) -> None:
    unknown = ids.BootstrapTokenID(uuid7())

    await world.issuer.extend(unknown, ttl=HOUR)

    assert await world.issuer.state(unknown) is BootstrapState.NONE


async def test_no_two_tokens_are_alike(world: World) -> None:
    resource = await world.resource()

    issued = [await world.token(resource, item) for item in range(1, 21)]

    assert len({token_text.digest(item.plaintext) for item in issued}) == 20


async def test_the_life_of_a_resource_is_told_newest_first(world: World) -> None:
    resource, other = await world.resource("a"), await world.resource("b")
    first = await world.token(resource, 1)
    await world.backdoor.age(first.id, timedelta(minutes=10))
    await world.token(resource, 2)
    await world.token(other)

    life = await world.issuer.life(resource.id)

    assert [one.number for one in life.generations] == [2, 1]
    assert life.state is BootstrapState.ISSUED
    assert not life.rested
    aged = life.now - life.generations[1].issued_at
    assert timedelta(minutes=10) <= aged < timedelta(minutes=11)


async def test_a_node_that_comes_with_the_earlier_token_consumed_them(world: World) -> None:
    resource = await world.resource()
    first = await world.token(resource, 1)
    second = await world.token(resource, 2)

    await world.register(resource, first)

    life = await world.issuer.life(resource.id)
    assert await world.issuer.state(second.id) is BootstrapState.REVOKED
    assert life.state is BootstrapState.CONSUMED
    assert life.drops_secrets


async def test_a_resource_without_tokens_has_an_empty_life(world: World) -> None:
    life = await world.issuer.life(aggregate().id)

    assert life.generations == ()
    assert life.state is BootstrapState.NONE
    assert life.rested


async def test_a_resource_with_a_live_node_gets_none(world: World) -> None:
    resource = await world.resource()
    await world.register(resource, await world.token(resource, 1))

    with pytest.raises(StaleAggregateError, match="a node of the resource is registered"):
        await world.token(resource, 2)


async def test_a_registration_and_the_next_generation_leave_one_of_both(world: World) -> None:
    for number in range(5):
        resource = await world.resource(f"race-{number}")
        first = await world.token(resource, 1)

        registered, _ = await asyncio.gather(
            world.register(resource, first), world.token(resource, 2), return_exceptions=True
        )

        assert isinstance(registered, Registered)
        life = await world.issuer.life(resource.id)
        assert life.state is BootstrapState.CONSUMED
