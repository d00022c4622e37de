"""What several share is let go only while nobody needs it, however late the call comes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import pytest

from reconciler.domain.protection.provider_config import ANNOTATION_CREDENTIAL
from reconciler.ports.cluster.namespaces import Needed
from tests.contract.cluster_worlds import (
    PROVIDER_API,
    ClusterWorld,
    MemoryWorld,
    provider_config,
    real_world,
    shared_control_plane,
)

pytestmark = pytest.mark.contract

SECRET = "cloud-credentials-0123456789abcdef"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """A thing that several need.

    Attributes:
        need: What who comes to need it does here, once that is stored.
        let_go: What the last one does.
        held: Whether it is still there, or still held.
    """

    need: Callable[[], Awaitable[object]]
    let_go: Callable[[Needed], Awaitable[object]]
    held: Callable[[], Awaitable[bool]]


@pytest.fixture(params=["memory", pytest.param("kubernetes", marks=pytest.mark.integration)])
async def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ClusterWorld]:
    if request.param == "memory":
        yield MemoryWorld()
        return
    plane = shared_control_plane(request.config, tmp_path_factory)
    async with real_world(plane) as real:
        yield real


@pytest.fixture(params=["namespace", "secret", "provider config"])
def shared(request: pytest.FixtureRequest, world: ClusterWorld) -> Shared:
    made = {"namespace": _namespace, "secret": _secret, "provider config": _provider_config}
    return made[request.param](world)


def _namespace(world: ClusterWorld) -> Shared:
    async def held() -> bool:
        return world.held()[0] == "true"

    return Shared(
        need=lambda: world.cluster.namespaces.hold_namespace(world.namespace, records=1),
        let_go=lambda needed: world.cluster.namespaces.hold_namespace(
            world.namespace, records=0, needed=needed
        ),
        held=held,
    )


def _secret(world: ClusterWorld) -> Shared:
    world.new_secret(SECRET)

    async def held() -> bool:
        return "Secret" in world.credential_holds(SECRET)

    return Shared(
        need=lambda: world.cluster.credentials.hold_credentials(world.namespace, SECRET, held=True),
        let_go=lambda needed: world.cluster.credentials.hold_credentials(
            world.namespace, SECRET, held=False, needed=needed
        ),
        held=held,
    )


def _provider_config(world: ClusterWorld) -> Shared:
    manifest = provider_config(world.namespace)
    world.new_provider_config("generic", {ANNOTATION_CREDENTIAL: "acme"})

    async def held() -> bool:
        return await world.cluster.provider_configs.provider_config_holder(manifest) is not None

    return Shared(
        need=lambda: world.cluster.provider_configs.ensure_provider_config(manifest),
        let_go=lambda needed: world.cluster.provider_configs.delete_provider_config(
            api_version=PROVIDER_API, namespace=world.namespace, name="generic", needed=needed
        ),
        held=held,
    )


async def test_what_nobody_needs_goes(shared: Shared) -> None:
    await shared.need()

    async def nobody() -> bool:
        return False

    await shared.let_go(nobody)

    assert not await shared.held()


async def test_what_somebody_needs_by_now_stays(shared: Shared) -> None:
    await shared.need()

    async def somebody() -> bool:
        return True

    await shared.let_go(somebody)

    assert await shared.held()


async def test_what_somebody_came_for_after_the_rows_were_asked_stays(shared: Shared) -> None:
    await shared.need()

    async def not_yet() -> bool:
        # The answer was right when it was given; who came since has been here.
        await shared.need()
        return False

    await shared.let_go(not_yet)

    assert await shared.held()


async def test_what_stayed_once_goes_when_its_time_has_come(shared: Shared) -> None:
    await shared.need()
    answers = [True, False]

    async def first_somebody() -> bool:
        return answers.pop(0)

    await shared.let_go(first_somebody)
    await shared.need()
    await shared.let_go(first_somebody)

    assert not await shared.held()
