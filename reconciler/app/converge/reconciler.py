"""One reconcile of one record: observe, decide, act, record.

The converge arm and the choice between it and `teardown`. Tokens and node are read once, before
the substrate; what happens to them meanwhile is the next reconcile's, which a registration asks
for. A crash after any effect leaves a
state from which the next reconcile goes on: a claimed generation without a Secret is succeeded
by the next one, a stored phase without a status is published again. Source: seed 000 "What
the reconcile loop does with the result"; design §2, §5.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

from function.contract.conditions import ConditionType, find
from function.contract.errors import ContractError
from function.contract.record import Enrolment
from function.contract.strategy import SubstrateState
from reconciler.app.admission.service import Admission, Service
from reconciler.app.converge import requeue
from reconciler.app.converge.effects import ConvergeEffects, ConvergeObservation
from reconciler.app.converge.observation import Observer, postponed, unanswered
from reconciler.app.converge.overdue import Overdue
from reconciler.app.converge.pool_shrink import PoolShrink
from reconciler.app.converge.record_status import RecordFacts, StatusInput
from reconciler.app.protection.provider_config_hold import ProviderConfigHold
from reconciler.app.registration.bootstrap import BootstrapTokens, EnsuredBootstrap
from reconciler.app.replacement.observation import ReplacementPorts
from reconciler.app.replacement.replacement import Replacement, ReplacementResult
from reconciler.app.status import publishing, waiting_messages
from reconciler.app.teardown.teardown import Teardown
from reconciler.domain.aggregate.explanation import Explanation
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.converge.plan import ConvergeFacts, ConvergePlan, ConvergeStep, decide
from reconciler.domain.identity.token_life import TokenLife
from reconciler.domain.record import progress, record_view
from reconciler.domain.record.conditions import StatusFacts
from reconciler.domain.record.record_view import RecordView
from reconciler.ports.cluster.catalog import Catalog
from reconciler.ports.store.aggregates import (
    HoldLedger,
)

OUTLIVED_S: Final = 5.0
"""How soon a record is looked at again that a run in flight made of an earlier one: it says
`released` although nobody asked for that, and the next run writes it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcilerPorts(ReplacementPorts):
    """The collaborators of converging: those of replacing machines, catalogue and holds."""

    catalog: Catalog
    holds: HoldLedger


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcilerOptions:
    """The settings that the reconcile uses.

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
        self._overdue = Overdue(
            ports.repository,
            ports.cluster.substrates,
            ports.catalog,
            limit=options.provisioning_timeout,
        )
        self._enrolment = options.enrolment
        self._facts = RecordFacts(ports.catalog, options.enrolment)
        self._replacement = Replacement(
            ports,
            self._bootstrap,
            self._publisher,
            timeout=options.registration_timeout,
        )
        self._effects = ConvergeEffects(
            ports,
            self._bootstrap,
            self._replacement,
            configs=self.configs,
            credentials=self.credentials,
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
        if admission.resource is None:
            return await self._refuse(view, admission)
        closed = self._service.closed(view)
        kept = admission.refusal is not None or closed is not None
        made = await self._replacement.run(admission.resource, view, refused=kept)
        if made.waiting is not None:
            return await self._stand_back(view, admission, made)
        found = await self._observe(view, admission, made, closed)
        plan = decide(found.facts)
        if plan.step is ConvergeStep.START_OVER:
            return await self._effects.start_over(found.resource)
        return await self._record(plan, found, await self._effects.act(plan, found))

    async def _observe(
        self,
        view: RecordView,
        admission: Admission,
        made: ReplacementResult,
        closed: Explanation | None,
    ) -> ConvergeObservation:
        view = await self._replacement.seen(made.resource, view)
        look = await self._observer.look(made.resource, view, registered=made.registered)
        options = publishing.enrolment(
            look.resource, view, self._enrolment, exists=look.seen.exists
        )
        retried = admission.retried or unanswered(made.resource, view)
        facts = ConvergeFacts(
            phase=look.resource.phase,
            machine_phase=look.resource.machine_phase,
            observed=look.seen,
            lost=look.lost is not None,
            retried=retried,
            open=closed is None,
            learned=look.resource != made.resource,
            rendered=look.resource.rendered_with is not None,
            published="phase" in view.status,
        )
        return ConvergeObservation(
            view=view,
            facts=facts,
            resource=look.resource,
            made=made,
            refusal=admission.refusal,
            lost=look.lost,
            closed=closed,
            options=options,
        )

    async def _record(
        self, plan: ConvergePlan, found: ConvergeObservation, done: EnsuredBootstrap
    ) -> float | None:
        """Publish the outcome, then see to what stands beside the node."""
        view, resource, made = found.view, done.resource, found.made
        facts = self._facts.gather(
            view,
            StatusInput(
                resource=resource,
                life=done.life,
                refusal=found.refusal,
                waiting=done.waiting,
                made=made,
            ),
        )
        await self._drop_secrets(view, facts, done.life)
        observed = found.facts.observed
        facts = replace(
            facts,
            uninjected=observed.uninjected,
            failure=_failure(view, resource),
            enrolment=found.options,
        )
        unanswered_for = found.closed if found.facts.retried else None
        facts = postponed(facts, view, found.lost, unanswered_for)
        late = await self._overdue.judge(resource, view, facts)
        unwritten = await self._publisher.publish(view, late.facts)
        if plan.announces:
            await self._publisher.phase_event(view, resource, failure=view.spec.observed.reason)
        _, again = await self._siblings.follow(resource, view)
        left = await self._pool_shrink.drain(resource, view)
        return waiting_messages.soonest(
            requeue.again_s(late.facts), again, unwritten, left, made.again, late.again
        )

    async def _drop_secrets(self, view: RecordView, facts: StatusFacts, life: TokenLife) -> None:
        """Delete the token Secrets once the status names one in vain."""
        resource = facts.resource
        named = (view.status.get("bootstrap") or {}).get("secretRef") is not None
        if resource is None or not named or facts.secret_name is not None:
            return
        if resource.bootstrap_token_id is not None:
            await self._bootstrap.drop_secrets(resource, view, life)

    async def _stand_back(
        self, view: RecordView, admission: Admission, made: ReplacementResult
    ) -> float | None:
        """Say that a machine is being recreated; what stands beside it is protected."""
        status_input = StatusInput(
            resource=made.resource,
            life=made.life,
            refusal=admission.refusal,
            waiting=None,
            made=made,
        )
        facts = self._facts.gather(view, status_input)
        await self._drop_secrets(view, facts, made.life)
        await self._publisher.publish(view, facts)
        _, again = await self._siblings.follow(made.resource, view)
        return waiting_messages.soonest(made.again, again)

    async def _refuse(self, view: RecordView, admission: Admission) -> float | None:
        final = not requeue.liftable(admission.refusal)
        facts = StatusFacts(resource=None, refusal=admission.refusal, refusal_is_final=final)
        await self._publisher.publish(view, facts)
        return requeue.again_s(facts)


def _failure(view: RecordView, resource: ProvisionedResource) -> str:
    observed, said = view.spec.observed, find(view.status, ConditionType.STALLED)
    return progress.failed(
        observed.reason if observed.failed else "",
        retry=resource.accepted.retry,
        before="" if said is None else said.message,
    )
