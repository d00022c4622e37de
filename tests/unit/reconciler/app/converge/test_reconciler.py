"""A record from its birth to Ready, what keeps it from there, and a crash after every effect."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from function.contract import names
from function.contract.conditions import ConditionType, find, is_true
from function.contract.record import RecordStatus
from function.contract.strategy import BootstrapState, Phase, SubstrateState
from tests.unit.reconciler.app.world import Fuse, SampleCatalog, World


async def test_an_accepted_record_publishes_what_the_function_composes_from() -> None:
    world = World()

    await world.tick()

    status = RecordStatus.model_validate(world.status)
    assert status.phase is Phase.PENDING
    assert status.substrate is SubstrateState.PRESENT
    assert status.accepted is not None
    assert status.xr_name == names.xr_name(world.resource.id)
    assert status.bootstrap.state is BootstrapState.ISSUED
    assert status.bootstrap.generation == 1
    assert status.enrolment is not None
    assert is_true(world.status, ConditionType.ADMITTED)


async def test_the_namespace_is_held_before_anything_is_accepted() -> None:
    world = World()

    await world.tick()

    assert world.cluster.journal[0] == "hold 1"


async def test_a_record_goes_to_ready_with_one_event_each() -> None:
    world = World()

    await world.until_ready()

    assert world.event_types() == [
        "broker.ProvisionedResourceRequested",
        "broker.ProvisionedResourceReady",
    ]
    assert is_true(world.status, ConditionType.READY)
    assert world.status["node"]["meshIP"] == "100.64.0.1"


async def test_the_secret_goes_once_its_token_is_consumed() -> None:
    world = World()

    await world.until_ready()

    assert world.cluster.secrets == {}
    assert world.status["bootstrap"]["state"] == "Consumed"


async def test_each_phase_is_told_in_its_order_as_an_event_of_its_record() -> None:
    world = World()
    await world.until_ready()
    await world.tick()

    told = dict.fromkeys(event.reason for event in world.cluster.events)
    assert [each for each in told if each in set(Phase)] == ["Pending", "Enrolling", "Ready"]


async def test_a_tick_on_an_unchanged_world_writes_nothing() -> None:
    world = World()
    await world.until_ready()
    before = (list(world.cluster.journal), world.fuse.burnt)

    await world.tick()

    assert world.cluster.journal == before[0]


async def test_the_status_shows_no_token() -> None:
    world = World()
    await world.tick()
    (issued,) = world.cluster.secrets.values()

    assert issued.plaintext.reveal() not in repr(world.raw)
    assert issued.plaintext.reveal() not in repr(world.cluster.events)


async def test_substrate_ready_starts_the_tokens_window_anew() -> None:
    world = World()
    await world.tick()
    world.store.clock.advance(timedelta(minutes=50))
    world.react()

    await world.tick_until_quiet()

    (row,) = world.store.tokens.values()
    assert row.expires_at == world.store.clock.now() + timedelta(hours=1)


async def test_a_secret_lost_before_delivery_is_followed_by_the_next_generation() -> None:
    world = World()
    await world.tick()
    world.cluster.secrets.clear()
    await world.tick()
    assert world.resource.generation == 1
    world.store.clock.advance(timedelta(seconds=31))

    await world.tick()

    assert world.resource.generation == 2
    assert world.status["bootstrap"]["generation"] == 2
    assert [row.spent for row in world.store.tokens.values()] == [False, False]


async def test_no_generation_follows_while_the_substrate_is_there() -> None:
    world = World()
    await world.tick_until_quiet()
    assert world.cluster.objects
    world.cluster.secrets.clear()
    world.store.clock.advance(timedelta(seconds=31))

    await world.tick()
    assert world.resource.generation == 1

    world.cluster.objects.clear()
    world.react()
    await world.tick()
    assert world.resource.generation == 2


async def test_a_paused_record_is_left_alone() -> None:
    world = World()
    world.raw["metadata"]["annotations"] = {names.PAUSED: "true"}

    await world.tick()

    assert world.cluster.journal == []
    assert world.store.resources == {}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda catalog: catalog.projects.clear(), "ProjectNotFound"),
        (lambda catalog: catalog.place(ready=False), "NamespaceNotReady"),
        (lambda catalog: catalog.blueprints.clear(), "BlueprintNotFound"),
        (lambda catalog: catalog.credentials.clear(), "CredentialNotFound"),
        (lambda catalog: catalog.clouds.clear(), "CloudNotFound"),
    ],
)
async def test_what_is_missing_is_waited_for_by_name(
    change: Callable[[SampleCatalog], None], reason: str
) -> None:
    world = World()
    change(world.catalog)

    again = await world.tick()

    condition = find(world.status, ConditionType.ADMITTED)
    assert condition is not None
    assert (condition.status, condition.reason) == ("False", reason)
    assert world.store.resources == {}
    assert world.cluster.secrets == {}
    assert again is not None


async def test_nothing_is_accepted_without_the_policies() -> None:
    world = World()
    world.cluster.unenforced = "plexsphere-hold"

    await world.tick()

    condition = find(world.status, ConditionType.ADMITTED)
    assert condition is not None
    assert condition.reason == "HoldPoliciesMissing"
    assert world.store.resources == {}


async def test_a_record_without_a_controller_from_birth_is_not_admitted() -> None:
    world = World()
    del world.raw["metadata"]["ownerReferences"]

    await world.tick()

    condition = find(world.status, ConditionType.ADMITTED)
    assert condition is not None
    assert condition.reason == "NoController"
    assert world.store.resources == {}


async def test_a_provider_config_of_another_credential_is_not_taken() -> None:
    world = World()
    world.cluster.provider_configs[world.raw["metadata"]["namespace"], "generic"] = "another"

    await world.tick()

    condition = find(world.status, ConditionType.ADMITTED)
    assert condition is not None
    assert condition.reason == "ProviderConfigTaken"
    assert "another" in condition.message


async def test_a_refused_edit_leaves_the_accepted_declaration_in_force() -> None:
    world = World()
    await world.until_ready()
    accepted = world.status["accepted"]
    world.raw["spec"]["declaration"]["parameters"] = {"region": 7}
    world.raw["metadata"]["generation"] = 2

    await world.tick()

    assert world.status["accepted"] == accepted
    assert world.status["phase"] == "Ready"
    condition = find(world.status, ConditionType.ADMITTED)
    assert condition is not None
    assert condition.reason == "InvalidParameters"


async def test_an_edit_takes_effect_when_it_is_accepted() -> None:
    world = World()
    await world.until_ready()
    world.raw["spec"]["declaration"]["labels"] = {"team": "payments"}

    await world.tick()

    assert world.status["accepted"]["labels"] == {"team": "payments"}
    assert world.status["phase"] == "Ready"


async def test_an_orphan_says_so_and_keeps_everything() -> None:
    world = World()
    await world.until_ready()
    del world.raw["metadata"]["ownerReferences"]

    await world.tick()

    assert is_true(world.status, ConditionType.ORPHANED)
    assert world.status["phase"] == "Ready"
    assert world.status["substrate"] == "Present"


async def test_a_failed_one_stays_failed_until_retry_is_raised() -> None:
    world = World()
    await world.tick_until_quiet()
    world.react()
    world.raw["spec"]["observed"] = {"exists": True, "failed": True, "reason": "Quota: none left"}
    await world.tick()
    assert world.status["phase"] == "Failed"
    assert is_true(world.status, ConditionType.STALLED)
    world.raw["spec"]["observed"] = {"exists": True, "ready": False}
    await world.tick()
    assert world.status["phase"] == "Failed"
    world.raw["spec"]["declaration"]["labels"] = {"team": "desk"}
    await world.tick()
    assert world.resource.accepted.labels == {"team": "desk"}
    assert world.status["phase"] == "Failed"
    identity = world.resource.id

    world.raw["spec"]["declaration"]["retry"] = 1
    await world.tick()

    assert world.status["phase"] == "Provisioning"
    assert world.resource.id == identity
    assert len(world.store.tokens) == 1
    await world.tick()
    assert [(row.action, row.reason) for row in world.store.audit] == [
        ("retry", "spec.retry was raised from 0 to 1 in phase Failed")
    ]
    failed = world.store.events[identity][-1]
    assert failed.payload["Reason"] == "Quota: none left"


async def test_an_unreadable_record_is_named_and_harms_nothing() -> None:
    world = World()
    world.raw["spec"]["declaration"]["provider"] = "mainframe"

    await world.tick()

    condition = find(world.status, ConditionType.ADMITTED)
    assert condition is not None
    assert "spec.declaration.provider" in condition.message
    assert "mainframe" not in condition.message.replace("'mainframe'", "")
    assert world.store.resources == {}


@pytest.mark.parametrize("after", range(1, 32))
async def test_a_crash_after_any_effect_on_the_way_to_ready_changes_nothing(after: int) -> None:
    world = World(fuse=Fuse(after=after))

    await world.until_ready()

    consumed = [row for row in world.store.tokens.values() if row.consumed_at]
    assert len(consumed) == 1
    assert len(world.store.resources) == 1
    assert world.event_types() == [
        "broker.ProvisionedResourceRequested",
        "broker.ProvisionedResourceReady",
    ]
    assert world.cluster.secrets == {} or len(world.cluster.secrets) < len(world.store.tokens)


async def test_the_crash_cases_cover_every_effect() -> None:
    world = World()

    await world.until_ready()

    assert world.fuse.burnt <= 31


async def test_no_later_generation_is_issued_without_the_policies() -> None:
    world = World()
    await world.tick()
    world.cluster.secrets.clear()
    world.cluster.unenforced = "plexsphere-hold"
    world.store.clock.advance(timedelta(minutes=5))

    await world.tick()

    assert world.resource.generation == 1
    condition = find(world.status, ConditionType.READY)
    assert condition is not None
    assert condition.reason == "HoldPoliciesMissing"


async def test_a_window_is_renewed_while_the_node_may_still_come() -> None:
    world = World()
    await world.tick_until_quiet()
    world.store.clock.advance(timedelta(minutes=45))

    await world.tick()

    (row,) = world.store.tokens.values()
    assert row.expires_at == world.store.clock.now() + timedelta(hours=1)
    assert world.status["phase"] == "Enrolling"


async def test_a_first_run_that_sees_nothing_does_not_take_a_node_back_to_pending() -> None:
    world = World()
    await world.until_ready()
    world.raw["spec"]["observed"] = {"exists": False}

    await world.tick()

    assert world.status["phase"] == "Ready"


async def test_a_substrate_lost_under_a_live_node_is_said_until_retry_is_raised() -> None:
    world = World()
    await world.until_ready()
    world.cluster.objects.clear()
    world.raw["spec"]["observed"] = {"exists": False}
    for _ in range(3):
        await world.tick()
    stalled = find(world.status, ConditionType.STALLED)
    assert stalled is not None
    assert (stalled.status, stalled.reason) == ("True", "SubstrateLost")
    assert len(world.store.tokens) == 1

    world.raw["spec"]["declaration"]["retry"] = 1
    world.store.clock.advance(timedelta(minutes=1))
    await world.tick_until_quiet()

    assert world.resource.generation == 2
    audited = [row.action for row in world.store.audit]
    assert audited == ["unreleased-substrate-gone", "retry", "recreate"]
    assert [node.deregistered_at is not None for node in world.store.nodes.values()] == [True]


async def test_another_record_of_the_same_xr_is_a_stranger() -> None:
    world = World()
    await world.until_ready()
    world.raw["metadata"].update({"name": "web-1-forged", "uid": "record-2"})

    await world.tick()

    condition = find(world.status, ConditionType.ADMITTED)
    assert condition is not None
    assert "another record" in condition.message
    assert world.resource.record.name == "web-1-abc"


async def test_a_restored_record_is_remembered_even_when_it_is_refused() -> None:
    world = World()
    await world.until_ready()
    world.raw["metadata"]["uid"] = "record-restored"
    world.catalog.place(ready=False)

    await world.tick()

    assert world.resource.record.uid == "record-restored"
    assert world.status["phase"] == "Ready"
