"""The ordered teardown: the node leaves the mesh, then the substrate goes.

Belongs here: the effects of the teardown arm, one transition a tick, each safe to repeat.
Not here: the order itself (`domain.broker.phase`) and who deletes (`domain.broker.release`).
A crash after any effect is found again by the next tick's live reads.
Source: design §2 "Deletion"; seed 001.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from function.contract import names
from function.contract.conditions import Reason
from function.contract.strategy import BootstrapState, Phase, SubstrateState
from reconciler.app import publishing
from reconciler.app.broker_service import Service
from reconciler.app.publishing import Publisher
from reconciler.domain.broker import events, provider_config
from reconciler.domain.broker.errors import NodeDeregistrationFailedError
from reconciler.domain.broker.phase import Action, ObservedXR, next_phase
from reconciler.domain.broker.record_view import RecordView
from reconciler.domain.broker.release import Release, next_release
from reconciler.domain.broker.resource import ProtectedObject, ProvisionedResource
from reconciler.domain.broker.verdicts import StatusFacts, Why
from reconciler.ports.broker import (
    BrokerRepository,
    Catalog,
    Clock,
    LiveObject,
    ManagementCluster,
    NodeDeregistrar,
    TokenIssuer,
)
from reconciler.ports.identity import StoreUnavailableError

POLL_FIRST_S: Final = 0.25
POLL_MAX_S: Final = 10.0
POLL_SHARE: Final = 0.05
"""A substrate that has been going for t seconds is looked at every t/20: quick at first,
one GET in ten seconds for one that hangs for hours."""

_WAITING: Final = {
    Release.LET_CROSSPLANE_DROP: Why(
        reason=Reason.DEPROVISIONING, message="Released; Crossplane is deleting the substrate."
    ),
    Release.DELETE_OURSELVES: Why(
        reason=Reason.DEPROVISIONING, message="The substrate is being deleted."
    ),
    Release.WAIT_FOR_CROSSPLANE: Why(
        reason=Reason.WAITING_FOR_CROSSPLANE,
        message="The XR is terminating and Crossplane has not let go of it yet.",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TeardownPorts:
    """The collaborators of teardown."""

    repository: BrokerRepository
    catalog: Catalog
    cluster: ManagementCluster
    tokens: TokenIssuer
    nodes: NodeDeregistrar
    clock: Clock


class Teardown:
    """Takes aggregates down, with or without their record object."""

    def __init__(self, ports: TeardownPorts, service: Service) -> None:
        self._ports = ports
        self._service = service
        self._publisher = Publisher(ports.cluster, ports.clock)

    async def run(self, view: RecordView) -> float | None:
        """Do one step for a terminating record.

        Returns:
            Seconds after which to come back; None when a change will come by itself.

        Idempotency: every step reads live and repeats safely.
        """
        if not view.finalizer:
            return None
        resource = await self._find(view)
        if resource is None:
            await self._ports.cluster.remove_finalizer(view.raw)
            return None
        return await self._step(resource, view)

    async def run_vanished(self, resource: ProvisionedResource) -> float | None:
        """Do one step for an aggregate whose record object is gone.

        While its XR lives and composes, the function makes a new record, which adopts the
        aggregate; otherwise it is drained.
        """
        if resource.deletion_requested_at is None:
            xr = await self._ports.cluster.get_xr_facts(
                resource.accepted.xr, resource.key.namespace
            )
            if xr.exists and not xr.terminating:
                return POLL_MAX_S
        return await self._step(resource, None)

    async def _find(self, view: RecordView) -> ProvisionedResource | None:
        repository = self._ports.repository
        resource = await repository.find_by_record(view.uid)
        if resource is None and view.key is not None:
            resource = await repository.find_live(view.key)
        return resource

    async def _step(self, resource: ProvisionedResource, view: RecordView | None) -> float | None:
        resource = await self._service.deprovision(resource)
        if resource.phase is Phase.DEREGISTERING:
            await self._ports.tokens.revoke(resource.id)
        live = await self._ports.cluster.get_object(
            resource.protected[0].reference, resource.key.namespace
        )
        observed = await self._observe(resource, live)
        decision = next_phase(resource.machine_phase, observed)
        if decision.phase is not resource.phase:
            if decision.phase is Phase.DELETED:
                await self._release_shared(resource)
            resource = await self._enter(resource, decision.phase, view)
        match decision.action:
            case Action.DEREGISTER_NODE:
                return await self._deregister(resource, view)
            case Action.DELETE_SUBSTRATE if live is not None:
                return await self._delete_substrate(resource, view, live)
            case _:
                return await self._finish(resource, view)

    async def _observe(self, resource: ProvisionedResource, live: LiveObject | None) -> ObservedXR:
        token = resource.bootstrap_token_id
        registered = token is not None and await self._ports.nodes.node_registered(token)
        return ObservedXR(
            exists=live is not None, ready=False, failed=False, node_registered=registered
        )

    async def _enter(
        self, resource: ProvisionedResource, phase: Phase, view: RecordView | None
    ) -> ProvisionedResource:
        changed = replace(resource, phase=phase, updated_at=self._now(resource))
        event = events.on_phase(changed, phase)
        changed = await self._ports.repository.update(changed, event=event)
        if view is not None:
            await self._publisher.phase_event(view, changed)
        return changed

    async def _deregister(self, resource: ProvisionedResource, view: RecordView | None) -> float:
        why = Why(reason=Reason.DEREGISTERING, message="The node is being taken out of the mesh.")
        await self._publish(resource, view, why)
        token = resource.bootstrap_token_id
        if token is None:  # pragma: no cover - no token, no node, no such decision
            return 0.0
        try:
            await self._ports.nodes.deregister(token)
        except (OSError, TimeoutError, StoreUnavailableError) as error:
            message = "The mesh could not be reached; nothing else was touched."
            failed = Why(reason=Reason.DEREGISTRATION_FAILED, message=message)
            await self._publish(resource, view, failed)
            raise NodeDeregistrationFailedError(message) from error
        if view is not None:
            await self._ports.cluster.record_event(
                view.raw, reason="NodeDeregistered", message=f"{resource.xr_name} left the mesh"
            )
        return 0.0

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
        resource = await self._remember(resource, live)
        xr = resource.accepted.xr if view is None else view.xr
        release = next_release(await cluster.get_xr_facts(xr, namespace))
        if release is Release.LET_CROSSPLANE_DROP and not live.released:
            await cluster.release(reference, namespace, uid=live.uid)
        if release is Release.WAIT_FOR_CROSSPLANE:
            await self._publish(resource, view, _WAITING[release])
            return self._poll(resource)
        await self._publish(resource, view, _WAITING[release], absent=True)
        if release is Release.DELETE_OURSELVES and not live.terminating:
            await cluster.delete_object(reference, namespace, uid=live.uid)
        return self._poll(resource)

    async def _remember(
        self, resource: ProvisionedResource, live: LiveObject
    ) -> ProvisionedResource:
        known = resource.protected[0]
        if known.uid == live.uid:
            return resource
        protected = (ProtectedObject(reference=known.reference, uid=live.uid),)
        changed = replace(resource, protected=protected, updated_at=self._now(resource))
        return await self._ports.repository.update(changed)

    async def _release_shared(self, resource: ProvisionedResource) -> None:
        """Release what siblings share, once this is the last to need it."""
        namespace = resource.key.namespace
        unfinished = await self._ports.repository.list_in_namespace(namespace)
        others = [other for other in unfinished if other.id != resource.id]
        credential = resource.accepted.cloud_credential
        if not any(other.accepted.cloud_credential == credential for other in others):
            await self._release_provider_config(resource)
        await self._ports.cluster.hold_namespace(namespace, records=len(others))

    async def _release_provider_config(self, resource: ProvisionedResource) -> None:
        resolved = publishing.resolve(resource, self._ports.catalog)
        if resolved is None:
            return
        blueprint, _, cloud = resolved
        await self._ports.cluster.delete_provider_config(
            api_version=f"{cloud.provider.value}.crossplane.io/{provider_config.VERSION}",
            namespace=resource.key.namespace,
            name=provider_config.name(blueprint, cloud, resource.accepted.cloud_credential or ""),
        )

    async def _finish(self, resource: ProvisionedResource, view: RecordView | None) -> float | None:
        """Let the record go; nobody would see a last status, and each costs the XR tokens."""
        if view is None:
            return None
        secret = names.token_secret_name(view.name, resource.generation)
        await self._ports.cluster.delete_token_secret(view.namespace, secret)
        await self._ports.cluster.remove_finalizer(view.raw)
        return None

    async def _publish(
        self,
        resource: ProvisionedResource,
        view: RecordView | None,
        waiting: Why | None,
        *,
        absent: bool = False,
    ) -> None:
        if view is None:
            return
        token = resource.bootstrap_token_id
        node = None if token is None else await self._ports.nodes.find_node(token)
        state = BootstrapState.NONE
        if token is not None:
            state = await self._ports.tokens.state(token)
        facts = StatusFacts(
            resource=resource,
            waiting=waiting,
            orphaned=view.controller_uid is None,
            bootstrap=state,
            node=None if node is None else publishing.node(node),
            substrate_absent=absent or view.status.get("substrate") == SubstrateState.ABSENT,
        )
        await self._publisher.publish(view, facts)

    def _poll(self, resource: ProvisionedResource) -> float:
        since = resource.deletion_requested_at or self._ports.clock.now()
        return poll_interval_s(since, self._ports.clock.now())

    def _now(self, resource: ProvisionedResource) -> datetime:
        return max(self._ports.clock.now(), resource.created_at)


def poll_interval_s(since: datetime, now: datetime) -> float:
    """Return how soon to look at a going substrate again, in seconds.

    A share of the time it has been going, between POLL_FIRST_S and POLL_MAX_S.
    """
    elapsed = max(0.0, (now - since).total_seconds())
    return min(POLL_MAX_S, max(POLL_FIRST_S, elapsed * POLL_SHARE))
