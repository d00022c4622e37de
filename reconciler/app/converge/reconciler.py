"""One reconcile of one record: observe, decide, act, record.

The converge arm and the choice between it and `teardown`. A crash after any effect leaves a
state from which the next reconcile goes on: a claimed generation without a Secret is succeeded
by the next one, a stored phase without a status is published again. Source: seed 000 "What
the reconcile loop does with the result"; design §2, §5.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

from function.contract.conditions import Reason
from function.contract.errors import ContractError
from function.contract.record import Enrolment
from function.contract.strategy import Phase, SubstrateState
from reconciler.app.admission.service import Admission, Service
from reconciler.app.converge import overdue, requeue
from reconciler.app.converge.observation import Observer, postponed, unanswered
from reconciler.app.converge.overdue import Overdue
from reconciler.app.converge.pool_shrink import PoolShrink
from reconciler.app.converge.record_status import RecordFacts, StatusInput
from reconciler.app.protection.children import SubstrateChildren
from reconciler.app.protection.provider_config_hold import ProviderConfigHold
from reconciler.app.registration.bootstrap import BootstrapTokens
from reconciler.app.replacement.observation import ReplacementPorts
from reconciler.app.replacement.replacement import Replacement
from reconciler.app.status import publishing, waiting_messages
from reconciler.app.teardown.teardown import Teardown
from reconciler.domain.aggregate.explanation import Explanation
from reconciler.domain.aggregate.phase import Action, ObservedXR, next_phase
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.events import audit, lifecycle
from reconciler.domain.record import record_view
from reconciler.domain.record.conditions import StatusFacts
from reconciler.domain.record.record_view import RecordView
from reconciler.ports.cluster.catalog import Catalog
from reconciler.ports.store.aggregates import (
    HoldLedger,
)

OUTLIVED_S: Final = 5.0
"""How soon a record is looked at again that a run in flight made of an earlier one: it says
`released` although nobody asked for that, and the next run writes it anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcilerPorts(ReplacementPorts):
    """The collaborators of converging: those of replacing machines, catalogue and holds."""

    catalog: Catalog
    holds: HoldLedger


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcilerOptions:
    """What the reconcile needs of the settings.

    Attributes:
        enrolment: Published in every record's status.
        token_ttl: The token's window.
        registration_timeout: How long a node may take once its substrate is ready.
        provisioning_timeout: How long a substrate may take before that.
    """

    enrolment: Enrolment
    token_ttl: timedelta
    registration_timeout: timedelta = timedelta(minutes=15)
    provisioning_timeout: timedelta = timedelta(minutes=30)


class Reconciler:
    """Drives the records of one management cluster.

    Attributes:
        credentials, configs, namespaces: The holds on what its records share, and on where they
            are.
    """

    def __init__(
        self,
        ports: ReconcilerPorts,
        service: Service,
        teardown: Teardown,
        *,
        options: ReconcilerOptions,
    ) -> None:
        self._ports = ports
        self._service = service
        self.namespaces = service.namespaces
        self._teardown = teardown
        self._publisher = teardown.publisher
        self._observer = Observer(ports.cluster)
        self._siblings = teardown.siblings
        self._pool_shrink = PoolShrink(ports.cluster, ports.clock)
        self.credentials = teardown.credentials
        self._bootstrap = BootstrapTokens(ports, ttl=options.token_ttl)
        self.configs = ProviderConfigHold(ports.holds, ports.cluster, ports.catalog)
        self._children = SubstrateChildren(ports.cluster, ports.clock)
        self._overdue = Overdue(
            ports.repository,
            ports.cluster.substrates,
            ports.catalog,
            limit=options.provisioning_timeout,
        )
        self._enrolment = options.enrolment
        self._facts = RecordFacts(ports.nodes, ports.catalog, self._bootstrap, options.enrolment)
        self._replacement = Replacement(
            ports,
            self._bootstrap,
            self._publisher,
            timeout=options.registration_timeout,
        )

    async def run(self, raw: dict[str, Any]) -> float | None:
        """Do one record.

        Returns:
            Seconds after which to come back, or None to wait for a change.

        Idempotency: total; running it again on an unchanged world writes nothing.
        """
        try:
            view = record_view.parse(raw)
        except ContractError as error:
            if "deletionTimestamp" in raw["metadata"]:
                return await self._teardown.run_unreadable(raw)
            await self._publisher.unreadable(raw, error)
            return None
        if view.paused:
            if view.teardown_asked:
                await self._teardown.close(view)
            return None
        if view.teardown_asked:
            return await self._teardown.run(view)
        if view.spec.released and view.status.get("substrate") != SubstrateState.ABSENT:
            return OUTLIVED_S
        return await self._converge(view)

    async def _converge(self, view: RecordView) -> float | None:
        admission = await self._service.provision(view)
        resource = admission.resource
        if resource is None:
            return await self._refuse(view, admission)
        refusal, closed = admission.refusal, self._service.closed(view)
        kept = refusal is not None or closed is not None
        made = await self._replacement.run(resource, view, refused=kept)
        resource = made.resource
        if made.waiting is not None:
            return await self._stand_back(
                view, StatusInput(refusal=refusal, waiting=None, made=made)
            )
        view = await self._replacement.seen(resource, view)
        observation = await self._observer.look(resource, view, registered=made.registered)
        observed, lost = observation.seen, observation.lost
        retried = admission.retried or unanswered(resource, view)
        if lost is not None and retried and closed is None:
            return await self._start_over(resource)
        learned, resource = observation.resource != resource, observation.resource
        options = publishing.enrolment(resource, view, self._enrolment, exists=observed.exists)
        decision = next_phase(resource.machine_phase, observed)
        why = None
        if decision.action is Action.APPLY and lost is None:
            resource, why = await self._apply(resource, view, observed, closed)
        elif decision.action is Action.NOOP:
            await self.configs.learn(resource)
        born = "phase" not in view.status
        entering = decision.phase is not resource.phase
        if entering:
            resource = await self._enter(resource, decision.phase, view, options)
        elif learned or (resource.rendered_with is None and observed.exists):
            # Also one that was adopted.
            resource = await self._ports.repository.update(
                await self._remembering(resource, options)
            )
        if overdue.begins(resource, waiting=why):
            resource = await self._ports.repository.update(resource.due(resource.updated_at))
        status_input = StatusInput(refusal=refusal, waiting=why, made=made)
        facts = await self._gather(resource, view, status_input)
        facts = replace(facts, uninjected=observed.uninjected, enrolment=options)
        facts = postponed(facts, view, lost, closed if retried else None)
        late = await self._overdue.judge(resource, view, facts)
        facts = late.facts
        unwritten = await self._publisher.publish(view, facts)
        if entering or born:
            await self._publisher.phase_event(view, resource, failure=view.spec.observed.reason)
        _, again = await self._siblings.follow(resource, view)
        left = await self._pool_shrink.drain(resource, view)
        return waiting_messages.soonest(
            requeue.again_s(facts), again, unwritten, left, made.again, late.again
        )

    async def _gather(
        self, resource: ProvisionedResource, view: RecordView, status_input: StatusInput
    ) -> StatusFacts:
        """Gather the status's facts; token Secrets go once the status names one in vain."""
        facts = await self._facts.gather(resource, view, status_input)
        named = (view.status.get("bootstrap") or {}).get("secretRef") is not None
        if named and facts.secret_name is None and resource.bootstrap_token_id is not None:
            await self._bootstrap.drop_secrets(resource, view)
        return facts

    async def _start_over(self, resource: ProvisionedResource) -> float:
        """Take a node out whose substrate was lost; what is or comes in its place goes, too."""
        # Before the node goes: without it nothing would tell that no machine there is its own.
        await self._replacement.begin(resource)
        if resource.bootstrap_token_id is not None:
            await self._ports.nodes.deregister(resource.bootstrap_token_id)
        return 0.0

    async def _stand_back(self, view: RecordView, status_input: StatusInput) -> float | None:
        """Say that a machine is being made anew; what stands beside it is looked after."""
        made = status_input.made
        facts = await self._gather(made.resource, view, status_input)
        await self._publisher.publish(view, facts)
        _, again = await self._siblings.follow(made.resource, view)
        return waiting_messages.soonest(made.again, again)

    async def _refuse(self, view: RecordView, admission: Admission) -> float | None:
        final = not requeue.liftable(admission.refusal)
        facts = StatusFacts(resource=None, refusal=admission.refusal, refusal_is_final=final)
        await self._publisher.publish(view, facts)
        return requeue.again_s(facts)

    async def _enter(
        self, resource: ProvisionedResource, phase: Phase, view: RecordView, options: Enrolment
    ) -> ProvisionedResource:
        if phase is Phase.ENROLLING:
            await self._bootstrap.start_window(resource)
        now = max(self._ports.clock.now(), resource.updated_at)
        changed = await self._remembering(resource.enter(phase, now), options)
        event = lifecycle.on_phase(changed, phase, failure=view.spec.observed.reason)
        entry = audit.on_phase(resource, phase)
        return await self._ports.repository.update(changed, event=event, audit=entry)

    async def _remembering(
        self, resource: ProvisionedResource, options: Enrolment
    ) -> ProvisionedResource:
        """Remember what its substrate is made of, and what its document was rendered with."""
        if resource.phase is Phase.PENDING:
            return resource
        children = await self._children.of_substrate(resource)
        return replace(resource, children=children, rendered_with=options)

    async def _apply(
        self,
        resource: ProvisionedResource,
        view: RecordView,
        observed: ObservedXR,
        closed: Explanation | None,
    ) -> tuple[ProvisionedResource, Explanation | None]:
        missing, own = None, resource.accepted.cloud_credential
        if closed is None:
            taken = await self.configs.ensure(resource)
            if taken is not None:
                return resource, taken
            missing = None if own is None else await self.credentials.hold(view.namespace, own)
        going = missing is not None and missing.reason == Reason.BEING_DELETED
        if going and not observed.exists:
            return resource, missing
        if not resource.node_expected or observed.node_registered:
            return resource, missing
        if observed.exists:
            await self._bootstrap.renew(resource)
            return resource, missing
        ensured = await self._bootstrap.ensure(resource, view, closed=closed)
        return ensured.resource, ensured.waiting or missing
