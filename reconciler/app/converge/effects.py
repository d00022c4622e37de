"""Carries the plan of one reconcile out.

Source: design §5.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from function.contract.conditions import Reason
from function.contract.record import Enrolment
from function.contract.strategy import Phase
from reconciler.app.converge import overdue
from reconciler.app.protection.children import SubstrateChildren
from reconciler.app.protection.credential_hold import CredentialHold
from reconciler.app.protection.provider_config_hold import ProviderConfigHold
from reconciler.app.registration.bootstrap import BootstrapTokens, EnsuredBootstrap
from reconciler.app.replacement.observation import ReplacementPorts
from reconciler.app.replacement.replacement import Replacement, ReplacementResult
from reconciler.domain.aggregate.explanation import Explanation
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.converge.plan import ConvergeFacts, ConvergePlan, ConvergeStep
from reconciler.domain.events import audit, lifecycle
from reconciler.domain.record.record_view import RecordView


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvergeObservation:
    """The observation of one reconcile, before any effect but the replacement of a machine.

    Attributes:
        view: The record, without a machine that was released and that it may still show.
        facts: What decides.
        resource: The aggregate, with the substrate's uid that is to be remembered.
        made: The replacement of an overdue machine, with its tokens and its node.
        refusal: Why the declaration as it stands is not accepted; None when it is.
        lost: That its substrate was lost under a live node; None while it was not.
        closed: Why nothing may be given out; None while something may.
        options: The options that its document is, or was, rendered with.
    """

    view: RecordView
    facts: ConvergeFacts
    resource: ProvisionedResource
    made: ReplacementResult
    refusal: Explanation | None
    lost: Explanation | None
    closed: Explanation | None
    options: Enrolment


class ConvergeEffects:
    """Does what a plan says.

    Args:
        ports: The stores and the cluster.
        bootstrap: Mints, delivers and renews tokens.
        replacement: Begins to replace a machine.
        configs: Writes the ProviderConfig.
        credentials: Holds the credential.
    """

    def __init__(
        self,
        ports: ReplacementPorts,
        bootstrap: BootstrapTokens,
        replacement: Replacement,
        *,
        configs: ProviderConfigHold,
        credentials: CredentialHold,
    ) -> None:
        self._ports = ports
        self._bootstrap = bootstrap
        self._replacement = replacement
        self._configs = configs
        self._credentials = credentials
        self._children = SubstrateChildren(ports.cluster, ports.clock)

    async def act(self, plan: ConvergePlan, found: ConvergeObservation) -> EnsuredBootstrap:
        """Do the plan's step, then store what came of it."""
        done = EnsuredBootstrap(resource=found.resource, life=found.made.life)
        if plan.step is ConvergeStep.APPLY:
            done = await self._apply(found)
        elif plan.step is ConvergeStep.REMEMBER_CONFIG:
            await self._configs.learn(found.resource)
        if plan.enters:
            done = await self._enter(done, plan.phase, found)
        elif plan.remembers:
            kept = await self._remembering(done.resource, found.options)
            done = replace(done, resource=await self._ports.repository.update(kept))
        if overdue.begins(done.resource, waiting=done.waiting):
            due = done.resource.due(done.resource.updated_at)
            done = replace(done, resource=await self._ports.repository.update(due))
        return done

    async def start_over(self, resource: ProvisionedResource) -> float:
        """Take a node out whose substrate was lost; what is or comes in its place goes, too."""
        # Before the node goes: without it nothing would tell that no machine there is its own.
        await self._replacement.begin(resource)
        if resource.bootstrap_token_id is not None:
            await self._ports.nodes.deregister(resource.bootstrap_token_id)
        return 0.0

    async def _apply(self, found: ConvergeObservation) -> EnsuredBootstrap:
        resource, life, observed = found.resource, found.made.life, found.facts.observed
        missing, own = None, resource.accepted.cloud_credential
        if found.closed is None:
            taken = await self._configs.ensure(resource)
            if taken is not None:
                return EnsuredBootstrap(resource=resource, life=life, waiting=taken)
            namespace = found.view.namespace
            missing = None if own is None else await self._credentials.hold(namespace, own)
        done = EnsuredBootstrap(resource=resource, life=life, waiting=missing)
        going = missing is not None and missing.reason == Reason.BEING_DELETED
        if going and not observed.exists:
            return done
        if not resource.node_expected or observed.node_registered:
            return done
        if observed.exists:
            return replace(done, life=await self._bootstrap.renew(resource, life))
        ensured = await self._bootstrap.ensure(resource, found.view, life, closed=found.closed)
        return replace(ensured, waiting=ensured.waiting or missing)

    async def _enter(
        self, done: EnsuredBootstrap, phase: Phase, found: ConvergeObservation
    ) -> EnsuredBootstrap:
        resource, life = done.resource, done.life
        if phase is Phase.ENROLLING:
            life = await self._bootstrap.start_window(resource, life)
        now = max(self._ports.clock.now(), resource.updated_at)
        changed = await self._remembering(resource.enter(phase, now), found.options)
        failure = found.view.spec.observed.reason
        event = lifecycle.on_phase(changed, phase, failure=failure)
        entry = audit.on_phase(resource, phase)
        stored = await self._ports.repository.update(changed, event=event, audit=entry)
        return replace(done, resource=stored, life=life)

    async def _remembering(
        self, resource: ProvisionedResource, options: Enrolment
    ) -> ProvisionedResource:
        """Remember what its substrate is made of, and what its document was rendered with."""
        if resource.phase is Phase.PENDING:
            return resource
        children = await self._children.of_substrate(resource)
        return replace(resource, children=children, rendered_with=options)
