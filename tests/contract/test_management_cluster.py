"""What `ports.cluster.management_cluster.ManagementCluster` promises."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from function.contract import names
from function.contract.catalog.published import SecretStoreRef, VaultPath
from function.contract.conditions import ObservedCondition
from function.contract.record import SubstrateReference
from reconciler.domain.aggregate.errors import StaleAggregateError
from reconciler.domain.protection import external_secret
from reconciler.domain.protection.provider_config import ANNOTATION_CREDENTIAL
from reconciler.domain.teardown.release import XRFacts
from reconciler.ports.cluster.substrates import KindNotServedError, NotAllowedError
from tests.contract.cluster_worlds import (
    FOREIGN_FINALIZER,
    POLICIES,
    PROVIDER_API,
    REALM,
    WEAKENINGS,
    ClusterWorld,
    MemoryWorld,
    Weakening,
    provider_config,
    real_world,
    reference,
    shared_control_plane,
    token,
)
from tests.fakes.management_cluster import GONE, RecordedEvent

pytestmark = pytest.mark.contract

CROSSPLANE = names.CROSSPLANE_FINALIZER
HANDLE = "pr-0197b1a2-0000-7000-8000-000000000001"
UNSERVED = [
    pytest.param({"kind": "XNothing"}, id="kind"),
    pytest.param({"api_version": f"{names.BLUEPRINTS_GROUP}/v9"}, id="version"),
    pytest.param({"api_version": "nowhere.plexsphere.test/v1"}, id="group"),
]


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


class TestPolicies:
    async def test_they_are_bound(self, world: ClusterWorld) -> None:
        assert await world.cluster.checks.hold_policies_problem() is None

    @pytest.mark.parametrize("policy", POLICIES)
    @pytest.mark.parametrize("weakening", WEAKENINGS.values(), ids=WEAKENINGS)
    async def test_each_says_all_that_this_version_needs(
        self, world: ClusterWorld, policy: str, weakening: Weakening
    ) -> None:
        with world.unenforced(policy, weakening):
            assert policy in str(await world.cluster.checks.hold_policies_problem())

        assert await world.cluster.checks.hold_policies_problem() is None


class TestDefinitions:
    async def test_a_served_namespaced_kind_is_no_problem(self, world: ClusterWorld) -> None:
        assert await world.cluster.checks.definition_problem(reference()) is None

    async def test_a_cluster_scoped_kind_is(self, world: ClusterWorld) -> None:
        problem = await world.cluster.checks.definition_problem(reference(REALM))

        assert problem is not None
        assert "XRealm" in problem
        assert "cluster-scoped" in problem

    @pytest.mark.parametrize("changes", UNSERVED)
    async def test_what_is_not_served_is(
        self, world: ClusterWorld, changes: dict[str, str]
    ) -> None:
        problem = await world.cluster.checks.definition_problem(
            reference().model_copy(update=changes)
        )

        assert problem is not None
        assert "not served" in problem
        assert all(value in problem for value in changes.values())


class TestNamespaceHold:
    async def test_it_is_held_with_the_count_of_its_records(self, world: ClusterWorld) -> None:
        await world.cluster.namespaces.hold_namespace(world.namespace, records=1)
        await world.cluster.namespaces.hold_namespace(world.namespace, records=3)

        assert world.held() == ("true", "3")

    async def test_it_is_let_go_at_zero(self, world: ClusterWorld) -> None:
        await world.cluster.namespaces.hold_namespace(world.namespace, records=1)

        await world.cluster.namespaces.hold_namespace(world.namespace, records=0)

        assert world.held() == (None, None)

    async def test_nothing_is_written_when_nothing_changes(self, world: ClusterWorld) -> None:
        untouched = world.namespace_writes()
        await world.cluster.namespaces.hold_namespace(world.namespace, records=0)
        assert world.namespace_writes() == untouched

        await world.cluster.namespaces.hold_namespace(world.namespace, records=2)
        held = world.namespace_writes()
        await world.cluster.namespaces.hold_namespace(world.namespace, records=2)

        assert held != untouched
        assert world.namespace_writes() == held

    async def test_an_absent_namespace_needs_no_hold(self, world: ClusterWorld) -> None:
        await world.cluster.namespaces.hold_namespace(f"absent-{uuid4().hex[:8]}", records=1)


class TestTokenSecrets:
    async def test_it_delivers_a_token_of_a_generation(self, world: ClusterWorld) -> None:
        record, issued = world.new_record(), token(7)

        await world.cluster.token_secrets.create_token_secret(record, name="web-g7", token=issued)

        assert await world.cluster.token_secrets.token_secret_exists(world.namespace, "web-g7")
        delivered = world.delivered("web-g7")
        assert delivered is not None
        assert delivered.token == issued.plaintext.reveal()
        assert delivered.generation == 7
        assert delivered.owner == record["metadata"]["uid"]

    async def test_the_first_stays(self, world: ClusterWorld) -> None:
        record, first = world.new_record(), token()
        await world.cluster.token_secrets.create_token_secret(record, name="web-g1", token=first)

        await world.cluster.token_secrets.create_token_secret(record, name="web-g1", token=token())

        delivered = world.delivered("web-g1")
        assert delivered is not None
        assert delivered.token == first.plaintext.reveal()

    async def test_one_of_an_earlier_record_of_that_name_gives_way(
        self, world: ClusterWorld
    ) -> None:
        earlier, issued = world.new_record("web"), token()
        await world.cluster.token_secrets.create_token_secret(earlier, name="web-g1", token=token())
        world.remove_record(earlier)
        record = world.new_record("web")

        await world.cluster.token_secrets.create_token_secret(record, name="web-g1", token=issued)

        delivered = world.delivered("web-g1")
        assert delivered is not None
        assert delivered.token == issued.plaintext.reveal()
        assert delivered.owner == record["metadata"]["uid"]

    async def test_it_is_deleted_once_and_for_all(self, world: ClusterWorld) -> None:
        record = world.new_record()
        await world.cluster.token_secrets.create_token_secret(record, name="web-g1", token=token())
        await world.cluster.token_secrets.create_token_secret(record, name="web-g2", token=token(2))

        owner = record["metadata"]["uid"]
        await world.cluster.token_secrets.delete_token_secret(
            world.namespace, "web-g1", owner=owner
        )
        await world.cluster.token_secrets.delete_token_secret(
            world.namespace, "web-g1", owner=owner
        )

        assert not await world.cluster.token_secrets.token_secret_exists(world.namespace, "web-g1")
        assert await world.cluster.token_secrets.token_secret_exists(world.namespace, "web-g2")

    async def test_a_late_deletion_leaves_that_of_a_later_record(self, world: ClusterWorld) -> None:
        earlier, issued = world.new_record("web"), token()
        world.remove_record(earlier)
        record = world.new_record("web")
        await world.cluster.token_secrets.create_token_secret(record, name="web-g1", token=issued)

        owner = earlier["metadata"]["uid"]
        await world.cluster.token_secrets.delete_token_secret(
            world.namespace, "web-g1", owner=owner
        )

        assert await world.cluster.token_secrets.token_secret_exists(world.namespace, "web-g1")

    async def test_a_late_delivery_leaves_that_of_a_later_record(self, world: ClusterWorld) -> None:
        earlier, issued = world.new_record("web"), token()
        world.remove_record(earlier)
        record = world.new_record("web")
        await world.cluster.token_secrets.create_token_secret(record, name="web-g1", token=issued)

        with pytest.raises(StaleAggregateError):
            await world.cluster.token_secrets.create_token_secret(
                earlier, name="web-g1", token=token()
            )

        delivered = world.delivered("web-g1")
        assert delivered is not None
        assert delivered.owner == record["metadata"]["uid"]

    async def test_an_absent_one_does_not_exist(self, world: ClusterWorld) -> None:
        assert not await world.cluster.token_secrets.token_secret_exists(
            world.namespace, "nobody-g1"
        )


class TestProviderConfigs:
    async def test_a_free_name_has_no_holder(self, world: ClusterWorld) -> None:
        manifest = provider_config(world.namespace)

        assert await world.cluster.provider_configs.provider_config_holder(manifest) is None

    async def test_the_first_credential_keeps_the_name(self, world: ClusterWorld) -> None:
        first = provider_config(world.namespace, credential="acme")
        second = provider_config(world.namespace, credential="other")
        await world.cluster.provider_configs.ensure_provider_config(first)

        await world.cluster.provider_configs.ensure_provider_config(first)
        await world.cluster.provider_configs.ensure_provider_config(second)

        assert await world.cluster.provider_configs.provider_config_holder(second) == "acme"

    async def test_it_is_deleted_although_it_is_held(self, world: ClusterWorld) -> None:
        manifest = provider_config(world.namespace)
        await world.cluster.provider_configs.ensure_provider_config(manifest)

        for _ in range(2):
            await self._delete(world)

        assert await world.cluster.provider_configs.provider_config_holder(manifest) is None

    async def test_somebody_else_keeps_theirs(self, world: ClusterWorld) -> None:
        manifest = provider_config(world.namespace)
        world.new_provider_config("generic", {})

        await world.cluster.provider_configs.ensure_provider_config(manifest)
        await self._delete(world)

        assert (
            await world.cluster.provider_configs.provider_config_holder(manifest) == "somebody else"
        )

    async def test_where_its_kind_is_not_served_there_is_none(self, world: ClusterWorld) -> None:
        api = "nowhere.plexsphere.test/v1"
        manifest = provider_config(world.namespace, api=api)

        await world.cluster.provider_configs.ensure_provider_config(manifest)
        await self._delete(world, api=api)

        assert await world.cluster.provider_configs.provider_config_holder(manifest) is None

    async def _delete(self, world: ClusterWorld, api: str = PROVIDER_API) -> None:
        await world.cluster.provider_configs.delete_provider_config(
            api_version=api, namespace=world.namespace, name="generic"
        )

    async def test_holders_are_told_by_the_annotation(self, world: ClusterWorld) -> None:
        world.new_provider_config("generic", {ANNOTATION_CREDENTIAL: "theirs"})

        holder = await world.cluster.provider_configs.provider_config_holder(
            provider_config(world.namespace)
        )

        assert holder == "theirs"


class TestCredentials:
    @pytest.mark.parametrize(
        "there", [{"Secret"}, {"ExternalSecret"}, {"Secret", "ExternalSecret"}, set()]
    )
    async def test_what_is_there_is_held_and_let_go(
        self, world: ClusterWorld, there: set[str]
    ) -> None:
        name = self._make(world, there)

        held = await world.cluster.credentials.hold_credentials(world.namespace, name, held=True)
        assert world.credential_holds(name) == (there if "Secret" in there else set())
        free = await world.cluster.credentials.hold_credentials(world.namespace, name, held=False)

        assert held == free == ("Secret" in there)
        assert world.credential_holds(name) == set()

    @pytest.mark.parametrize("held", [True, False])
    async def test_nothing_is_written_when_nothing_changes(
        self, world: ClusterWorld, held: bool
    ) -> None:
        name = self._make(world, {"Secret", "ExternalSecret"})
        await world.cluster.credentials.hold_credentials(world.namespace, name, held=True)
        await world.cluster.credentials.hold_credentials(world.namespace, name, held=held)
        settled = world.credential_writes(name)

        await world.cluster.credentials.hold_credentials(world.namespace, name, held=held)

        assert world.credential_writes(name) == settled

    async def test_an_external_secret_is_rendered_held_from_birth(
        self, world: ClusterWorld
    ) -> None:
        manifest = _external_secret(world)
        name = manifest["metadata"]["name"]

        assert await world.cluster.credentials.render_external_secret(manifest)

        spec = world.external_secret(name)
        assert spec is not None
        assert spec["secretStoreRef"] == {"kind": "ClusterSecretStore", "name": "openbao"}
        assert spec["dataFrom"][0]["extract"]["key"] == "kv/acme/demo"
        assert world.credential_holds(name) == {"ExternalSecret"}

    async def test_it_is_written_again_only_when_it_differs(self, world: ClusterWorld) -> None:
        manifest = _external_secret(world)
        name = manifest["metadata"]["name"]
        await world.cluster.credentials.render_external_secret(manifest)
        first = world.credential_writes(name)

        await world.cluster.credentials.render_external_secret(manifest)
        assert world.credential_writes(name) == first
        await world.cluster.credentials.render_external_secret(
            _external_secret(world, store="other")
        )

        spec = world.external_secret(name)
        assert spec is not None
        assert spec["secretStoreRef"]["name"] == "other"

    async def test_somebody_elses_is_left_as_it_is(self, world: ClusterWorld) -> None:
        manifest = _external_secret(world)
        name = manifest["metadata"]["name"]
        world.new_external_secret(name)
        before = world.external_secret(name)

        assert not await world.cluster.credentials.render_external_secret(manifest)
        assert await world.cluster.credentials.external_secret_taken(manifest)
        await world.cluster.credentials.hold_credentials(world.namespace, name, held=False)

        assert world.external_secret(name) == before

    async def test_ours_is_not_taken(self, world: ClusterWorld) -> None:
        manifest = _external_secret(world)
        assert not await world.cluster.credentials.external_secret_taken(manifest)

        await world.cluster.credentials.render_external_secret(manifest)

        assert not await world.cluster.credentials.external_secret_taken(manifest)

    async def test_of_many_that_render_at_once_each_finds_it_ours(
        self, world: ClusterWorld
    ) -> None:
        manifest = _external_secret(world)

        answers = await asyncio.gather(
            *(world.cluster.credentials.render_external_secret(manifest) for _ in range(5))
        )

        assert all(answers)
        assert world.external_secret(manifest["metadata"]["name"]) is not None

    @pytest.mark.parametrize("secret", [True, False])
    async def test_ours_goes_when_it_is_let_go_and_is_made_again(
        self, world: ClusterWorld, secret: bool
    ) -> None:
        manifest = _external_secret(world)
        name = manifest["metadata"]["name"]
        await world.cluster.credentials.render_external_secret(manifest)
        if secret:
            world.new_secret(name)
            await world.cluster.credentials.hold_credentials(world.namespace, name, held=True)

        for _ in range(2):
            assert (
                await world.cluster.credentials.hold_credentials(world.namespace, name, held=False)
                == secret
            )
        assert world.external_secret(name) is None
        assert world.credential_holds(name) == set()

        await world.cluster.credentials.render_external_secret(manifest)

        assert "ExternalSecret" in world.credential_holds(name)

    async def test_where_its_kind_is_not_served_nothing_happens(self, world: ClusterWorld) -> None:
        manifest = {**_external_secret(world), "apiVersion": "nowhere.plexsphere.test/v1"}

        assert not await world.cluster.credentials.render_external_secret(manifest)
        assert not await world.cluster.credentials.external_secret_taken(manifest)

    @pytest.mark.parametrize(
        ("name", "made", "ours"),
        [
            ("cloud-credentials-0123456789abcdef", True, True),
            ("cloud-credentials-0123456789abcdef", False, False),
            ("somebody-elses", True, False),
            ("../../other/secrets/victim", True, False),
        ],
    )
    async def test_a_provider_config_tells_its_secret_if_that_is_a_credentials(
        self, world: ClusterWorld, name: str, made: bool, ours: bool
    ) -> None:
        manifest = provider_config(world.namespace)
        if made:
            world.new_provider_config(manifest["metadata"]["name"], {}, secret=name)

        told = await world.cluster.provider_configs.provider_config_secret(manifest)

        assert told == (name if ours else None)

    def _make(self, world: ClusterWorld, there: set[str]) -> str:
        name = f"cloud-credentials-{uuid4().hex[:16]}"
        if "Secret" in there:
            world.new_secret(name)
        if "ExternalSecret" in there:
            world.new_external_secret(name)
        return name


def _external_secret(world: ClusterWorld, *, store: str = "openbao") -> dict[str, Any]:
    return external_secret.manifest(
        namespace=world.namespace,
        vault=VaultPath(mount="kv", path="acme/demo"),
        store=SecretStoreRef(name=store),
    )


class TestXRFacts:
    @pytest.mark.parametrize(
        ("state", "facts"),
        [
            pytest.param({"finalizers": [CROSSPLANE]}, (False, True, False), id="composing"),
            pytest.param({}, (False, False, False), id="not-yet-composing"),
            pytest.param(
                {"finalizers": [CROSSPLANE], "terminating": True}, (True, True, False), id="going"
            ),
            pytest.param(
                {"finalizers": [FOREIGN_FINALIZER], "terminating": True},
                (True, False, False),
                id="let-go",
            ),
            pytest.param(
                {"finalizers": [CROSSPLANE], "paused": "true"}, (False, True, True), id="paused"
            ),
            pytest.param(
                {"finalizers": [CROSSPLANE], "paused": "false"}, (False, True, False), id="resumed"
            ),
        ],
    )
    async def test_they_are_what_stands(
        self, world: ClusterWorld, state: dict[str, Any], facts: tuple[bool, bool, bool]
    ) -> None:
        xr = world.new_xr(**state)

        found = await world.cluster.substrates.get_xr_facts(xr, world.namespace)

        terminating, composing, paused = facts
        assert found == XRFacts(
            exists=True, terminating=terminating, composing_finalizer=composing, paused=paused
        )

    @pytest.mark.parametrize(
        "changes",
        [
            pytest.param({"uid": "another"}, id="uid"),
            pytest.param({"name": "another"}, id="name"),
        ],
    )
    async def test_another_one_is_not_it(
        self, world: ClusterWorld, changes: dict[str, str]
    ) -> None:
        xr = world.new_xr(finalizers=[CROSSPLANE], terminating=True, paused="true")

        found = await world.cluster.substrates.get_xr_facts(
            xr.model_copy(update=changes), world.namespace
        )

        assert found == GONE

    @pytest.mark.parametrize("changes", UNSERVED)
    async def test_of_a_kind_that_is_not_served_there_are_none(
        self, world: ClusterWorld, changes: dict[str, str]
    ) -> None:
        xr = world.new_xr().model_copy(update=changes)

        with pytest.raises(KindNotServedError):
            await world.cluster.substrates.get_xr_facts(xr, world.namespace)

    async def test_an_empty_uid_stands_for_whichever_has_the_name(
        self, world: ClusterWorld
    ) -> None:
        xr = world.new_xr(finalizers=[CROSSPLANE])
        anybody = xr.model_copy(update={"uid": ""})
        nobody = anybody.model_copy(update={"name": "nobody"})

        found = await world.cluster.substrates.get_xr_facts(anybody, world.namespace)

        assert found == await world.cluster.substrates.get_xr_facts(xr, world.namespace) != GONE
        assert await world.cluster.substrates.get_xr_facts(nobody, world.namespace) == GONE


def _other_group(unserved: SubstrateReference) -> bool:
    return names.group_of(unserved.api_version) != names.group_of(reference().api_version)


class TestSubstrates:
    async def test_what_is_not_there_is_none(self, world: ClusterWorld) -> None:
        assert await world.cluster.substrates.get_object(reference(), world.namespace) is None

    @pytest.mark.parametrize("changes", UNSERVED)
    async def test_one_of_a_kind_that_is_not_served_is_not_called_gone(
        self, world: ClusterWorld, changes: dict[str, str]
    ) -> None:
        unserved = reference().model_copy(update=changes)

        with pytest.raises(KindNotServedError) as raised:
            await world.cluster.substrates.get_object(unserved, world.namespace)

        served = reference().api_version if "api_version" in changes else None
        assert raised.value.elsewhere == (None if _other_group(unserved) else served)

    @pytest.mark.parametrize("terminating", [False, True])
    async def test_one_is_seen_as_it_stands(self, world: ClusterWorld, terminating: bool) -> None:
        substrate = reference()
        uid = world.compose(substrate, terminating=terminating)

        found = await world.cluster.substrates.get_object(substrate, world.namespace)

        assert found is not None
        assert (found.uid, found.terminating, found.released) == (uid, terminating, False)

    async def test_what_one_says_of_itself_is_read_as_it_stands(self, world: ClusterWorld) -> None:
        substrate = reference()
        assert await world.cluster.substrates.health(substrate, world.namespace) is None
        world.compose(substrate)
        silent = await world.cluster.substrates.health(substrate, world.namespace)
        said = ObservedCondition(status="False", reason="ReconcileError", message="quota exceeded")

        world.say(substrate, "Synced", said)

        found = await world.cluster.substrates.health(substrate, world.namespace)
        assert silent is not None
        assert silent.conditions == {}
        assert found is not None
        assert found.conditions == {"Synced": said}

    async def test_nobody_reads_what_may_be_a_secret(self, world: ClusterWorld) -> None:
        secret = SubstrateReference(api_version="v1", kind="Secret", name="user-data")

        assert await world.cluster.substrates.health(secret, world.namespace) is None

    @pytest.mark.parametrize("changes", UNSERVED)
    async def test_of_a_kind_that_is_not_served_nothing_is_said(
        self, world: ClusterWorld, changes: dict[str, str]
    ) -> None:
        with pytest.raises(KindNotServedError):
            await world.cluster.substrates.health(
                reference().model_copy(update=changes), world.namespace
            )

    async def test_it_is_released_once_and_for_all(self, world: ClusterWorld) -> None:
        substrate = reference()
        uid = world.compose(substrate)

        await world.cluster.substrates.release(substrate, world.namespace, uid=uid)
        await world.cluster.substrates.release(substrate, world.namespace, uid=uid)

        found = await world.cluster.substrates.get_object(substrate, world.namespace)
        assert found is not None
        assert (found.uid, found.terminating, found.released) == (uid, False, True)

    async def test_another_under_its_name_is_never_released(self, world: ClusterWorld) -> None:
        substrate = reference()
        earlier = world.compose(substrate)
        world.remove(substrate)
        uid = world.compose(substrate)

        with pytest.raises(StaleAggregateError):
            await world.cluster.substrates.release(substrate, world.namespace, uid=earlier)

        found = world.live(substrate)
        assert found is not None
        assert (found.uid, found.released) == (uid, False)

    async def test_what_is_gone_is_not_released(self, world: ClusterWorld) -> None:
        unserved = reference().model_copy(update={"kind": "XNothing"})

        for gone in (reference(), unserved):
            with pytest.raises(StaleAggregateError):
                await world.cluster.substrates.release(gone, world.namespace, uid=str(uuid4()))

    async def test_it_is_deleted_although_it_is_held(self, world: ClusterWorld) -> None:
        substrate = reference()
        uid = world.compose(substrate)

        await world.cluster.substrates.delete_object(substrate, world.namespace, uid=uid)
        await world.cluster.substrates.delete_object(substrate, world.namespace, uid=uid)

        found = await world.cluster.substrates.get_object(substrate, world.namespace)
        assert found is None or found.terminating

    async def test_another_under_its_name_is_never_deleted(self, world: ClusterWorld) -> None:
        substrate = reference()
        earlier = world.compose(substrate)
        world.remove(substrate)
        uid = world.compose(substrate)

        await world.cluster.substrates.delete_object(substrate, world.namespace, uid=earlier)

        found = world.live(substrate)
        assert found is not None
        assert (found.uid, found.terminating) == (uid, False)

    async def test_what_is_gone_is_deleted(self, world: ClusterWorld) -> None:
        unserved = reference().model_copy(update={"kind": "XNothing"})

        await world.cluster.substrates.delete_object(reference(), world.namespace, uid=str(uuid4()))
        await world.cluster.substrates.delete_object(unserved, world.namespace, uid=str(uuid4()))


class TestSiblings:
    async def test_the_hold_comes_off_once_and_the_object_stays(self, world: ClusterWorld) -> None:
        sibling = reference()
        uid = world.compose(sibling)
        before = await world.cluster.substrates.get_object(sibling, world.namespace)

        await world.cluster.substrates.let_go(sibling, world.namespace, uid=uid)
        await world.cluster.substrates.let_go(sibling, world.namespace, uid=uid)

        assert before is not None
        assert before.held
        found = await world.cluster.substrates.get_object(sibling, world.namespace)
        assert found == replace(before, held=False)
        assert world.live(sibling) == found

    async def test_another_under_its_name_keeps_its_hold(self, world: ClusterWorld) -> None:
        sibling = reference()
        earlier = world.compose(sibling)
        world.remove(sibling)
        world.compose(sibling)

        await world.cluster.substrates.let_go(sibling, world.namespace, uid=earlier)

        found = world.live(sibling)
        assert found is not None
        assert found.held

    async def test_what_is_gone_needs_no_letting_go(self, world: ClusterWorld) -> None:
        await world.cluster.substrates.let_go(reference(), world.namespace, uid=str(uuid4()))

    async def test_its_controller_is_told(self, world: ClusterWorld) -> None:
        xr = world.new_xr()
        owned, orphan = reference(), reference()
        world.compose(owned, controller=xr)
        world.compose(orphan)

        found = await world.cluster.substrates.get_object(owned, world.namespace)
        left = await world.cluster.substrates.get_object(orphan, world.namespace)

        assert found is not None
        assert found.controller == xr
        assert left is not None
        assert left.controller is None

    async def test_one_goes_in_the_background(self, world: ClusterWorld) -> None:
        sibling = reference()
        uid = world.compose(sibling)

        await world.cluster.substrates.delete_object(
            sibling, world.namespace, uid=uid, foreground=False
        )

        assert world.live(sibling) is None


class TestComposites:
    async def test_one_is_told_by_its_kind(self, world: ClusterWorld) -> None:
        leaf = SubstrateReference(api_version="v1", kind="ConfigMap", name="leaf")
        unserved = reference().model_copy(update={"kind": "XNothing"})

        assert await world.cluster.substrates.is_composite(reference())
        assert not await world.cluster.substrates.is_composite(leaf)
        assert not await world.cluster.substrates.is_composite(unserved)

    async def test_what_is_below_it_is_held_until_it_is_let_go(self, world: ClusterWorld) -> None:
        composite = reference()
        uid = world.compose(composite)
        where = world.namespace
        seen = await world.cluster.substrates.get_object(composite, where)
        assert seen is not None

        await world.cluster.substrates.hold_below(composite, where, live=seen, handle=HANDLE)

        found = await world.cluster.substrates.get_object(composite, where)
        assert found is not None
        assert found.below_held
        assert world.live(composite) == found
        await world.cluster.substrates.let_go(composite, where, uid=uid)
        assert await world.cluster.substrates.get_object(composite, where) == replace(
            found, held=False, below_held=False
        )
        assert world.live(composite) == replace(found, held=False, below_held=False)

    async def test_another_under_its_name_is_not_marked(self, world: ClusterWorld) -> None:
        composite = reference()
        world.compose(composite)
        where = world.namespace
        seen = await world.cluster.substrates.get_object(composite, where)
        assert seen is not None
        another = replace(seen, uid=str(uuid4()))

        for each, stranger in ((composite, another), (reference(), seen)):
            with pytest.raises(StaleAggregateError):
                await world.cluster.substrates.hold_below(each, where, live=stranger, handle=HANDLE)

        found = world.live(composite)
        assert found is not None
        assert not found.below_held

    async def test_a_late_mark_does_not_undo_that_it_was_let_go(self, world: ClusterWorld) -> None:
        composite = reference()
        uid = world.compose(composite)
        where = world.namespace
        seen = await world.cluster.substrates.get_object(composite, where)
        assert seen is not None
        await world.cluster.substrates.hold_below(composite, where, live=seen, handle=HANDLE)
        await world.cluster.substrates.let_go(composite, where, uid=uid)

        with pytest.raises(StaleAggregateError):
            await world.cluster.substrates.hold_below(composite, where, live=seen, handle=HANDLE)

        found = world.live(composite)
        assert found is not None
        assert not found.below_held


class TestRights:
    VERBS = ("get", "patch", "delete")

    async def test_what_teardown_takes_is_there(self, world: ClusterWorld) -> None:
        known = reference()

        missing = await world.cluster.checks.missing_rights(
            api_version=known.api_version, kind=known.kind, verbs=self.VERBS
        )

        assert missing == ()

    async def test_in_its_namespace_it_has_its_own_rights(self, world: ClusterWorld) -> None:
        missing = await world.cluster.checks.missing_rights(
            api_version=PROVIDER_API,
            kind="ProviderConfig",
            verbs=("get", "create", "delete"),
            namespace=world.namespace,
        )

        assert missing == ()

    async def test_what_is_lacking_is_named(self, world: ClusterWorld) -> None:
        missing = await world.cluster.checks.missing_rights(
            api_version="v1", kind="ConfigMap", verbs=self.VERBS
        )

        assert missing == self.VERBS

    @pytest.mark.parametrize("changes", UNSERVED)
    async def test_on_what_is_not_served_there_are_none(
        self, world: ClusterWorld, changes: dict[str, str]
    ) -> None:
        unserved = reference().model_copy(update=changes)

        missing = await world.cluster.checks.missing_rights(
            api_version=unserved.api_version, kind=unserved.kind, verbs=self.VERBS
        )

        assert missing == self.VERBS

    async def test_a_lack_of_them_is_told_apart(self, world: ClusterWorld) -> None:
        forbidden = SubstrateReference(api_version="v1", kind="ConfigMap", name="any")

        with pytest.raises(NotAllowedError):
            await world.cluster.substrates.get_object(forbidden, world.namespace)

    async def test_a_kind_of_the_core_group_is_no_problem(self, world: ClusterWorld) -> None:
        core = SubstrateReference(api_version="v1", kind="ConfigMap", name="any")

        assert await world.cluster.checks.definition_problem(core) is None


class TestStatus:
    async def test_it_is_replaced_whole_and_the_spec_stays(self, world: ClusterWorld) -> None:
        record = world.new_record()
        first = {"phase": "Pending", "xrName": "pr-1", "bootstrap": {"state": "Issued"}}
        await world.cluster.records.write_status(record, first)

        for _ in range(2):
            read = world.live_record(record)
            assert read is not None
            await world.cluster.records.write_status(
                read, {"phase": "Ready", "substrate": "Present"}
            )

        found = world.live_record(record)
        assert found is not None
        assert found["status"] == {"phase": "Ready", "substrate": "Present"}
        assert found["spec"] == record["spec"]
        assert found["metadata"]["finalizers"] == record["metadata"]["finalizers"]

    async def test_another_record_under_the_name_keeps_its_own(self, world: ClusterWorld) -> None:
        earlier = world.new_record()
        world.remove_record(earlier)
        record = world.new_record(earlier["metadata"]["name"])
        await world.cluster.records.write_status(record, {"phase": "Pending"})

        with pytest.raises(StaleAggregateError):
            await world.cluster.records.write_status(earlier, {"phase": "Deleted"})

        found = world.live_record(record)
        assert found is not None
        assert found["status"] == {"phase": "Pending"}

    async def test_one_that_comes_late_leaves_what_was_written_since(
        self, world: ClusterWorld
    ) -> None:
        record = world.new_record()
        await world.cluster.records.write_status(
            record, {"phase": "Deprovisioning", "substrate": "Absent"}
        )

        with pytest.raises(StaleAggregateError):
            await world.cluster.records.write_status(
                record, {"phase": "Ready", "substrate": "Present"}
            )

        found = world.live_record(record)
        assert found is not None
        assert found["status"] == {"phase": "Deprovisioning", "substrate": "Absent"}

    async def test_a_record_that_is_gone_has_none(self, world: ClusterWorld) -> None:
        record = world.new_record()
        world.remove_record(record)

        with pytest.raises(StaleAggregateError):
            await world.cluster.records.write_status(record, {"phase": "Deleted"})

        assert world.live_record(record) is None


class TestLooseRecords:
    async def test_one_without_controller_is_deleted_and_waits_for_its_finalizers(
        self, world: ClusterWorld
    ) -> None:
        record = world.new_record()

        for _ in range(2):
            await world.cluster.records.delete_loose_record(record)

        live = world.live_record(record)
        assert live is not None
        assert "deletionTimestamp" in live["metadata"]

    async def test_one_that_a_composite_took_over_stays(self, world: ClusterWorld) -> None:
        record = world.new_record(controller=world.new_xr())
        loose = {**record, "metadata": {**record["metadata"], "ownerReferences": []}}

        await world.cluster.records.delete_loose_record(loose)

        live = world.live_record(record)
        assert live is not None
        assert "deletionTimestamp" not in live["metadata"]

    async def test_another_under_its_name_stays(self, world: ClusterWorld) -> None:
        record = world.new_record()
        other = {**record, "metadata": {**record["metadata"], "uid": str(uuid4())}}

        await world.cluster.records.delete_loose_record(other)

        live = world.live_record(record)
        assert live is not None
        assert "deletionTimestamp" not in live["metadata"]

    async def test_one_that_is_gone_needs_no_deletion(self, world: ClusterWorld) -> None:
        record = world.new_record()
        world.remove_record(record)

        await world.cluster.records.delete_loose_record(record)


class TestStandingRecords:
    async def test_one_stands_until_it_is_deleted(self, world: ClusterWorld) -> None:
        record = world.new_record()
        before = await world.cluster.records.record_stands(record)

        await world.cluster.records.delete_loose_record(record)

        assert (before, await world.cluster.records.record_stands(record)) == (True, False)

    async def test_one_that_was_read_while_it_was_going_stands_until_it_is_gone(
        self, world: ClusterWorld
    ) -> None:
        record = world.new_record()
        await world.cluster.records.delete_loose_record(record)
        going = world.live_record(record)
        assert going is not None
        before = await world.cluster.records.record_stands(going)

        world.remove_record(record)

        assert (before, await world.cluster.records.record_stands(going)) == (True, False)

    async def test_another_under_its_name_is_not_it(self, world: ClusterWorld) -> None:
        record = world.new_record()
        other = {**record, "metadata": {**record["metadata"], "uid": str(uuid4())}}

        assert not await world.cluster.records.record_stands(other)


class TestFinalizer:
    async def test_ours_goes_and_the_foreign_stays(self, world: ClusterWorld) -> None:
        record = world.new_record()

        await world.cluster.records.remove_finalizer(record)
        await world.cluster.records.remove_finalizer(record)

        found = world.live_record(record)
        assert found is not None
        assert found["metadata"]["finalizers"] == [FOREIGN_FINALIZER]

    async def test_another_record_under_the_name_keeps_its_own(self, world: ClusterWorld) -> None:
        earlier = world.new_record()
        world.remove_record(earlier)
        record = world.new_record(earlier["metadata"]["name"])

        await world.cluster.records.remove_finalizer(earlier)

        found = world.live_record(record)
        assert found is not None
        assert names.FINALIZER in found["metadata"]["finalizers"]

    async def test_a_record_that_is_gone_needs_none_removed(self, world: ClusterWorld) -> None:
        record = world.new_record()
        world.remove_record(record)

        await world.cluster.records.remove_finalizer(record)

        assert world.live_record(record) is None


class TestEvents:
    async def test_one_is_recorded_once_on_the_record_and_its_xr(self, world: ClusterWorld) -> None:
        record = world.new_record()

        for _ in range(2):
            await world.cluster.records.record_event(record, reason="Enrolling", message="it boots")

        uids = (record["metadata"]["uid"], record["spec"]["declaration"]["xr"]["uid"])
        expected = [RecordedEvent(uid, "Enrolling", "it boots", False) for uid in uids]
        assert sorted(world.events()) == sorted(expected)

    async def test_a_warning_is_one(self, world: ClusterWorld) -> None:
        record = world.new_record()

        await world.cluster.records.record_event(
            record, reason="Failed", message="no", warning=True
        )

        assert [event.warning for event in world.events()] == [True, True]

    async def test_what_differs_is_another_one(self, world: ClusterWorld) -> None:
        one, other = world.new_record(), world.new_record()

        await world.cluster.records.record_event(one, reason="Failed", message="quota")
        await world.cluster.records.record_event(one, reason="Failed", message="image")
        await world.cluster.records.record_event(one, reason="Ready", message="quota")
        await world.cluster.records.record_event(other, reason="Failed", message="quota")

        assert len(world.events()) == 8
