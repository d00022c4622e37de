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
from typing import Any, Final

from function.contract import names
from function.contract.conditions import Reason
from function.contract.errors import ContractError
from function.contract.record import Enrolment
from function.contract.strategy import BootstrapState, Phase
from reconciler.app import bootstrap, publishing
from reconciler.app.bootstrap import Bootstrap, BootstrapPorts
from reconciler.app.broker_service import Admission, Service
from reconciler.app.credential_hold import CredentialHold
from reconciler.app.leftovers import Leftovers
from reconciler.app.observing import Observer
from reconciler.app.publishing import Publisher
from reconciler.app.sibling_hold import SiblingHold
from reconciler.app.teardown import Teardown
from reconciler.domain.broker import audit, events, provider_config, record_view, shared_hold
from reconciler.domain.broker.phase import Action, ObservedXR, next_phase
from reconciler.domain.broker.record_view import RecordView
from reconciler.domain.broker.resource import ProvisionedResource
from reconciler.domain.broker.verdicts import StatusFacts, Why
from reconciler.domain.identity.token_life import TokenLife
from reconciler.ports.broker import BrokerRepository, HoldLedger, NodeDeregistrar, TokenIssuer
from reconciler.ports.cluster import Catalog, ManagementCluster
from reconciler.ports.common import Clock

WAITING_S: Final = 5.0
"""How soon a refusal is judged again that something unwatched may lift (an XRD, a policy);
changes of what is watched come at once."""

OUTLIVED_S: Final = 5.0
"""How soon a record is looked at again that a run in flight made of an earlier one: it says
`released` although nobody asked for that, and the next run writes it anew."""

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
        Reason.RIGHTS_MISSING.value,
        Reason.UNSUPPORTED_KIND.value,
        Reason.EXTERNAL_SECRET_TAKEN.value,
        Reason.PROTECTED_ELSEWHERE.value,
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
    holds: HoldLedger
    clock: Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """What the tick needs of the settings.

    Attributes:
        enrolment: Published in every record's status.
        token_ttl: The token's window.
        registration_timeout: How long a node may take once its substrate is ready.
    """

    enrolment: Enrolment
    token_ttl: timedelta
    registration_timeout: timedelta = timedelta(minutes=15)


class Tick:
    """Drives the records of one management cluster."""

    def __init__(
        self, ports: TickPorts, service: Service, teardown: Teardown, *, knobs: Knobs
    ) -> None:
        self._ports = ports
        self._service = service
        self._teardown = teardown
        self._enrolment = knobs.enrolment
        self._registration_timeout = knobs.registration_timeout
        self._publisher = Publisher(ports.cluster, ports.clock)
        self._observer = Observer(ports.nodes, ports.cluster)
        self._siblings = SiblingHold(ports.repository, ports.cluster, ports.clock)
        self._leftovers = Leftovers(ports.cluster, ports.clock)
        self.credentials = CredentialHold(
            ports.repository, ports.holds, ports.cluster, ports.catalog
        )
        self._bootstrap = Bootstrap(
            BootstrapPorts(
                repository=ports.repository,
                cluster=ports.cluster,
                tokens=ports.tokens,
                clock=ports.clock,
            ),
            ttl=knobs.token_ttl,
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
        if view.spec.released:
            return OUTLIVED_S
        return await self._converge(view)

    async def _converge(self, view: RecordView) -> float | None:
        admission = await self._service.provision(view)
        resource = admission.resource
        if resource is None:
            return await self._refuse(view, admission)
        observation = await self._observer.look(resource, view)
        observed, lost = observation.seen, observation.lost
        if lost and admission.retried and resource.bootstrap_token_id is not None:
            await self._ports.nodes.deregister(resource.bootstrap_token_id)
            return 0.0
        decision = next_phase(resource.machine_phase, observed)
        why = None
        if decision.action is Action.APPLY and not lost:
            resource, why = await self._apply(resource, view, observed)
        born = "phase" not in view.status
        entering = decision.phase is not resource.phase
        if entering:
            resource = await self._enter(resource, decision.phase, view)
        facts = await self._facts(resource, view, admission, why)
        facts = replace(facts, uninjected=observed.uninjected, stall=_LOST if lost else facts.stall)
        unwritten = await self._publisher.publish(view, facts)
        if entering or born:
            await self._publisher.phase_event(view, resource, failure=view.spec.observed.reason)
        _, again = await self._siblings.follow(resource, view)
        await self._leftovers.drain(resource, view)
        blocked = why is not None or _liftable(admission.refusal)
        due = (WAITING_S if blocked else None, again, unwritten)
        return min((delay for delay in due if delay is not None), default=None)

    async def _refuse(self, view: RecordView, admission: Admission) -> float | None:
        refusal = admission.refusal
        final = not _liftable(refusal)
        facts = StatusFacts(resource=None, refusal=refusal, refusal_is_final=final)
        await self._publisher.publish(view, facts)
        return None if final else WAITING_S

    async def _enter(
        self, resource: ProvisionedResource, phase: Phase, view: RecordView
    ) -> ProvisionedResource:
        if phase is Phase.ENROLLING:
            await self._bootstrap.start_window(resource)
        now = max(self._ports.clock.now(), resource.updated_at)
        changed = resource.enter(phase, now)
        event = events.on_phase(changed, phase, failure=view.spec.observed.reason)
        entry = audit.on_phase(resource, phase)
        return await self._ports.repository.update(changed, event=event, audit=entry)

    async def _apply(
        self, resource: ProvisionedResource, view: RecordView, observed: ObservedXR
    ) -> tuple[ProvisionedResource, Why | None]:
        taken = await self._ensure_provider_config(resource, view)
        if taken is not None:
            return resource, taken
        own = resource.accepted.cloud_credential
        missing = None if own is None else await self.credentials.hold(view.namespace, own)
        if not resource.node_expected or observed.node_registered:
            return resource, missing
        if observed.exists:
            await self._bootstrap.renew(resource)
            return resource, missing
        ensured = await self._bootstrap.ensure(resource, view)
        return ensured.resource, ensured.waiting or missing

    async def _ensure_provider_config(
        self, resource: ProvisionedResource, view: RecordView
    ) -> Why | None:
        manifest = publishing.provider_config_manifest(resource, view, self._ports.catalog)
        if manifest is None:
            return None
        own = resource.accepted.cloud_credential or ""
        await self._ports.holds.remember(shared_hold.provider_config(manifest, own))
        await self._ports.cluster.ensure_provider_config(manifest)
        holder = await self._ports.cluster.provider_config_holder(manifest)
        if holder is None or holder == own:
            return None
        name = manifest["metadata"]["name"]
        message = f"ProviderConfig {name!r} belongs to credential {holder!r}."
        return Why(reason=Reason.PROVIDER_CONFIG_TAKEN, message=message)

    async def _facts(
        self,
        resource: ProvisionedResource,
        view: RecordView,
        admission: Admission,
        why: Why | None,
    ) -> StatusFacts:
        token = resource.bootstrap_token_id
        life = await self._bootstrap.look(resource)
        node = None if token is None else await self._ports.nodes.find_node(token)
        return StatusFacts(
            resource=resource,
            refusal=admission.refusal,
            waiting=why,
            stall=self._stall(resource, view, life, registered=node is not None),
            orphaned=view.controller_uid is None,
            bootstrap=BootstrapState.NONE if token is None else life.state,
            secret_name=await self._secret(resource, view, life, registered=node is not None),
            node=None if node is None else publishing.node(node),
            provider_config=self._provider_config_name(resource, view),
            enrolment=publishing.enrolment(view, self._enrolment),
        )

    def _stall(
        self,
        resource: ProvisionedResource,
        view: RecordView,
        life: TokenLife,
        *,
        registered: bool,
    ) -> Why | None:
        """Say what only a person can mend; a token that ended says more than a time."""
        stranded = bootstrap.stranded(resource, life, view, registered=registered)
        if stranded is not None or registered:
            return stranded
        now, timeout = self._ports.clock.now(), self._registration_timeout
        return bootstrap.overdue(resource, now=now, timeout=timeout)

    async def _secret(
        self,
        resource: ProvisionedResource,
        view: RecordView,
        life: TokenLife,
        *,
        registered: bool,
    ) -> str | None:
        """Return the Secret to deliver from; once none may be used, all are deleted, once."""
        if resource.bootstrap_token_id is None:
            return None
        if not life.drops_secrets and not registered:
            return names.token_secret_name(view.name, resource.generation)
        if (view.status.get("bootstrap") or {}).get("secretRef") is not None:
            await self._bootstrap.drop_secrets(resource, view, life)
        return None

    def _provider_config_name(self, resource: ProvisionedResource, view: RecordView) -> str | None:
        resolved = publishing.resolve(resource, self._ports.catalog)
        if resolved is None:
            return publishing.provider_config_of(view)
        blueprint, _, cloud = resolved
        own = resource.accepted.cloud_credential or ""
        return provider_config.name(blueprint, cloud, own)


_LOST: Final = Why(
    reason=Reason.SUBSTRATE_LOST,
    message="The substrate is gone while its node is in the mesh. Raise spec.retry to take the "
    "node out and make a new one, or delete the resource.",
)


def _liftable(refusal: Why | None) -> bool:
    return refusal is not None and refusal.reason in TRANSIENT
