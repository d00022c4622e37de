"""Turns what a reconcile observed and did into the facts of its record's status.

It reads nothing but the catalogue's cache: tokens and node are those that the reconcile decided
from, so that a status never tells of two moments at once.
"""

from __future__ import annotations

from dataclasses import dataclass

from function.contract import names
from function.contract.record import Enrolment
from function.contract.strategy import BootstrapState
from reconciler.app.registration import bootstrap
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


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusInput:
    """The findings and results of a reconcile, as the status shows them.

    Attributes:
        resource: The aggregate afterwards.
        life: Its tokens afterwards.
        refusal: Why the declaration as it stands is not accepted; None when it is.
        waiting: Why nothing happens at the moment; None when the phase explains it.
        made: The replacement of an overdue machine.
    """

    resource: ProvisionedResource
    life: TokenLife
    refusal: Explanation | None
    waiting: Explanation | None
    made: ReplacementResult


class RecordFacts:
    """Gathers a status's facts."""

    def __init__(self, catalog: Catalog, enrolment: Enrolment) -> None:
        self._catalog = catalog
        self._enrolment = enrolment

    def gather(self, view: RecordView, status_input: StatusInput) -> StatusFacts:
        """Return the facts of an aggregate as it is now."""
        resource, made = status_input.resource, status_input.made
        has_token = resource.bootstrap_token_id is not None
        return StatusFacts(
            resource=resource,
            refusal=status_input.refusal,
            waiting=made.waiting or status_input.waiting,
            stall=_stall(view, status_input),
            orphaned=view.controller_uid is None,
            bootstrap=status_input.life.state if has_token else BootstrapState.NONE,
            secret_name=_secret(view, status_input),
            node=None if made.node is None else publishing.node(made.node),
            substrate_absent=made.absent,
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


def _secret(view: RecordView, status_input: StatusInput) -> str | None:
    """Return the Secret to deliver from; None when no token may be used."""
    resource, life = status_input.resource, status_input.life
    registered = status_input.made.registered
    if resource.bootstrap_token_id is None or life.drops_secrets or registered:
        return None
    return names.token_secret_name(view.name, resource.generation)


def _stall(view: RecordView, status_input: StatusInput) -> Explanation | None:
    """Say what only an operator can fix; a token that ended says more than a time."""
    resource, made, waiting = status_input.resource, status_input.made, status_input.waiting
    if waiting is not None and waiting.reason in bootstrap.FOR_A_PERSON:
        return waiting
    # It was found before the phase was decided.
    stall = made.stall if resource.phase in WAITED_FOR else None
    if made.waiting is not None or (made.final and stall is not None):
        return stall
    ended = bootstrap.stranded(resource, status_input.life, view, registered=made.registered)
    return ended or stall
