"""The ordered teardown: the node leaves the mesh, then the substrate goes.

Belongs here: the effects of the teardown arm, one transition a tick, each safe to repeat.
Not here: the order itself (`domain.broker.phase`) and who deletes (`domain.broker.release`).
A crash after any effect is found again by the next tick's live reads.
Source: design §2 "Deletion"; seed 001.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from function.contract import names
from function.contract.conditions import Reason
from function.contract.strategy import Phase
from reconciler.app import publishing, waiting
from reconciler.app.broker_service import Service
from reconciler.app.credential_hold import CredentialHold
from reconciler.app.deregistration import Deregistration
from reconciler.app.publishing import Publisher
from reconciler.app.shared_release import SharedRelease
from reconciler.app.sibling_hold import SiblingHold
from reconciler.app.teardown_report import TeardownReport
from reconciler.domain.broker import audit, events, ids, protection
from reconciler.domain.broker.phase import Action, ObservedXR, next_phase
from reconciler.domain.broker.record_view import RecordView
from reconciler.domain.broker.release import (
    Farewell,
    Fence,
    FenceFacts,
    Release,
    next_farewell,
    next_fence,
    next_release,
)
from reconciler.domain.broker.resource import ProtectedObject, ProvisionedResource
from reconciler.domain.broker.verdicts import StatusFacts, Why
from reconciler.ports.broker import BrokerRepository, HoldLedger, NodeDeregistrar, TokenIssuer
from reconciler.ports.cluster import (
    Catalog,
    KindNotServedError,
    LiveObject,
    ManagementCluster,
    NotAllowedError,
)
from reconciler.ports.common import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class TeardownPorts:
    """The collaborators of teardown."""

    repository: BrokerRepository
    catalog: Catalog
    cluster: ManagementCluster
    tokens: TokenIssuer
    nodes: NodeDeregistrar
    holds: HoldLedger
    clock: Clock


class Teardown:
    """Takes aggregates down, with or without their record object."""

    def __init__(self, ports: TeardownPorts, service: Service) -> None:
        self._ports = ports
        self._service = service
        self._publisher = Publisher(ports.cluster, ports.clock)
        self._report = TeardownReport(self._publisher, nodes=ports.nodes, tokens=ports.tokens)
        self._deregistration = Deregistration(
            ports.repository, ports.tokens, ports.nodes, ports.clock, self._report
        )
        self._siblings = SiblingHold(ports.repository, ports.cluster, ports.clock)
        credentials = CredentialHold(ports.repository, ports.holds, ports.cluster, ports.catalog)
        self._shared = SharedRelease(ports.repository, service, ports.catalog, credentials)

    async def run(self, view: RecordView) -> float | None:
        """Do one step for a record that terminates or is drained.

        Returns:
            Seconds after which to come back; None when a change will come by itself.

        Idempotency: every step reads live and repeats safely.
        """
        if view.terminating and not view.finalizer:
            return None
        resource = await self._find(view)
        if resource is None:
            await self._unknown(view)
            return None
        try:
            return await self._step(resource, view)
        except (KindNotServedError, NotAllowedError) as error:
            stored = await self._ports.repository.get(resource.id)
            served = isinstance(error, NotAllowedError)
            reason = Reason.RIGHTS_MISSING if served else Reason.KIND_NOT_SERVED
            await self._report.publish(stored, view, Why(reason=reason, message=str(error)))
            return waiting.POLL_MAX_S

    async def close(self, view: RecordView) -> None:
        """Record a deletion request and revoke the token, and nothing else.

        For a record that is deleted while paused: its node must not register meanwhile.
        """
        resource = await self._find(view)
        if resource is not None:
            resource = await self._service.deprovision(resource)
            await self._ports.tokens.revoke(resource.id)

    async def run_unreadable(self, raw: dict[str, Any]) -> float | None:
        """Do one step for a terminating record whose spec cannot be read.

        Its uid is enough: what must go is remembered in its aggregate.
        """
        resource = await self._ports.repository.find_by_record(raw["metadata"]["uid"])
        if resource is None:
            await self._ports.cluster.remove_finalizer(raw)
            return None
        again = await self._step(resource, None)
        if again is None:
            await self._ports.cluster.remove_finalizer(raw)
        return again

    async def run_vanished(self, resource: ProvisionedResource) -> float | None:
        """Do one step for an aggregate whose record object is gone.

        While its XR lives and composes, the function makes a new record, which adopts the
        aggregate; otherwise it is drained.
        """
        if resource.deletion_requested_at is None:
            anybody = resource.accepted.xr.model_copy(update={"uid": ""})
            xr = await self._ports.cluster.get_xr_facts(anybody, resource.key.namespace)
            if xr.exists and not xr.terminating:
                return waiting.POLL_MAX_S
        return await self._step(resource, None)

    async def part(self, resource_id: ids.ProvisionedResourceID) -> float | None:
        """Look after the siblings of an aggregate that is Deleted.

        Returns:
            Seconds after which to come back; None when all are settled.
        """
        _, again = await self._siblings.part(await self._ports.repository.get(resource_id))
        return again

    async def _unknown(self, view: RecordView) -> None:
        """Let go of a record that was never accepted: nothing of ours is behind it."""
        if next_farewell(terminating=view.terminating) is Farewell.TAKE_FINALIZER_OFF:
            await self._ports.cluster.remove_finalizer(view.raw)
        else:
            await self._publisher.publish(view, StatusFacts(resource=None, substrate_absent=True))

    async def _find(self, view: RecordView) -> ProvisionedResource | None:
        repository = self._ports.repository
        resource = await repository.find_by_record(view.uid)
        if resource is None and view.key is not None:
            live = await repository.find_live(view.key)
            resource = live if live is not None and live.record.name == view.name else None
        return resource

    async def _step(self, resource: ProvisionedResource, view: RecordView | None) -> float | None:
        resource = await self._service.deprovision(resource)
        if resource.phase is Phase.DEREGISTERING:
            await self._report.announce(resource, view)
            resource = await self._deregistration.revoke(resource, view)
        else:
            resource = await self._deregistration.honour(resource, view)
        live = await self._ports.cluster.get_object(
            resource.protected[0].reference, resource.key.namespace
        )
        if live is not None and not protection.is_ours(live.controller, resource.accepted.xr):
            live = None
        fence = Fence.PASSED if live is not None else await self._fence(resource, view)
        present = live is not None or fence is not Fence.PASSED
        observed = await self._observe(resource, present=present)
        decision = next_phase(resource.machine_phase, observed)
        if decision.phase is not resource.phase:
            if decision.phase is Phase.DELETED:
                await self._deregistration.last_try(resource)
            resource = await self._enter(resource, decision.phase, view)
        match decision.action:
            case Action.DEREGISTER_NODE:
                return await self._deregistration.run(resource, view)
            case Action.DELETE_SUBSTRATE if live is not None:
                return await self._delete_substrate(resource, view, live)
            case Action.DELETE_SUBSTRATE:
                wanted = fence is Fence.AWAIT_FUNCTION
                await self._report.publish(resource, view, waiting.FENCED[fence], absent=wanted)
                return self._poll(resource)
            case _:
                return await self._finish(resource, view)

    async def _fence(self, resource: ProvisionedResource, view: RecordView | None) -> Fence:
        """Ask whether a substrate that is not there may still be created by a run in flight."""
        over = self._elapsed_s(resource) > waiting.PIPELINE_S
        xr = resource.accepted.xr if view is None else view.xr
        facts = await self._ports.cluster.get_xr_facts(xr, resource.key.namespace)
        return next_fence(
            FenceFacts(
                xr=facts,
                published=view is None or "xrName" in view.status,
                acknowledged=over if view is None else view.spec.released,
                seen=resource.protected[0].uid is not None,
                pipeline_over=over,
            )
        )

    async def _observe(self, resource: ProvisionedResource, *, present: bool) -> ObservedXR:
        return ObservedXR(
            exists=present,
            ready=False,
            failed=False,
            node_registered=await self._deregistration.registered(resource),
            force_released=resource.force_released_at is not None,
        )

    async def _enter(
        self, resource: ProvisionedResource, phase: Phase, view: RecordView | None
    ) -> ProvisionedResource:
        changed = resource.enter(phase, self._now(resource))
        changed = await self._ports.repository.update(
            changed, event=events.on_phase(changed, phase), audit=audit.on_phase(resource, phase)
        )
        if view is not None:
            await self._publisher.phase_event(view, changed)
        return changed

    async def _delete_substrate(
        self, resource: ProvisionedResource, view: RecordView | None, live: LiveObject
    ) -> float:
        """Release the substrate as the table says; the annotation comes before the wish.

        Crossplane's delete is refused without the annotation, and a refused delete aborts
        the XR's reconcile, so `released` is set before `Absent` is published.
        """
        cluster = self._ports.cluster
        namespace = resource.key.namespace
        reference = resource.protected[0].reference
        xr = resource.accepted.xr if view is None else view.xr
        release = next_release(await cluster.get_xr_facts(xr, namespace))
        releasing = release is not Release.WAIT_FOR_CROSSPLANE
        resource = await self._remember(resource, live, releasing=releasing)
        if release is Release.LET_CROSSPLANE_DROP and not live.released:
            await cluster.release(reference, namespace, uid=live.uid)
        if release is Release.WAIT_FOR_CROSSPLANE:
            await self._report.publish(resource, view, waiting.RELEASED[release])
            return self._poll(resource)
        await self._report.publish(resource, view, waiting.RELEASED[release], absent=True)
        if release is Release.DELETE_OURSELVES and not live.terminating:
            await cluster.delete_object(reference, namespace, uid=live.uid)
        return self._poll(resource)

    async def _remember(
        self, resource: ProvisionedResource, live: LiveObject, *, releasing: bool
    ) -> ProvisionedResource:
        """Store what is let go before it is, or its going would look like a break-in."""
        known = resource.protected[0]
        seen = ProtectedObject(
            reference=known.reference,
            uid=live.uid,
            seen=True,
            released=releasing or (known.released and known.uid == live.uid),
        )
        if known == seen:
            return resource
        protected = (seen, *resource.protected[1:])
        changed = replace(resource, protected=protected, updated_at=self._now(resource))
        return await self._ports.repository.update(changed)

    async def _finish(self, resource: ProvisionedResource, view: RecordView | None) -> float | None:
        """Let the record go; nobody would see a last status, and each costs the XR tokens."""
        listed = () if view is None else view.spec.substrate
        resource, again = await self._siblings.part(resource, listed=listed)
        await self._shared.release(
            resource, named=None if view is None else publishing.provider_config_of(view)
        )
        if view is None:
            return again
        secret = names.token_secret_name(view.name, resource.generation)
        await self._ports.cluster.delete_token_secret(view.namespace, secret)
        if next_farewell(terminating=view.terminating) is Farewell.AWAIT_FUNCTION:
            await self._report.publish(resource, view, None, absent=True)
            return None
        await self._ports.cluster.remove_finalizer(view.raw)
        return None

    def _poll(self, resource: ProvisionedResource) -> float:
        return waiting.poll_interval_s(self._elapsed_s(resource))

    def _elapsed_s(self, resource: ProvisionedResource) -> float:
        now = self._ports.clock.now()
        return max(0.0, (now - (resource.deletion_requested_at or now)).total_seconds())

    def _now(self, resource: ProvisionedResource) -> datetime:
        return max(self._ports.clock.now(), resource.created_at)
