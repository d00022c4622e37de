"""A credential whose ExternalSecret's name is somebody else's is not accepted."""

from __future__ import annotations

from typing import Any

import pytest

from function.contract import names
from function.contract.catalog.published import SecretStoreRef
from function.contract.conditions import ConditionType, find
from reconciler.app.converge.requeue import AGAIN_S
from reconciler.domain.protection import external_secret
from tests.unit.reconciler import samples
from tests.unit.reconciler.app.enrolled_world import EnrolledWorld, record
from tests.unit.reconciler.app.world import World

SECRET = names.cloud_credentials_secret_name(mount="kv", path="acme/demo")
STORED = samples.CREDENTIAL.model_copy(update={"secret_store_ref": SecretStoreRef(name="openbao")})
KEY = (samples.NAMESPACE, SECRET)
STRANGER: dict[str, Any] = {"metadata": {"name": SECRET, "namespace": samples.NAMESPACE}}


def _declared() -> World:
    return World()


def _enrolled() -> World:
    raw = record()
    raw["spec"]["declaration"]["cloudCredential"] = "demo-main"
    return EnrolledWorld(raw=raw)


def _stored(world: World) -> World:
    world.catalog.credentials[samples.CREDENTIAL_NAME] = STORED
    return world


@pytest.mark.parametrize(
    ("world", "field"),
    [
        pytest.param(_declared, "spec.cloudCredentialRef.name:", id="declare"),
        pytest.param(_enrolled, "input.resources.cloudCredential:", id="enrol"),
    ],
)
async def test_a_strangers_is_refused_and_stays(world: Any, field: str) -> None:
    refused = _stored(world())
    refused.cluster.external_secrets[KEY] = STRANGER

    again = await refused.tick()

    admitted = find(refused.status, ConditionType.ADMITTED)
    assert admitted is not None
    assert (admitted.status, admitted.reason) == ("False", "ExternalSecretTaken")
    assert admitted.message.startswith(f"{field} ExternalSecret {SECRET!r}")
    assert "demo-main" in admitted.message
    assert again == AGAIN_S
    assert refused.cluster.external_secrets == {KEY: STRANGER}
    assert refused.store.resources == {}


async def test_it_is_accepted_once_the_strangers_is_gone() -> None:
    world = _stored(World())
    world.cluster.external_secrets[KEY] = STRANGER
    await world.tick()

    del world.cluster.external_secrets[KEY]
    await world.tick()

    labels = world.cluster.external_secrets[KEY]["metadata"]["labels"]
    assert external_secret.is_ours(labels)


async def test_a_credential_without_a_store_takes_what_is_there() -> None:
    world = World()
    world.cluster.external_secrets[KEY] = STRANGER

    await world.tick()

    admitted = find(world.status, ConditionType.ADMITTED)
    assert admitted is not None
    assert admitted.status == "True"


async def test_a_stranger_that_comes_after_acceptance_is_said() -> None:
    world = _stored(World())
    await world.tick()
    world.cluster.external_secrets[KEY] = STRANGER

    await world.tick()

    ready = find(world.status, ConditionType.READY)
    assert ready is not None
    assert ready.reason == "ExternalSecretTaken"
    assert "demo-main" in ready.message
    assert world.cluster.external_secrets == {KEY: STRANGER}
