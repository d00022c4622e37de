"""One tick of one record: observe, decide, act, record.

Belongs here: the converge arm and the choice between it and `teardown`. Not here: what is
decided (`domain.broker.phase`), who may be admitted (`broker_service`). A crash after any
effect leaves a state from which the next tick goes on: a claimed generation without a
Secret is succeeded by the next one, a stored phase without a status is published again.
Source: seed 000 "What the reconcile loop does with the result"; design §2, §5.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from function.contract import names
from function.contract.conditions import Reason
from function.contract.errors import ContractError
from function.contract.record import Enrolment
from function.contract.strategy import BootstrapState, Phase
from reconciler.app import publishing
from reconciler.app.broker_service import Admission, Service
from reconciler.app.publishing import Publisher
from reconciler.app.teardown import Teardown
from reconciler.domain.broker import events, provider_config, record_view
from reconciler.domain.broker.phase import Action, ObservedXR, next_phase
from reconciler.domain.broker.record_view import RecordView
from reconciler.domain.broker.resource import ProvisionedResource
from reconciler.domain.broker.verdicts import StatusFacts, Why
from reconciler.ports.broker import (
    BrokerRepository,
    Catalog,
    Clock,
    ManagementCluster,
    NodeDeregistrar,
    TokenIssuer,
)

WAITING_S: Final = 5.0
"""How soon a refusal is judged again that something unwatched may lift (an XRD, a policy);
changes of what is watched come at once."""

TRANSIENT: Final = frozenset(
    {
        Reason.PROJECT_NOT_FOUND.value,
        Reason.NAMESPACE_NOT_READY.value,
        Reason.BLUEPRINT_NOT_FOUND.value,
        Reason.CREDENTIAL_NOT_FOUND.value,
        Reason.CLOUD_NOT_FOUND.value,
        Reason.HOLD_MISSING.value,
        Reason.UNSUPPORTED_BLUEPRINT.value,
        Reason.PROVIDER_CONFIG_TAKEN.value,
        Reason.CREDENTIAL_NOT_ALLOWED.value,
    }
)
"""Refusals that something other than an edit of the declaration can lift."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TickPorts:
    """The collaborators of a tick."""

    repository: BrokerRepository
    catalog: Catalog
    cluster: ManagementCluster
    tokens: TokenIssuer
    nodes: NodeDeregistrar
    clock: Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """What the tick needs of the settings.

    Attributes:
        enrolment: Published in every record's status.
        token_ttl: The token's window.
    """

    enrolment: Enrolment
    token_ttl: timedelta


class Tick:
    """Drives the records of one management cluster."""

    def __init__(
        self, ports: TickPorts, service: Service, teardown: Teardown, *, knobs: Knobs
    ) -> None:
        self._ports = ports
        self._service = service
        self._teardown = teardown
        self._knobs = knobs
        self._publisher = Publisher(ports.cluster, ports.clock)

    async def run(self, raw: dict[str, object]) -> float | None:
        """Do one record.

        Returns:
            Seconds after which to come back, or None to wait for a change.

        Idempotency: total; running it again on an unchanged world writes nothing.
        """
        try:
            view = record_view.parse(raw)
        except ContractError as error:
            await self._publisher.unreadable(raw, error)
            return None
        if view.paused:
            return None
        if view.terminating:
            return await self._teardown.run(view)
        return await self._converge(view)

    async def _converge(self, view: RecordView) -> float | None:
        admission = await self._service.provision(view)
        resource = admission.resource
        if resource is None:
            refusal = admission.refusal
            final = refusal is not None and refusal.reason not in TRANSIENT
            facts = StatusFacts(resource=None, refusal=refusal, refusal_is_final=final)
            await self._publisher.publish(view, facts)
            return None if final else WAITING_S
        observed = await self._observe(resource, view)
        decision = next_phase(resource.machine_phase, observed)
        if decision.action is Action.APPLY:
            resource = await self._apply(resource, view, observed)
        entering = decision.phase is not resource.phase
        if entering:
            resource = await self._enter(resource, decision.phase, view)
        await self._publish(resource, view, admission)
        if entering:
            await self._publisher.phase_event(view, resource, failure=view.spec.observed.reason)
        return None

    async def _observe(self, resource: ProvisionedResource, view: RecordView) -> ObservedXR:
        token = resource.bootstrap_token_id
        registered = token is not None and await self._ports.nodes.node_registered(token)
        seen = view.spec.observed
        return ObservedXR(
            exists=seen.exists,
            ready=seen.ready,
            failed=seen.failed,
            node_registered=registered or not resource.node_expected,
        )

    async def _enter(
        self, resource: ProvisionedResource, phase: Phase, view: RecordView
    ) -> ProvisionedResource:
        token = resource.bootstrap_token_id
        if phase is Phase.ENROLLING and token is not None:
            await self._ports.tokens.extend(token, ttl=self._knobs.token_ttl)
        now = max(self._ports.clock.now(), resource.created_at)
        changed = replace(resource, phase=phase, updated_at=now)
        event = events.on_phase(changed, phase, failure=view.spec.observed.reason)
        return await self._ports.repository.update(changed, event=event)

    async def _apply(
        self, resource: ProvisionedResource, view: RecordView, observed: ObservedXR
    ) -> ProvisionedResource:
        await self._ensure_provider_config(resource, view)
        if not resource.node_expected or observed.exists:
            return resource
        if observed.node_registered or await self._deliverable(resource, view):
            return resource
        reference = resource.protected[0].reference
        if await self._ports.cluster.get_object(reference, view.namespace) is not None:
            return resource
        return await self._mint(resource, view)

    async def _deliverable(self, resource: ProvisionedResource, view: RecordView) -> bool:
        token = resource.bootstrap_token_id
        if token is None or await self._ports.tokens.state(token) is not BootstrapState.ISSUED:
            return False
        name = names.token_secret_name(view.name, resource.generation)
        return await self._ports.cluster.token_secret_exists(view.namespace, name)

    async def _mint(self, resource: ProvisionedResource, view: RecordView) -> ProvisionedResource:
        """Mint the next generation: claim it, issue, remember the token, deliver it.

        A crash after any step leaves a generation without a Secret, which the next tick
        succeeds with a new one; no generation is ever minted twice.
        """
        repository = self._ports.repository
        now = max(self._ports.clock.now(), resource.created_at)
        claimed = replace(resource, generation=resource.generation + 1, updated_at=now)
        claimed = await repository.update(claimed)
        token = await self._ports.tokens.issue(
            claimed, generation=claimed.generation, ttl=self._knobs.token_ttl
        )
        issued = await repository.update(replace(claimed, bootstrap_token_id=token.id))
        name = names.token_secret_name(view.name, issued.generation)
        await self._ports.cluster.create_token_secret(view.raw, name=name, token=token)
        return issued

    async def _ensure_provider_config(
        self, resource: ProvisionedResource, view: RecordView
    ) -> None:
        manifest = publishing.provider_config_manifest(resource, view, self._ports.catalog)
        if manifest is not None:
            await self._ports.cluster.ensure_provider_config(manifest)

    async def _publish(
        self, resource: ProvisionedResource, view: RecordView, admission: Admission
    ) -> None:
        token = resource.bootstrap_token_id
        state = BootstrapState.NONE
        node = None
        if token is not None:
            state = await self._ports.tokens.state(token)
            node = await self._ports.nodes.find_node(token)
        secret = names.token_secret_name(view.name, resource.generation)
        if state in (BootstrapState.CONSUMED, BootstrapState.REVOKED):
            await self._ports.cluster.delete_token_secret(view.namespace, secret)
        stall = _expired(resource, state, view)
        facts = StatusFacts(
            resource=resource,
            refusal=admission.refusal,
            stall=stall,
            orphaned=view.controller_uid is None,
            bootstrap=state,
            secret_name=secret if token is not None else None,
            node=None if node is None else publishing.node(node),
            provider_config=self._provider_config_name(resource),
            enrolment=publishing.enrolment(view, self._knobs.enrolment),
        )
        await self._publisher.publish(view, facts)

    def _provider_config_name(self, resource: ProvisionedResource) -> str | None:
        resolved = publishing.resolve(resource, self._ports.catalog)
        if resolved is None:
            return None
        blueprint, _, cloud = resolved
        own = resource.accepted.cloud_credential or ""
        return provider_config.name(blueprint, cloud, own)


def _expired(resource: ProvisionedResource, state: BootstrapState, view: RecordView) -> Why | None:
    if state is not BootstrapState.EXPIRED or not view.spec.observed.exists:
        return None
    if resource.phase is Phase.READY:
        return None
    message = "The token expired before the node registered; recreate the substrate."
    return Why(reason="TokenExpired", message=message)
