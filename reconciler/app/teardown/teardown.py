"""The ordered teardown: the node leaves the mesh, then the substrate goes.

The effects of the teardown arm, one transition a reconcile, each safe to repeat. A crash after
any effect is found again by the next reconcile's live reads. Source: design §2 "Deletion"; seed
001.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from function.contract import names
from function.contract.strategy import Phase
from reconciler.app.admission.service import Service
from reconciler.app.protection.credential_hold import CredentialHold
from reconciler.app.protection.sibling_hold import SiblingHold
from reconciler.app.status import publishing, waiting_messages
from reconciler.app.status.publishing import Publisher
from reconciler.app.teardown.deregistration import Deadline, Deregistration
from reconciler.app.teardown.report import TeardownReport
from reconciler.app.teardown.shared_release import SharedRelease
from reconciler.app.teardown.substrate_steps import SubstrateSteps
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.errors import (
    NodeDeregistrationFailedError,
    TokenRevocationFailedError,
)
from reconciler.domain.aggregate.explanation import Explanation
from reconciler.domain.aggregate.phase import Action, ObservedXR, next_phase
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.events import audit, lifecycle
from reconciler.domain.record.conditions import StatusFacts
from reconciler.domain.record.record_view import RecordView
from reconciler.domain.teardown.release import FinalizerStep, next_finalizer_step
from reconciler.ports.clock import Clock
from reconciler.ports.cluster.catalog import Catalog
from reconciler.ports.cluster.management_cluster import ManagementCluster
from reconciler.ports.cluster.substrates import KindNotServedError, NotAllowedError
from reconciler.ports.store.aggregates import (
    BrokerRepository,
    HoldLedger,
    NodeDeregistrar,
    TokenIssuer,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TeardownPorts:
    """The collaborators of teardown.

    Attributes:
        deregistration_timeout: How long token and node may take to leave the mesh.
    """

    repository: BrokerRepository
    catalog: Catalog
    cluster: ManagementCluster
    tokens: TokenIssuer
    nodes: NodeDeregistrar
    holds: HoldLedger
    clock: Clock
    deregistration_timeout: timedelta = timedelta(minutes=15)


class Teardown:
    """Takes aggregates down, with or without their record object.

    Attributes:
        publisher, siblings, credentials: Shared with converging: the same objects are
            published and held there.
    """

    def __init__(self, ports: TeardownPorts, service: Service) -> None:
        self._ports = ports
        self._service = service
        self.publisher = Publisher(ports.cluster, ports.clock)
        self._report = TeardownReport(self.publisher, nodes=ports.nodes, tokens=ports.tokens)
        self._deadline = Deadline(clock=ports.clock, after=ports.deregistration_timeout)
        self._deregistration = Deregistration(
            ports.repository, ports.tokens, ports.nodes, self._deadline, self._report
        )
        self._steps = SubstrateSteps(ports.repository, ports.cluster, ports.clock, self._report)
        self.siblings = SiblingHold(ports.repository, ports.cluster, ports.clock)
        self.credentials = CredentialHold(
            ports.repository, ports.holds, ports.cluster, ports.catalog
        )
        self._shared = SharedRelease(ports.repository, ports.catalog, self.credentials)

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
        return await self._step(resource, view)

    async def close(self, view: RecordView) -> None:
        """Record a deletion request and revoke the token, and nothing else.

        For a record that is deleted while paused: its node must not register meanwhile. Its
        status is left alone, however long that lasts.
        """
        resource = await self._find(view)
        if resource is not None:
            resource = await self._service.deprovision(resource)
            await self._ports.tokens.revoke(resource.id)

    async def run_unreadable(self, raw: dict[str, Any]) -> float | None:
        """Do one step for a terminating record whose spec cannot be read.

        Its uid is enough: what must go is remembered in its aggregate.

        Raises:
            NodeDeregistrationFailedError: The identity side failed; past the deadline the
                record says so.
            TokenRevocationFailedError: Likewise.
        """
        resource = await self._ports.repository.find_by_record(raw["metadata"]["uid"])
        if resource is None:
            elsewhere = await self._elsewhere(raw["metadata"]["uid"])
            if elsewhere is None:
                await self._ports.cluster.records.remove_finalizer(raw)
            else:
                await self.publisher.overdue(raw, elsewhere)
            return None
        try:
            again = await self._step(resource, None)
        except (NodeDeregistrationFailedError, TokenRevocationFailedError) as error:
            if self._deadline.is_over(resource):
                await self._report.overdue(raw, str(error))
            raise
        if again is None:
            await self._ports.cluster.records.remove_finalizer(raw)
        else:
            await self.publisher.overdue(raw, None)
        return again

    async def run_missing(self, resource: ProvisionedResource) -> float | None:
        """Do one step for an aggregate whose record object is gone.

        While its XR lives and composes, the function makes a new record, which adopts the
        aggregate; otherwise it is drained.
        """
        if resource.deletion_requested_at is None:
            anybody = resource.accepted.xr.model_copy(update={"uid": ""})
            xr = await self._ports.cluster.substrates.get_xr_facts(anybody, resource.key.namespace)
            if xr.exists and not xr.terminating:
                return waiting_messages.POLL_MAX_S
        return await self._step(resource, None)

    async def part(self, resource_id: ids.ProvisionedResourceID) -> float | None:
        """Look after the siblings of an aggregate that is Deleted.

        Returns:
            Seconds after which to come back; None when all are settled.
        """
        _, again = await self.siblings.part(await self._ports.repository.get(resource_id))
        return again

    async def _unknown(self, view: RecordView) -> None:
        """Release a record that was never accepted: nothing of ours is behind it.

        Unless it was accepted under another name of this management cluster: then its node lives.
        """
        elsewhere = await self._elsewhere(view.uid)
        if elsewhere is not None:
            facts = StatusFacts(resource=None, refusal=elsewhere, refusal_is_final=True)
            await self.publisher.publish(view, facts)
        elif next_finalizer_step(terminating=view.terminating) is FinalizerStep.TAKE_FINALIZER_OFF:
            await self._ports.cluster.records.remove_finalizer(view.raw)
        else:
            await self.publisher.publish(view, StatusFacts(resource=None, substrate_absent=True))

    async def _elsewhere(self, uid: str) -> Explanation | None:
        slug = await self._ports.repository.elsewhere_by_record([uid])
        return None if slug is None else waiting_messages.elsewhere(slug)

    async def _find(self, view: RecordView) -> ProvisionedResource | None:
        repository = self._ports.repository
        resource = await repository.find_by_record(view.uid)
        if resource is None and view.key is not None:
            live = await repository.find_live(view.key)
            if live is not None and live.record.name == view.name:
                # Once its deletion is stored it is found by its record alone.
                resource = await self._service.adopt(live, view)
        return resource

    async def _step(self, resource: ProvisionedResource, view: RecordView | None) -> float | None:
        resource = await self._service.deprovision(resource)
        if resource.phase is Phase.DEREGISTERING:
            await self._report.announce(resource, view)
            resource = await self._deregistration.revoke(resource, view)
        else:
            resource = await self._deregistration.honour(resource, view)
        registered = await self._deregistration.registered(resource)
        # The node's way out asks nothing of the substrate: what was not looked at is there.
        unseen = _observed(resource, registered=registered, present=True)
        decision = next_phase(resource.machine_phase, unseen)
        if decision.action is Action.DEREGISTER_NODE:
            resource = await self._enter(resource, decision.phase, view)
            return await self._deregistration.run(resource, view)
        try:
            return await self._take_down(resource, view, registered=registered)
        except (KindNotServedError, NotAllowedError) as error:
            stored = await self._ports.repository.get(resource.id)
            stored = await self._enter(stored, next_phase(stored.machine_phase, unseen).phase, view)
            if view is None:
                raise
            await self._report.publish(stored, view, waiting_messages.prevented(error))
            return waiting_messages.POLL_MAX_S

    async def _take_down(
        self, resource: ProvisionedResource, view: RecordView | None, *, registered: bool
    ) -> float | None:
        """Do one step below the node, which is out or given up."""
        resource, presence = await self._steps.look(resource, view)
        observed = _observed(resource, registered=registered, present=presence.present)
        decision = next_phase(resource.machine_phase, observed)
        if decision.phase is Phase.DELETED and resource.phase is not Phase.DELETED:
            await self._deregistration.last_try(resource)
        resource = await self._enter(resource, decision.phase, view)
        if decision.action is Action.DELETE_SUBSTRATE:
            return await self._steps.delete(resource, view, presence)
        return await self._finish(resource, view)

    async def _enter(
        self, resource: ProvisionedResource, phase: Phase, view: RecordView | None
    ) -> ProvisionedResource:
        if phase is resource.phase:
            return resource
        changed = resource.enter(phase, self._now(resource))
        changed = await self._ports.repository.update(
            changed, event=lifecycle.on_phase(changed, phase), audit=audit.on_phase(resource, phase)
        )
        if view is not None:
            await self.publisher.phase_event(view, changed)
        return changed

    async def _finish(self, resource: ProvisionedResource, view: RecordView | None) -> float | None:
        """Let the record go; nobody would see a last status, and each costs the XR tokens."""
        listed = () if view is None else view.spec.substrate
        resource, again = await self.siblings.part(resource, listed=listed)
        await self._shared.release(
            resource, named=None if view is None else publishing.provider_config_of(view)
        )
        namespaces, namespace = self._service.namespaces, resource.key.namespace
        if view is None:
            await namespaces.settle(namespace)
            return again
        secret = names.token_secret_name(view.name, resource.generation)
        await self._ports.cluster.token_secrets.delete_token_secret(
            view.namespace, secret, owner=view.uid
        )
        # Last of what takes rights in the namespace: they go with its hold.
        await namespaces.settle(namespace, last=view.name)
        if next_finalizer_step(terminating=view.terminating) is FinalizerStep.AWAIT_FUNCTION:
            await self._report.publish(resource, view, None, absent=True)
            return None
        await self._ports.cluster.records.remove_finalizer(view.raw)
        return None

    def _now(self, resource: ProvisionedResource) -> datetime:
        return max(self._ports.clock.now(), resource.created_at)


def _observed(resource: ProvisionedResource, *, registered: bool, present: bool) -> ObservedXR:
    return ObservedXR(
        exists=present,
        ready=False,
        failed=False,
        node_registered=registered,
        force_released=resource.force_released_at is not None,
    )
