"""Whatever a tenant prepared under a name of ours is never adopted as it is.

One suite for the fake and for the gateway on a real API server; see `prepared`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest

from function.contract.catalog.published import SecretStoreRef, VaultPath
from reconciler.domain.aggregate.errors import GoingError
from reconciler.domain.protection import external_secret
from reconciler.ports.cluster.management_cluster import ManagementCluster
from reconciler.ports.cluster.namespaces import SOMEBODY_ELSE
from tests.contract.cluster_worlds import (
    ClusterWorld,
    MemoryWorld,
    provider_config,
    real_world,
    shared_control_plane,
)
from tests.contract.prepared import CONFIG, EXTERNAL, SECRET, Hands, MemoryHands, RealHands

pytestmark = pytest.mark.timeout(120)

SECRET_NAME = "cloud-credentials-0123456789abcdef"
Prepared = tuple[ClusterWorld, Hands]


@pytest.fixture(params=["memory", pytest.param("kubernetes", marks=pytest.mark.integration)])
async def prepared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Prepared]:
    if request.param == "memory":
        memory = MemoryWorld()
        yield memory, MemoryHands(memory)
        return
    plane = shared_control_plane(request.config, tmp_path_factory)
    async with real_world(plane) as real:
        yield real, RealHands(real)


def name() -> str:
    return f"cloud-credentials-{uuid4().hex[:16]}"


async def _hold(world: ClusterWorld, secret: str) -> bool:
    return await world.cluster.credentials.hold_credentials(world.namespace, secret, held=True)


@pytest.mark.parametrize("kinds", [[SECRET], [SECRET, EXTERNAL]])
async def test_what_says_it_is_released_says_so_no_more_once_it_is_held(
    prepared: Prepared, kinds: list[str]
) -> None:
    world, hands = prepared
    secret = name()
    for kind in kinds:
        hands.prepare(kind, secret)

    assert await _hold(world, secret)

    assert world.credential_holds(secret) == set(kinds)
    assert not any(hands.released(kind, secret) for kind in kinds)
    written = [hands.writes(kind, secret) for kind in kinds]
    assert await _hold(world, secret)
    assert [hands.writes(kind, secret) for kind in kinds] == written


async def test_a_secret_that_goes_is_not_held_until_it_is_there_anew(prepared: Prepared) -> None:
    world, hands = prepared
    secret = name()
    hands.prepare(SECRET, secret, going=True)

    with pytest.raises(GoingError, match=f"Secret '{secret}' is being deleted"):
        await _hold(world, secret)
    assert world.credential_holds(secret) == set()

    hands.finish(SECRET, secret)
    assert not await _hold(world, secret)
    world.new_secret(secret)
    assert await _hold(world, secret)


async def test_a_secret_that_was_held_stays_held_when_somebody_ends_it(prepared: Prepared) -> None:
    world, hands = prepared
    secret = name()
    world.new_secret(secret)
    await _hold(world, secret)
    hands.end(SECRET, secret)

    assert await _hold(world, secret)

    assert world.credential_holds(secret) == {SECRET}


async def test_an_external_secret_with_our_label_alone_is_somebody_elses(
    prepared: Prepared,
) -> None:
    world, hands = prepared
    manifest = external_secret.manifest(
        namespace=world.namespace,
        vault=VaultPath(mount="kv", path="acme/demo"),
        store=SecretStoreRef(name="openbao"),
    )
    secret = manifest["metadata"]["name"]
    hands.prepare(EXTERNAL, secret)
    written = hands.writes(EXTERNAL, secret)

    assert not await world.cluster.credentials.render_external_secret(manifest)
    assert await world.cluster.credentials.external_secret_taken(manifest)
    await world.cluster.credentials.hold_credentials(world.namespace, secret, held=False)

    assert hands.writes(EXTERNAL, secret) == written


async def test_a_provider_config_that_says_it_is_a_credentials_is_somebody_elses(
    prepared: Prepared,
) -> None:
    world, hands = prepared
    manifest = provider_config(world.namespace, credential="acme")
    hands.prepare(CONFIG, "generic", credential="acme")
    written = hands.writes(CONFIG, "generic")

    await world.cluster.provider_configs.ensure_provider_config(manifest)
    await _delete(world.cluster, world.namespace)

    assert await world.cluster.provider_configs.provider_config_holder(manifest) == SOMEBODY_ELSE
    assert hands.writes(CONFIG, "generic") == written


async def test_ours_follows_what_is_wanted_and_is_written_only_then(prepared: Prepared) -> None:
    world, hands = prepared
    manifest = provider_config(world.namespace)
    for spec in (
        _spec(url="https://old.example.org", zone="a"),
        _spec(url="https://new.example.org", zone="a"),
        _spec(url="https://new.example.org"),
        _spec(url="https://new.example.org", secret="cloud-credentials-fedcba9876543210"),
    ):
        await world.cluster.provider_configs.ensure_provider_config({**manifest, "spec": spec})
        assert hands.spec("generic") == spec
        written = hands.writes(CONFIG, "generic")

        await world.cluster.provider_configs.ensure_provider_config({**manifest, "spec": spec})

        assert hands.writes(CONFIG, "generic") == written


async def test_what_somebody_changes_of_ours_is_changed_back(prepared: Prepared) -> None:
    world, hands = prepared
    manifest = {**provider_config(world.namespace), "spec": _spec(url="https://api.example.org")}
    await world.cluster.provider_configs.ensure_provider_config(manifest)
    hands.tamper("generic", _spec(url="https://mine.example.org"))

    await world.cluster.provider_configs.ensure_provider_config(manifest)

    assert hands.spec("generic") == manifest["spec"]
    assert await world.cluster.provider_configs.provider_config_holder(manifest) == "acme"


async def test_one_of_ours_that_goes_is_waited_for_and_made_anew(prepared: Prepared) -> None:
    world, hands = prepared
    manifest = provider_config(world.namespace)
    await world.cluster.provider_configs.ensure_provider_config(manifest)
    hands.end(CONFIG, "generic")

    with pytest.raises(GoingError, match="ProviderConfig 'generic' is being deleted"):
        await world.cluster.provider_configs.ensure_provider_config(manifest)

    hands.finish(CONFIG, "generic")
    await world.cluster.provider_configs.ensure_provider_config(manifest)
    assert await world.cluster.provider_configs.provider_config_holder(manifest) == "acme"


async def test_a_namespace_that_says_it_is_released_says_so_no_more(prepared: Prepared) -> None:
    world, hands = prepared
    namespace = hands.new_namespace()

    await world.cluster.namespaces.hold_namespace(namespace, records=1)

    assert not hands.namespace_released(namespace)


async def test_a_namespace_that_goes_is_not_taken(prepared: Prepared) -> None:
    world, hands = prepared
    namespace = hands.new_namespace(going=True)

    with pytest.raises(GoingError, match="is being deleted"):
        await world.cluster.namespaces.hold_namespace(namespace, records=1)


def _spec(*, url: str, zone: str | None = None, secret: str = SECRET_NAME) -> dict[str, Any]:
    endpoint = {"url": url} if zone is None else {"url": url, "zone": zone}
    return {"endpoint": endpoint, "credentials": {"secretRef": {"name": secret}}}


async def _delete(cluster: ManagementCluster, namespace: str) -> None:
    await cluster.provider_configs.delete_provider_config(
        api_version=provider_config(namespace)["apiVersion"], namespace=namespace, name="generic"
    )
