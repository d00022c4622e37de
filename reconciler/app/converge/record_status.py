"""Gathers the facts that a record's status is rendered from.

Gathering the facts of token, node and catalogue.
"""

from __future__ import annotations

from dataclasses import dataclass

from function.contract import names
from function.contract.record import Enrolment
from function.contract.strategy import BootstrapState
from reconciler.app.registration import bootstrap
from reconciler.app.registration.bootstrap import BootstrapTokens
from reconciler.app.replacement.replacement import ReplacementResult
from reconciler.app.status import publishing
from reconciler.domain.aggregate.explanation import Explanation
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.identity.token_life import TokenLife
from reconciler.domain.protection import provider_config
from reconciler.domain.record.conditions import StatusFacts
from reconciler.domain.record.record_view import RecordView
from reconciler.domain.replacement.replacement import WAITED_FOR
from reconciler.ports.cluster.catalog import Catalog
from reconciler.ports.store.aggregates import NodeDeregistrar


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusInput:
    """What a reconcile says beside what is found.

    Attributes:
        refusal: Why the declaration as it stands is not accepted; None when it is.
        waiting: Why nothing happens at the moment; None when the phase explains it.
        made: What became of a node that does not come.
    """

    refusal: Explanation | None
    waiting: Explanation | None
    made: ReplacementResult


class RecordFacts:
    """Gathers a status's facts."""

    def __init__(
        self,
        nodes: NodeDeregistrar,
        catalog: Catalog,
        tokens: BootstrapTokens,
        enrolment: Enrolment,
    ) -> None:
        self._nodes = nodes
        self._catalog = catalog
        self._bootstrap = tokens
        self._enrolment = enrolment

    async def gather(
        self, resource: ProvisionedResource, view: RecordView, status_input: StatusInput
    ) -> StatusFacts:
        """Return the facts of an aggregate as it is now."""
        token = resource.bootstrap_token_id
        life = await self._bootstrap.look(resource)
        node = None if token is None else await self._nodes.find_node(token)
        registered = node is not None
        return StatusFacts(
            resource=resource,
            refusal=status_input.refusal,
            waiting=status_input.made.waiting or status_input.waiting,
            stall=_stall(resource, view, life, status_input, registered=registered),
            orphaned=view.controller_uid is None,
            bootstrap=BootstrapState.NONE if token is None else life.state,
            secret_name=_secret(resource, view, life, registered=registered),
            node=None if node is None else publishing.node(node),
            substrate_absent=status_input.made.absent,
            provider_config=self._provider_config_name(resource, view),
            enrolment=publishing.enrolment(resource, view, self._enrolment),
        )

    def _provider_config_name(self, resource: ProvisionedResource, view: RecordView) -> str | None:
        resolved = publishing.resolve(resource, self._catalog)
        if resolved is None:
            return publishing.provider_config_of(view)
        blueprint, _, cloud = resolved
        own = resource.accepted.cloud_credential or ""
        return provider_config.name(blueprint, cloud, own)


def _secret(
    resource: ProvisionedResource, view: RecordView, life: TokenLife, *, registered: bool
) -> str | None:
    """Return the Secret to deliver from; None when no token may be used."""
    if resource.bootstrap_token_id is None or life.drops_secrets or registered:
        return None
    return names.token_secret_name(view.name, resource.generation)


def _stall(
    resource: ProvisionedResource,
    view: RecordView,
    life: TokenLife,
    status_input: StatusInput,
    *,
    registered: bool,
) -> Explanation | None:
    """Say what only a person can mend; a token that ended says more than a time.

    What was found before the phase was decided counts only while it still holds.
    """
    made, waiting = status_input.made, status_input.waiting
    if waiting is not None and waiting.reason in bootstrap.FOR_A_PERSON:
        return waiting
    holds = resource.phase in WAITED_FOR and registered == made.registered
    stall = made.stall if holds else None
    if made.waiting is not None or (made.final and stall is not None):
        return stall
    return bootstrap.stranded(resource, life, view, registered=registered) or stall
