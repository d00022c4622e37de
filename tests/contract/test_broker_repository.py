"""What `ports.store.aggregates.BrokerRepository` promises."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from function.contract.record import SubstrateReference
from function.contract.strategy import BootstrapState, Phase
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.errors import (
    AssignmentNotFoundError,
    InvalidInputError,
    LivesElsewhereError,
    ProtectedElsewhereError,
    ProvisionedResourceNotFoundError,
    StaleAggregateError,
)
from reconciler.domain.aggregate.protected_object import ProtectedObject
from reconciler.domain.aggregate.resource import ProvisionedResource, RecordIdentity
from reconciler.domain.events import audit, lifecycle
from reconciler.domain.replacement import transitions
from reconciler.domain.teardown.force_release import ForceRelease
from tests.contract.worlds import ELSEWHERE, World, aggregate
from tests.unit.reconciler import samples

pytestmark = pytest.mark.contract

LATER = samples.NOW + timedelta(minutes=5)


def _ready(resource: ProvisionedResource) -> lifecycle.LifecycleEvent:
    event = lifecycle.on_phase(resource, Phase.READY)
    assert event is not None
    return event


class TestCreating:
    async def test_a_created_aggregate_is_read_back_as_it_was(self, world: World) -> None:
        reference = SubstrateReference(api_version="v1", kind="Machine", name="m")
        resource = aggregate(
            protected=(
                ProtectedObject(reference=reference, uid="uid-1"),
                ProtectedObject(reference=reference, sibling=True),
            )
        )

        created = await world.repository.create(resource)

        assert created == resource
        assert await world.repository.get(resource.id) == resource
        assert await world.repository.find_live(resource.key) == resource

    async def test_the_requested_event_commits_with_it(self, world: World) -> None:
        resource = await world.resource()

        (event,) = await world.backdoor.events(resource.id)

        assert (event.type, event.aggregate_sequence) == (lifecycle.EventType.REQUESTED, 1)
        event_id = event.payload.pop("EventID")
        assert event_id != str(resource.id)
        said = {"OccurredAt": "2026-11-21T12:00:00Z", **lifecycle.requested(resource).data}
        # The store adds the names that the ids stand for (`test_producers`).
        assert {name: event.payload[name] for name in said} == said

    async def test_a_live_key_gives_the_existing_one_and_writes_nothing(self, world: World) -> None:
        first = await world.resource()
        second = aggregate()

        answered = await world.repository.create(second)

        assert answered == first
        assert await world.backdoor.events(second.id) == []
        with pytest.raises(ProvisionedResourceNotFoundError):
            await world.repository.get(second.id)

    async def test_ten_at_once_create_one(self, world: World) -> None:
        wanted = [aggregate() for _ in range(10)]

        answered = await asyncio.gather(*(world.repository.create(item) for item in wanted))

        assert len({item.id for item in answered}) == 1
        assert len(await world.repository.sightings(samples.CLUSTER)) == 1

    async def test_a_key_is_free_again_once_its_deletion_was_requested(self, world: World) -> None:
        first = await world.resource()
        await world.repository.record_deletion_intent(first.request_deletion(LATER))

        second = await world.resource()

        assert second.id != first.id
        assert await world.repository.find_live(first.key) == second

    async def test_an_unknown_project_is_refused(self, world: World) -> None:
        stranger = ids.ProjectID(uuid7())
        resource = aggregate()
        resource = replace(
            resource, project_id=stranger, key=replace(resource.key, project_id=stranger)
        )

        with pytest.raises(AssignmentNotFoundError):
            await world.repository.create(resource)

        assert await world.backdoor.events(resource.id) == []

    async def test_an_unknown_cluster_is_refused(self, world: World) -> None:
        resource = aggregate(management_cluster_id=ids.management_cluster_id("elsewhere"))

        with pytest.raises(AssignmentNotFoundError):
            await world.repository.create(resource)


NETWORK = ProtectedObject(reference=samples.NETWORK, sibling=True)
SERVER = samples.SERVER.model_copy(update={"name": "db-1"})
OLDER = SERVER.model_copy(update={"api_version": "cloud.test/v0"})


def _enrolled(
    xr: str, resource: str = "server", *, substrate: str = "", shared: bool = True, **changes: Any
) -> ProvisionedResource:
    """Build an aggregate of somebody else's resource."""
    made = aggregate(xr, accepted=samples.ENROLLED, **changes)
    key = replace(made.key, group="platform.test", kind="Pool", name=xr, resource=resource)
    first = ProtectedObject(reference=SERVER.model_copy(update={"name": substrate or made.xr_name}))
    return replace(made, key=key, protected=(first, *([NETWORK] if shared else [])))


class TestElsewhere:
    """Clusters that share a database, and a Project that Git applied to both."""

    async def _foreign(self, world: World, name: str = "web-1") -> ProvisionedResource:
        await world.tenancy.ensure_cluster("elsewhere", "Elsewhere")
        made = aggregate(name, management_cluster_id=ELSEWHERE)
        return await world.foreign.create(made)

    async def test_anothers_is_found_neither_by_its_key_nor_by_its_record(
        self, world: World
    ) -> None:
        foreign = await self._foreign(world)

        assert await world.repository.find_live(foreign.key) is None
        assert await world.repository.find_by_record(foreign.record.uid) is None
        assert await world.foreign.find_live(foreign.key) == foreign
        assert await world.foreign.find_by_record(foreign.record.uid) == foreign

    async def test_what_lives_there_is_refused_here_and_stays_as_it_is(self, world: World) -> None:
        foreign = await self._foreign(world)
        wanted = aggregate()
        assert wanted.key == foreign.key

        with pytest.raises(LivesElsewhereError, match="exists on management cluster 'elsewhere'"):
            await world.repository.create(wanted)

        assert await world.backdoor.events(wanted.id) == []
        assert await world.foreign.get(foreign.id) == foreign

    async def test_where_a_key_lives_else_is_told_until_its_deletion_is_asked_for(
        self, world: World
    ) -> None:
        foreign = await self._foreign(world)
        other = replace(foreign.key, name="web-2")

        assert await world.repository.elsewhere_by_key(foreign.key) == "elsewhere"
        assert await world.repository.elsewhere_by_key(other) is None
        assert await world.foreign.elsewhere_by_key(foreign.key) is None

        await world.foreign.record_deletion_intent(foreign.request_deletion(foreign.created_at))
        assert await world.repository.elsewhere_by_key(foreign.key) is None

    async def test_where_records_live_else_is_told_until_all_are_deleted(
        self, world: World
    ) -> None:
        foreign = await self._foreign(world)
        here = await world.resource("web-2")
        uids = [here.record.uid, foreign.record.uid]

        assert await world.repository.elsewhere_by_record(uids) == "elsewhere"
        assert await world.foreign.elsewhere_by_record(uids) == "local"
        assert await world.repository.elsewhere_by_record([here.record.uid, "nobody's"]) is None
        assert await world.repository.elsewhere_by_record([]) is None

        going = foreign.request_deletion(foreign.created_at)
        going = await world.foreign.record_deletion_intent(going)
        assert await world.repository.elsewhere_by_record(uids) == "elsewhere"
        await world.foreign.update(replace(going, phase=Phase.DELETED))
        assert await world.repository.elsewhere_by_record(uids) is None

    async def test_anothers_in_a_namespace_of_that_name_are_neither_listed_nor_counted(
        self, world: World
    ) -> None:
        foreign = await self._foreign(world, "web-2")
        here = await world.resource("web-1")
        assert here.key.namespace == foreign.key.namespace
        name = here.key.namespace

        listed = await world.repository.list_in_namespace(name)

        assert [item.id for item in listed] == [here.id]
        assert await world.repository.count_in_namespace(name) == 1
        gone = await world.repository.record_deletion_intent(here.request_deletion(LATER))
        await world.repository.update(replace(gone, phase=Phase.DELETED))
        assert await world.repository.count_in_namespace(name) == 0
        assert await world.repository.credential_uses(name) == []
        assert len(await world.foreign.credential_uses(name)) == 1


class TestProtecting:
    async def test_siblings_of_one_composite_are_shared(self, world: World) -> None:
        await world.repository.create(_enrolled("pool", "node-0"))

        await world.repository.create(_enrolled("pool", "node-1"))

        assert len(await world.repository.sightings(samples.CLUSTER)) == 2

    async def test_what_another_composite_protects_is_refused_with_its_holder(
        self, world: World
    ) -> None:
        await world.repository.create(_enrolled("pool"))

        with pytest.raises(ProtectedElsewhereError, match=r"spec\.substrate\[1\]: Network 'net'"):
            await world.repository.create(_enrolled("other"))

        (stored,) = await world.repository.sightings(samples.CLUSTER)
        assert (await world.repository.get(stored.id)).key.name == "pool"

    async def test_a_substrate_has_one_record_whatever_its_version(self, world: World) -> None:
        await world.repository.create(_enrolled("pool", "a", substrate="db-1"))
        second = _enrolled("pool", "b", substrate="db-1")
        second = replace(second, protected=(ProtectedObject(reference=OLDER), NETWORK))

        with pytest.raises(ProtectedElsewhereError, match=r"Pool 'pool', resource 'a'"):
            await world.repository.create(second)

    async def test_a_substrate_is_nobodys_sibling(self, world: World) -> None:
        await world.repository.create(_enrolled("pool", "a", substrate="net", shared=False))
        clash = replace(
            _enrolled("pool", "b"),
            protected=(
                ProtectedObject(reference=SERVER.model_copy(update={"name": "db-2"})),
                ProtectedObject(reference=SERVER.model_copy(update={"name": "net"}), sibling=True),
            ),
        )

        with pytest.raises(ProtectedElsewhereError):
            await world.repository.create(clash)

    async def test_it_is_free_once_its_holder_is_deleted(self, world: World) -> None:
        first = await world.repository.create(_enrolled("pool", substrate="db-1"))
        going = await world.repository.record_deletion_intent(first.request_deletion(LATER))
        again = _enrolled("pool", substrate="db-1")
        with pytest.raises(ProtectedElsewhereError):
            await world.repository.create(again)

        await world.repository.update(replace(going, phase=Phase.DELETED))

        assert await world.repository.create(again) == again

    @pytest.mark.parametrize(
        "place",
        [
            pytest.param({"management_cluster_id": "west"}, id="cluster"),
            pytest.param({"namespace": "another"}, id="namespace"),
        ],
    )
    async def test_elsewhere_a_name_is_another_object(
        self, world: World, place: dict[str, Any]
    ) -> None:
        await world.tenancy.ensure_cluster("west", "West")
        await world.repository.create(_enrolled("pool"))
        other = _enrolled("other")
        if "namespace" in place:
            other = replace(other, key=replace(other.key, **place))
        else:
            other = replace(other, management_cluster_id=ids.management_cluster_id("west"))

        assert await world.repository.create(other) == other

    async def test_of_many_composites_at_once_one_gets_it(self, world: World) -> None:
        wanted = [_enrolled(f"pool-{number}") for number in range(10)]

        answers = await asyncio.gather(
            *(world.repository.create(item) for item in wanted), return_exceptions=True
        )

        refused = [item for item in answers if isinstance(item, ProtectedElsewhereError)]
        (stored,) = await world.repository.sightings(samples.CLUSTER)
        assert len(refused) == 9
        assert await world.repository.get(stored.id) in answers
        assert [await world.backdoor.events(item.id) for item in wanted].count([]) == 9

    async def test_a_live_key_still_gives_the_existing_one(self, world: World) -> None:
        wanted = [_enrolled("pool", substrate="db-1") for _ in range(5)]

        answered = await asyncio.gather(*(world.repository.create(item) for item in wanted))

        assert len({item.id for item in answered}) == 1

    async def test_a_sibling_that_comes_later_is_judged_too(self, world: World) -> None:
        await world.repository.create(_enrolled("pool"))
        later = await world.repository.create(_enrolled("other", shared=False))
        wider = replace(later, protected=(*later.protected, NETWORK))

        with pytest.raises(ProtectedElsewhereError, match=r"Pool 'pool'"):
            await world.repository.update(wider)

        assert await world.repository.get(later.id) == later

    async def test_of_two_that_widen_at_once_one_gets_it(self, world: World) -> None:
        narrow = [
            await world.repository.create(_enrolled(name, shared=False)) for name in ("a", "b")
        ]

        answers = await asyncio.gather(
            *(
                world.repository.update(replace(item, protected=(*item.protected, NETWORK)))
                for item in narrow
            ),
            return_exceptions=True,
        )

        assert sum(isinstance(item, ProtectedElsewhereError) for item in answers) == 1

    async def test_what_it_protects_already_is_not_judged_again(self, world: World) -> None:
        stored = await world.repository.create(_enrolled("pool"))

        changed = await world.repository.update(replace(stored, phase=Phase.PROVISIONING))

        assert changed.version == stored.version + 1


class TestFinding:
    async def test_an_unknown_id_is_not_found(self, world: World) -> None:
        with pytest.raises(ProvisionedResourceNotFoundError):
            await world.repository.get(ids.ProvisionedResourceID(uuid7()))

    async def test_an_unknown_key_and_an_unknown_record_are_none(self, world: World) -> None:
        assert await world.repository.find_live(aggregate().key) is None
        assert await world.repository.find_by_record("nobody") is None

    @pytest.mark.parametrize("part", ["namespace", "group", "kind", "name", "resource"])
    async def test_every_part_of_the_key_counts(self, world: World, part: str) -> None:
        resource = await world.resource()

        other: dict[str, Any] = {part: "other"}
        assert await world.repository.find_live(replace(resource.key, **other)) is None

    async def test_a_record_gives_its_newest_aggregate(self, world: World) -> None:
        old = await world.resource()
        await world.repository.record_deletion_intent(old.request_deletion(LATER))
        new = await world.resource(created_at=LATER, updated_at=LATER)

        assert await world.repository.find_by_record(new.record.uid) == new

    async def test_lists_are_oldest_first_and_without_the_deleted(self, world: World) -> None:
        young = await world.resource("b", created_at=LATER, updated_at=LATER)
        old = await world.resource("a")
        gone = await world.resource("c")
        gone = await world.repository.record_deletion_intent(gone.request_deletion(LATER))
        await world.repository.update(replace(gone, phase=Phase.DELETED))

        listed = await world.repository.sightings(samples.CLUSTER)

        assert [item.id for item in listed] == [old.id, young.id]

    async def test_a_namespace_lists_its_own(self, world: World) -> None:
        here = await world.resource("a")
        elsewhere = replace(here.key, name="b", namespace="elsewhere")
        await world.resource("b", key=elsewhere)

        listed = await world.repository.list_in_namespace(here.key.namespace)

        assert [item.id for item in listed] == [here.id]


class TestUpdating:
    async def test_a_change_is_stored_and_counted(self, world: World) -> None:
        resource = await world.resource()
        changed = replace(
            resource,
            phase=Phase.ENROLLING,
            record=RecordIdentity(name="other", uid="other-uid"),
            accepted=resource.accepted.model_copy(update={"retry": 7, "labels": {"é": "ß"}}),
            protected=(replace(resource.protected[0], uid="seen"),),
            bootstrap_token_id=ids.BootstrapTokenID(uuid7()),
            generation=3,
            updated_at=LATER,
        )

        stored = await world.repository.update(changed)

        assert stored == replace(changed, version=resource.version + 1)
        assert await world.repository.get(resource.id) == stored

    async def test_a_stale_change_is_refused_with_its_event(self, world: World) -> None:
        resource = await world.resource()
        current = await world.repository.update(replace(resource, phase=Phase.PROVISIONING))

        with pytest.raises(StaleAggregateError):
            await world.repository.update(
                replace(resource, phase=Phase.READY), event=_ready(resource)
            )

        assert await world.repository.get(resource.id) == current
        assert len(await world.backdoor.events(resource.id)) == 1

    async def test_of_ten_at_once_one_wins(self, world: World) -> None:
        resource = await world.resource()

        answers = await asyncio.gather(
            *(world.repository.update(replace(resource, generation=item)) for item in range(1, 11)),
            return_exceptions=True,
        )

        refused = [item for item in answers if isinstance(item, BaseException)]
        assert len(refused) == 9
        assert all(isinstance(item, StaleAggregateError) for item in refused)
        assert (await world.repository.get(resource.id)).version == resource.version + 1

    async def test_an_unknown_id_is_not_found(self, world: World) -> None:
        with pytest.raises(ProvisionedResourceNotFoundError):
            await world.repository.update(aggregate())

    async def test_an_event_is_stored_once_per_generation(self, world: World) -> None:
        resource = await world.resource()

        for _ in range(3):
            resource = await world.repository.update(resource, event=_ready(resource))
        resource = await world.repository.update(replace(resource, generation=1))
        resource = await world.repository.update(resource, event=_ready(resource))

        stored = await world.backdoor.events(resource.id)
        assert [item.type for item in stored] == [
            lifecycle.EventType.REQUESTED,
            lifecycle.EventType.READY,
            lifecycle.EventType.READY,
        ]
        assert [item.aggregate_sequence for item in stored] == [1, 2, 3]

    async def test_for_how_long_a_substrate_was_due_is_told_by_the_stores_clock(
        self, world: World
    ) -> None:
        resource = await world.resource()
        assert await world.repository.provisioning_for(resource.id) is None

        # Whatever time the process believes in, the store's own counts, and the first time.
        long_ago = samples.NOW - timedelta(days=365)
        due = await world.repository.update(replace(resource.due(long_ago), updated_at=LATER))
        flapped = due.enter(Phase.PROVISIONING, LATER).enter(Phase.ENROLLING, LATER)
        again = await world.repository.update(flapped.enter(Phase.PROVISIONING, LATER))
        took = await world.repository.provisioning_for(resource.id)
        ready = await world.repository.update(again.enter(Phase.READY, LATER))

        assert again.provisioning_since == due.provisioning_since != long_ago
        assert took is not None
        assert timedelta() <= took < timedelta(hours=1)
        assert ready.provisioning_since is None
        assert await world.repository.get(resource.id) == ready
        assert await world.repository.provisioning_for(resource.id) is None

    async def test_since_when_a_node_is_waited_for_is_kept(self, world: World) -> None:
        resource = await world.resource()
        assert resource.enrolling_since is None

        waiting = await world.repository.update(resource.enter(Phase.ENROLLING, LATER))
        ready = await world.repository.update(waiting.enter(Phase.READY, LATER))
        again = await world.repository.update(ready.enter(Phase.PENDING, LATER))

        since = [item.enrolling_since for item in (waiting, ready, again)]
        assert since == [LATER, LATER, None]
        assert await world.repository.get(resource.id) == again

    async def test_a_recreation_is_kept_and_audited_each_time(self, world: World) -> None:
        resource = await world.resource()
        assert (resource.recreations, resource.recreating_since) == (0, None)

        for number in (1, 2):
            begun = await world.repository.update(transitions.begun(resource, LATER))
            going = transitions.let_go(begun, f"uid-{number}", LATER)
            entry = audit.recreation(going, "no node registered in time")
            going = await world.repository.update(going, audit=entry)
            assert await world.repository.get(resource.id) == going
            assert (going.recreations, going.recreating_since) == (number, LATER)
            resource = await world.repository.update(transitions.finished(going, LATER))

        assert (resource.recreations, resource.recreating_since) == (2, None)
        told = await world.backdoor.audit(resource.id)
        assert [row.action for row in told] == ["recreate", "recreate"]
        assert all("no node registered in time" in row.reason for row in told)

    async def test_a_retry_is_audited_with_its_change(self, world: World) -> None:
        resource = await world.resource()
        again = samples.DECLARATION.model_copy(update={"retry": 1})
        entry = audit.retry(resource, again)

        stored = await world.repository.update(replace(resource, accepted=again), audit=entry)

        (row,) = await world.backdoor.audit(stored.id)
        assert (row.action, row.actor) == ("retry", None)
        assert "from 0 to 1" in row.reason
        with pytest.raises(StaleAggregateError):
            await world.repository.update(replace(resource, accepted=again), audit=entry)
        assert len(await world.backdoor.audit(stored.id)) == 1

    async def test_a_deletion_request_ends_the_tokens(self, world: World) -> None:
        resource = await world.resource()
        first, second = await world.token(resource, 1), await world.token(resource, 2)
        other = await world.token(await world.resource("other"))

        await world.repository.record_deletion_intent(resource.request_deletion(LATER))

        states = [await world.issuer.state(token.id) for token in (first, second, other)]
        assert states == [BootstrapState.REVOKED, BootstrapState.REVOKED, BootstrapState.ISSUED]

    async def test_a_change_read_before_a_deletion_request_loses(self, world: World) -> None:
        resource = await world.resource()
        requested = await world.repository.record_deletion_intent(resource.request_deletion(LATER))

        with pytest.raises(StaleAggregateError):
            await world.repository.update(replace(resource, phase=Phase.READY))

        assert await world.repository.get(resource.id) == requested

    async def test_a_later_change_keeps_the_deletion_request(self, world: World) -> None:
        resource = await world.resource()
        requested = await world.repository.record_deletion_intent(resource.request_deletion(LATER))

        stored = await world.repository.update(replace(requested, phase=Phase.DEPROVISIONING))

        assert stored.deletion_requested_at == LATER

    async def test_a_clouds_message_that_cannot_be_stored_is_told_escaped(
        self, world: World
    ) -> None:
        failed = (await world.resource()).enter(Phase.FAILED, samples.NOW)
        event = lifecycle.on_phase(failed, Phase.FAILED, failure="quota\0 exceeded")

        await world.repository.update(failed, event=event)

        _, told = await world.backdoor.events(failed.id)
        assert told.payload["Reason"] == '"quota\\u0000 exceeded"'


class TestDeletionIntent:
    async def test_intent_and_event_commit_together(self, world: World) -> None:
        resource = await world.resource()

        stored = await world.repository.record_deletion_intent(resource.request_deletion(LATER))

        assert stored.phase is Phase.DEREGISTERING
        assert stored.deletion_requested_at == LATER
        assert stored.version == resource.version + 1
        event = (await world.backdoor.events(resource.id))[-1]
        assert event.type == lifecycle.EventType.DELETING
        assert event.payload["OccurredAt"] == "2026-11-21T12:05:00Z"

    async def test_a_second_request_changes_nothing(self, world: World) -> None:
        resource = await world.resource()
        first = await world.repository.record_deletion_intent(resource.request_deletion(LATER))

        again = await world.repository.record_deletion_intent(
            resource.request_deletion(LATER + timedelta(days=1))
        )

        assert again == first
        assert len(await world.backdoor.events(resource.id)) == 2

    async def test_ten_at_once_are_one(self, world: World) -> None:
        resource = await world.resource()
        wanted = resource.request_deletion(LATER)

        answers = await asyncio.gather(
            *(world.repository.record_deletion_intent(wanted) for _ in range(10))
        )

        assert {item.version for item in answers} == {resource.version + 1}
        assert len(await world.backdoor.events(resource.id)) == 2

    async def test_it_wins_over_a_change_that_was_read_later(self, world: World) -> None:
        resource = await world.resource()
        current = await world.repository.update(replace(resource, phase=Phase.READY))

        stored = await world.repository.record_deletion_intent(resource.request_deletion(LATER))

        assert stored.phase is Phase.DEREGISTERING
        assert stored.version == current.version + 1

    async def test_an_unknown_id_is_not_found(self, world: World) -> None:
        with pytest.raises(ProvisionedResourceNotFoundError):
            await world.repository.record_deletion_intent(aggregate().request_deletion(LATER))

    async def test_an_aggregate_that_asks_for_nothing_is_refused(self, world: World) -> None:
        resource = await world.resource()

        with pytest.raises(InvalidInputError):
            await world.repository.record_deletion_intent(resource)


WISH = ForceRelease(reason="OPS-17: the mesh is gone", actor="kubectl-annotate")


class TestAudit:
    async def _requested(self, world: World) -> ProvisionedResource:
        protected = (replace(samples.resource().protected[0], seen=True),)
        resource = await world.resource(protected=protected)
        return await world.repository.record_deletion_intent(resource.request_deletion(LATER))

    async def test_a_forced_release_commits_with_its_entry(self, world: World) -> None:
        requested = await self._requested(world)

        stored = await world.repository.update(
            replace(requested, force_released_at=LATER), audit=audit.force_release(WISH)
        )

        assert stored.force_released_at == LATER
        assert await world.repository.get(stored.id) == stored
        (row,) = await world.backdoor.audit(stored.id)
        assert (row.action, row.reason, row.actor) == ("force-release", WISH.reason, WISH.actor)
        assert (row.namespace, row.record_name) == (stored.key.namespace, stored.record.name)
        assert row.management_cluster_id == stored.management_cluster_id
        assert row.project_id == stored.project_id
        assert row.at.tzinfo is not None

    async def test_it_is_stored_once_and_never_taken_back(self, world: World) -> None:
        entry = audit.force_release(WISH)
        resource = await self._requested(world)
        first = replace(resource, force_released_at=LATER)
        resource = await world.repository.update(first, audit=entry)

        later = replace(resource, force_released_at=LATER + timedelta(days=1))
        resource = await world.repository.update(later, audit=entry)
        resource = await world.repository.update(replace(resource, force_released_at=None))

        assert resource.force_released_at == LATER
        assert len(await world.backdoor.audit(resource.id)) == 1

    async def test_a_stale_change_leaves_no_entry(self, world: World) -> None:
        requested = await self._requested(world)
        await world.repository.update(requested)

        with pytest.raises(StaleAggregateError):
            await world.repository.update(
                replace(requested, force_released_at=LATER), audit=audit.force_release(WISH)
            )

        assert await world.backdoor.audit(requested.id) == []

    async def test_of_ten_at_once_one_is_stored(self, world: World) -> None:
        requested = await self._requested(world)
        gone = audit.on_phase(requested, Phase.DELETED)
        assert gone is not None

        await asyncio.gather(
            *(
                world.repository.update(requested.enter(Phase.DELETED, LATER), audit=gone)
                for _ in range(10)
            ),
            return_exceptions=True,
        )

        (row,) = await world.backdoor.audit(requested.id)
        assert (row.action, row.actor) == ("unreleased-substrate-gone", None)

    async def test_a_substrate_may_go_more_than_once(self, world: World) -> None:
        resource = await self._requested(world)
        gone = audit.on_phase(resource, Phase.PENDING)
        assert gone is not None

        for _ in range(2):
            resource = await world.repository.update(resource, audit=gone)

        assert len(await world.backdoor.audit(resource.id)) == 2

    async def test_what_was_seen_and_released_is_read_back(self, world: World) -> None:
        resource = await world.resource()
        protected = (replace(resource.protected[0], seen=True, released=True),)

        stored = await world.repository.update(replace(resource, protected=protected))

        assert stored.protected == protected
        assert (await world.repository.get(resource.id)).protected == protected


class TestSiblings:
    async def _deleted(self, world: World, name: str, *, released: bool) -> ProvisionedResource:
        sibling = ProtectedObject(reference=samples.NETWORK, sibling=True, released=released)
        resource = await world.resource(name)
        protected = (*resource.protected, sibling)
        resource = await world.repository.update(replace(resource, protected=protected))
        assert resource.id not in await world.repository.unsettled(samples.CLUSTER)
        resource = await world.repository.record_deletion_intent(resource.request_deletion(LATER))
        return await world.repository.update(resource.enter(Phase.DELETED, LATER))

    async def test_a_deleted_aggregate_is_listed_until_its_siblings_are_settled(
        self, world: World
    ) -> None:
        loose = await self._deleted(world, "web-1", released=False)
        await self._deleted(world, "web-2", released=True)

        listed = await world.repository.unsettled(samples.CLUSTER)
        protected = (loose.protected[0], replace(loose.protected[1], released=True))
        await world.repository.update(replace(loose, protected=protected))

        assert list(listed) == [loose.id]
        assert list(await world.repository.unsettled(samples.CLUSTER)) == []
