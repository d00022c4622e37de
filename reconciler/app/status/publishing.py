"""Publishes status and Events of a record.

Turning facts into a status write or an Event, compared before written.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from function.contract.catalog.published import BlueprintVersionSpec, CloudCredentialSpec, CloudSpec
from function.contract.conditions import ConditionType, Reason, find
from function.contract.errors import ContractError
from function.contract.record import Enrolment, Node
from function.contract.strategy import Phase
from reconciler.domain.aggregate.explanation import Explanation
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.protection import provider_config
from reconciler.domain.record import status
from reconciler.domain.record.conditions import StatusFacts
from reconciler.domain.record.record_view import RecordView
from reconciler.ports.clock import Clock
from reconciler.ports.cluster.catalog import Catalog
from reconciler.ports.cluster.management_cluster import ManagementCluster
from reconciler.ports.store.aggregates import RegisteredNode

PATIENCE_S: Final = 5.0
"""How long a passing phase of an enrolled resource goes unwritten: longer than a fast cloud's
boot, and no longer than an operator waits for an answer. Its Event comes at once."""

_log = logging.getLogger(__name__)


class Publisher:
    """Writes what people see of a record."""

    def __init__(self, cluster: ManagementCluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock

    async def publish(self, view: RecordView, facts: StatusFacts) -> float | None:
        """Write a record's status if it differs from what the record shows.

        Of several resources of one XR, what may wait is written once their phase has
        lasted a while: most pass on to Ready before.

        Returns:
            Seconds after which to write; None when nothing is left to write.

        Idempotency: equal facts give an equal status, which is not written.
        """
        now = self._clock.now()
        rendered = status.render(view.status, facts, generation=view.generation, now=now)
        if _says_the_same(view.status, rendered):
            return None
        resource = facts.resource
        if resource is not None and resource.enrolled and status.may_wait(view.status, rendered):
            patience = PATIENCE_S - (now - resource.updated_at).total_seconds()
            if patience > 0:
                return patience
        await self._cluster.records.write_status(view.raw, rendered)
        return None

    async def unreadable(self, raw: dict[str, Any], error: ContractError) -> None:
        """Say on a record that its spec has not the contract's shape."""
        refusal = Explanation(reason=error.reason, message=str(error))
        facts = StatusFacts(resource=None, refusal=refusal, refusal_is_final=True)
        previous = raw.get("status") or {}
        generation = int(raw["metadata"].get("generation", 0))
        rendered = status.render(previous, facts, generation=generation, now=self._clock.now())
        if rendered["conditions"] != previous.get("conditions"):
            await self._cluster.records.write_status(raw, {**previous, **rendered})

    async def overdue(self, raw: dict[str, Any], why: Explanation | None) -> None:
        """Say on a record whose spec cannot be read that its teardown needs an operator.

        Its other conditions stay as they were: they are rendered from what cannot be read.

        Args:
            raw: The record.
            why: What fails for too long; None takes back what was said of it.

        Idempotency: equal conditions are not written.
        """
        previous = raw.get("status") or {}
        stalled = find(previous, ConditionType.STALLED)
        if why is None and (stalled is None or stalled.reason != Reason.DEREGISTRATION_OVERDUE):
            return
        generation = int(raw["metadata"].get("generation", 0))
        facts = StatusFacts(resource=None, stall=why)
        rendered = status.render(previous, facts, generation=generation, now=self._clock.now())
        fresh = {item["type"]: item for item in rendered["conditions"] if item["type"] in _OF_STALL}
        kept = previous.get("conditions") or []
        merged = {**{item["type"]: item for item in kept}, **fresh}
        document = {**previous, "conditions": list(merged.values())}
        if document != previous:
            await self._cluster.records.write_status(raw, document)

    async def phase_event(
        self, view: RecordView, resource: ProvisionedResource, *, failure: str = ""
    ) -> None:
        """Record the Event of a phase that was entered. Idempotency: once per phase."""
        phase = resource.phase
        message = f"{resource.xr_name} is {phase.value}"
        if phase is Phase.FAILED and failure:
            message = f"{message}: {failure}"
        await self._event(view, phase.value, message, warning=phase is Phase.FAILED)

    async def deregistered_event(self, view: RecordView, resource: ProvisionedResource) -> None:
        """Record the Event of a node that left the mesh. Idempotency: once per generation."""
        message = f"{resource.xr_name} left the mesh (token generation {resource.generation})"
        await self._event(view, "NodeDeregistered", message)

    async def recreating_event(
        self, view: RecordView, resource: ProvisionedResource, *, attempts: int
    ) -> None:
        """Record the Event of a machine that is recreated. Idempotency: once per attempt."""
        # The count may start again, and its limit be lowered, after the substrate was released.
        count = max(1, resource.recreations)
        message = (
            f"{resource.xr_name} is replaced ({count} of {max(count, attempts)}) after token "
            f"generation {resource.generation}: its node did not register or report in time"
        )
        await self._event(view, Reason.RECREATING, message, warning=True)

    async def force_released_event(
        self, view: RecordView, resource: ProvisionedResource, reason: str
    ) -> None:
        """Record the Event of a skipped deregistration. Idempotency: once per reason."""
        message = f"{resource.xr_name} stays in the mesh, deregistration is skipped: {reason}"
        await self._event(view, Reason.FORCE_RELEASED, message, warning=True)

    async def _event(
        self, view: RecordView, reason: str, message: str, *, warning: bool = False
    ) -> None:
        try:
            await self._cluster.records.record_event(
                view.raw, reason=reason, message=message, warning=warning
            )
        except Exception as error:  # noqa: BLE001 - Events are for people; none may stop a reconcile
            _log.warning("event_lost reason=%s error=%s", reason, type(error).__name__)


_OF_STALL = frozenset({ConditionType.READY, ConditionType.RECONCILING, ConditionType.STALLED})
_AT_REST = frozenset({Phase.READY.value, Phase.FAILED.value, None})


def _says_the_same(written: dict[str, Any], rendered: dict[str, Any]) -> bool:
    """Tell whether a write would tell people or the function anything new.

    While a record is on its way, a newer `observedGeneration` alone is not news: it would
    cost the XR two tokens of Crossplane's breaker (burst 100, one a second), and a whole
    life must fit several times. At rest it is written, because kstatus reads it.
    """
    if rendered.get("phase") in _AT_REST:
        return written == rendered
    return _timeless(written) == _timeless(rendered)


def _timeless(document: dict[str, Any]) -> dict[str, Any]:
    told = [
        {name: value for name, value in item.items() if name != "observedGeneration"}
        for item in document.get("conditions") or []
    ]
    return {**document, "conditions": told}


def node(registered: RegisteredNode) -> Node:
    """Show a node as the status does."""
    at = registered.registered_at.strftime("%Y-%m-%dT%H:%M:%SZ")
    return Node(id=str(registered.id), mesh_ip=registered.mesh_ip, registered_at=at)


def enrolment(
    resource: ProvisionedResource, view: RecordView, current: Enrolment, *, exists: bool = False
) -> Enrolment:
    """Return the options to publish: what a record was rendered with stays.

    A changed base URL or image reaches new nodes only; a document under a running machine
    never changes. The aggregate remembers it, as a record that was restored has no status.

    Args:
        resource: The aggregate.
        view: Its record.
        current: What the process is set to.
        exists: A live look found its substrate, which the first run of an XR that was applied
            again does not show.
    """
    if not (exists or view.spec.observed.exists):
        return current
    if resource.rendered_with is not None:
        return resource.rendered_with
    published = view.status.get("enrolment")
    return current if published is None else Enrolment.model_validate(published)


def provider_config_of(view: RecordView) -> str | None:
    """Return the ProviderConfig that a record's status names, or None."""
    reference = view.status.get("providerConfigRef") or {}
    name = reference.get("name")
    return name if isinstance(name, str) else None


def resolve(
    resource: ProvisionedResource, catalog: Catalog
) -> tuple[BlueprintVersionSpec, CloudCredentialSpec, CloudSpec] | None:
    """Return the views of an accepted declaration, or None when one is gone."""
    accepted = resource.accepted
    if accepted.blueprint is None or accepted.cloud_credential is None:
        return None
    blueprint = catalog.blueprint(accepted.blueprint.name)
    credential = catalog.credential(accepted.cloud_credential)
    cloud = None if credential is None else catalog.cloud(credential.cloud_ref.name)
    if blueprint is None or credential is None or cloud is None:
        return None
    return blueprint, credential, cloud


def provider_config_manifest(
    resource: ProvisionedResource, catalog: Catalog
) -> dict[str, Any] | None:
    """Return the ProviderConfig an accepted declaration needs, or None when unresolvable."""
    resolved = resolve(resource, catalog)
    if resolved is None:
        return None
    blueprint, credential, cloud = resolved
    own = resource.accepted.cloud_credential or ""
    return provider_config.manifest(
        name=provider_config.name(blueprint, cloud, own),
        namespace=resource.key.namespace,
        credential_name=own,
        credential=credential,
        cloud=cloud,
        target=blueprint.provider_config,
    )
