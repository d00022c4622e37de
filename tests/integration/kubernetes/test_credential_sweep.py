"""Holds that are left over, settled on a real API server and a real database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from function.contract import names
from function.contract.catalog.published import SecretStoreRef, VaultPath
from function.contract.strategy import Phase
from reconciler.app.protection.credential_hold import CredentialHold
from reconciler.domain.protection import shared_hold
from tests.contract.cluster_worlds import RealWorld, provider_config
from tests.contract.worlds import World, postgres_world
from tests.e2e.deploy import external_secrets
from tests.fakes.databases import migrated_database
from tests.unit.reconciler import samples
from tests.unit.reconciler.app.world import SampleCatalog

pytestmark = pytest.mark.integration

CREDENTIAL = samples.CREDENTIAL_NAME
STORED = samples.CREDENTIAL.model_copy(update={"secret_store_ref": SecretStoreRef(name="openbao")})
MOVED = STORED.model_copy(update={"vault": VaultPath(mount="kv", path="acme/moved")})
OLD = names.cloud_credentials_secret_name(mount="kv", path="acme/demo")
NEW = names.cloud_credentials_secret_name(mount="kv", path="acme/moved")
BOTH = {"Secret", "ExternalSecret"}


class Place:
    """A credential that is held in a namespace of its own."""

    def __init__(self, real: RealWorld, store: World) -> None:
        self.real = real
        self.store = store
        self.catalog = SampleCatalog()
        self.catalog.credentials[CREDENTIAL] = STORED
        self.hold = CredentialHold(store.repository, store.holds, real.cluster, self.catalog)
        self.config = provider_config(real.namespace, credential=CREDENTIAL)
        self.config["spec"] = {"credentials": {"secretRef": {"name": OLD}}}

    async def furnish(self) -> Place:
        """Hold what a node would need, and use it by a first one."""
        for name in (OLD, NEW):
            self.real.new_secret(name)
        await self.hold.hold(self.real.namespace, CREDENTIAL)
        await self.store.holds.remember(shared_hold.provider_config(self.config, CREDENTIAL))
        await self.real.cluster.provider_configs.ensure_provider_config(self.config)
        assert self.real.credential_holds(OLD) == BOTH
        return self

    async def sweep(self) -> None:
        """Settle what nobody uses, as the sweep does."""
        for namespace, credential in await self.hold.loose():
            await self.hold.settle(namespace, credential)

    async def use(self) -> None:
        """Store an aggregate that uses the credential."""
        key = replace(samples.resource().key, namespace=self.real.namespace)
        await self.store.resource(key=key)

    async def has_provider_config(self) -> bool:
        """Tell whether the ProviderConfig is there."""
        return (
            await self.real.cluster.provider_configs.provider_config_holder(self.config) is not None
        )

    async def assert_free(self) -> None:
        """Check that nothing is held, made or remembered any more."""
        for name in (OLD, NEW):
            assert self.real.credential_holds(name) == set()
            # Ours went with its last user.
            rendered = external_secrets.path(self.real.namespace, name)
            assert self.real.admin.get(rendered).status == 404
        assert not await self.has_provider_config()
        assert await self.store.holds.list_in_namespace(self.real.namespace) == []


@pytest.fixture
async def place(real: RealWorld) -> AsyncIterator[Place]:
    with migrated_database() as dsn:
        async with postgres_world(dsn) as store:
            yield await Place(real, store).furnish()


async def test_it_is_settled_without_the_catalogue_and_only_once(place: Place) -> None:
    place.catalog.credentials[CREDENTIAL] = None

    await place.sweep()

    await place.assert_free()
    settled = place.real.credential_writes(OLD)
    await place.sweep()
    await place.hold.settle(place.real.namespace, CREDENTIAL)
    assert place.real.credential_writes(OLD) == settled


async def test_a_moved_credential_is_let_go_at_both_places(place: Place) -> None:
    await place.use()
    place.catalog.credentials[CREDENTIAL] = MOVED
    await place.hold.settle(place.real.namespace, CREDENTIAL)
    assert place.real.credential_holds(OLD) == place.real.credential_holds(NEW) == BOTH
    (user,) = await place.store.repository.list_in_namespace(place.real.namespace)
    requested = user.request_deletion(samples.NOW)
    requested = await place.store.repository.record_deletion_intent(requested)
    await place.store.repository.update(requested.enter(Phase.DELETED, samples.NOW))

    await place.sweep()

    await place.assert_free()


async def test_a_process_that_died_after_the_provider_config_is_made_good(place: Place) -> None:
    metadata = place.config["metadata"]
    await place.real.cluster.provider_configs.delete_provider_config(
        api_version=place.config["apiVersion"],
        namespace=metadata["namespace"],
        name=metadata["name"],
    )
    place.catalog.credentials[CREDENTIAL] = None

    await place.sweep()

    await place.assert_free()


async def test_a_process_that_died_before_it_held_anything_is_too(place: Place) -> None:
    missing = shared_hold.secret(place.real.namespace, OLD[:-1] + "x", CREDENTIAL)
    await place.store.holds.remember(missing)

    await place.sweep()

    await place.assert_free()


async def test_what_is_used_stays_at_the_old_place_when_its_credential_moves_and_leaves(
    place: Place,
) -> None:
    await place.use()
    place.catalog.credentials[CREDENTIAL] = MOVED
    await place.hold.settle(place.real.namespace, CREDENTIAL)
    place.catalog.credentials[CREDENTIAL] = None
    # As External Secrets makes a Secret anew: without the hold.
    await place.real.cluster.credentials.hold_credentials(place.real.namespace, OLD, held=False)

    await place.sweep()
    await place.hold.settle(place.real.namespace, CREDENTIAL)

    assert place.real.credential_holds(OLD) >= {"Secret"}
    assert place.real.credential_holds(NEW) == BOTH
    assert await place.has_provider_config()


async def test_what_is_in_use_stays(place: Place) -> None:
    await place.use()
    place.catalog.credentials[CREDENTIAL] = None

    await place.sweep()
    await place.hold.settle(place.real.namespace, CREDENTIAL)

    assert place.real.credential_holds(OLD) == BOTH
    assert await place.has_provider_config()
