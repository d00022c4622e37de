"""Observes an aggregate: the facts its phase is decided from.

Gathering them, from the record first and by a live GET where it does not tell, or tells of
another object than the one that is remembered.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from function.contract.conditions import ConditionType, Reason, find
from function.contract.strategy import Phase
from reconciler.app.guard import any_version
from reconciler.domain.aggregate.explanation import Explanation
from reconciler.domain.aggregate.phase import ObservedXR
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.guard import substrate_identity
from reconciler.domain.guard.substrate_identity import IdentityMatch, SubstrateIdentity
from reconciler.domain.record.conditions import StatusFacts
from reconciler.domain.record.record_view import RecordView
from reconciler.domain.replacement import transitions
from reconciler.ports.cluster.management_cluster import ManagementCluster
from reconciler.ports.cluster.substrates import KindNotServedError, NotAllowedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The facts of one reconcile.

    Attributes:
        resource: The aggregate, with the uid that is to be remembered; not stored yet.
        seen: What its phase is decided from.
        lost: That its substrate was lost under a live node; None while it was not.
    """

    resource: ProvisionedResource
    seen: ObservedXR
    lost: Explanation | None


class Observer:
    """Looks at the management cluster."""

    def __init__(self, cluster: ManagementCluster) -> None:
        self._cluster = cluster

    async def look(
        self, resource: ProvisionedResource, view: RecordView, *, registered: bool
    ) -> Observation:
        """Return the facts of one reconcile; `registered` says whether its node is in the mesh.

        What the function did not see is looked up once it was there: the first run of an
        XR applied again sees nothing, and a node's substrate may be gone for good. That a node
        registered says so too, whatever of the loss was stored before a crash.

        Raises:
            KindNotServedError: What the record does not show is of a kind that no version serves.
            NotAllowedError: It may not be read. Of what the record does show, neither is raised.
        """
        seen = view.spec.observed
        exists, ready = seen.exists, seen.ready
        identity = SubstrateIdentity(
            registered=registered, known=resource.substrate.uid, shown=seen.uid
        )
        if not exists and (registered or resource.phase is not Phase.PENDING):
            identity = await self._looked(resource, identity)
            exists = identity.live is not None
            ready = exists and resource.phase in (Phase.ENROLLING, Phase.READY)
        verdict = substrate_identity.judge(identity)
        if verdict is IdentityMatch.LOOK:
            verdict = await self._judged(resource, identity)
        exists = exists and verdict not in _LOST
        observed = ObservedXR(
            exists=exists,
            ready=exists and ready,
            # Another one's failure says nothing of the machine that its node came from.
            failed=seen.failed and verdict not in _LOST,
            node_registered=registered or not resource.node_expected,
            uninjected=resource.uninjected(seen, exists=exists),
        )
        return Observation(
            resource=_knowing(resource, verdict, seen.uid),
            seen=observed,
            lost=_said(verdict) if registered and not exists else None,
        )

    async def _judged(
        self, resource: ProvisionedResource, identity: SubstrateIdentity
    ) -> IdentityMatch:
        try:
            return substrate_identity.judge(await self._looked(resource, identity))
        except (KindNotServedError, NotAllowedError):
            # The record says that it is there, and nobody can say that it is another one.
            return IdentityMatch.LEAVE

    async def _looked(
        self, resource: ProvisionedResource, identity: SubstrateIdentity
    ) -> SubstrateIdentity:
        reference = resource.substrate.reference
        live = await any_version.read(self._cluster, reference, resource.key.namespace)
        return replace(identity, looked=True, live=None if live is None else live.uid)


def unanswered(resource: ProvisionedResource, view: RecordView) -> bool:
    """Tell whether a raised retry was accepted of a loss, and no status was written since.

    Its acceptance is stored before anything comes of it, and a crash between the two must not
    use it up. Taking the node out publishes nothing, so the status tells.
    """
    stalled = find(view.status, ConditionType.STALLED)
    told = stalled is not None and stalled.reason == Reason.SUBSTRATE_LOST
    published = view.status.get("accepted") or {}
    return told and published.get("retry", 0) < resource.accepted.retry


def postponed(
    facts: StatusFacts, view: RecordView, lost: Explanation | None, closed: Explanation | None
) -> StatusFacts:
    """Say of a lost substrate that it is lost, and why an accepted retry is not answered yet.

    Args:
        facts: The others.
        view: Its record.
        lost: What was lost; None for nothing.
        closed: Why nothing may be given out; None where nothing prevents it, or no retry
            is unanswered. One that is stays so: what is published of it does not count it.
    """
    if lost is None:
        return facts
    if closed is None or facts.resource is None:
        return replace(facts, stall=lost)
    accepted = facts.resource.accepted
    told = (view.status.get("accepted") or {}).get("retry", 0)
    kept = accepted.model_copy(update={"retry": min(told, accepted.retry)})
    stall = replace(lost, message=f"{lost.message} {closed.message}")
    resource = replace(facts.resource, accepted=kept)
    return replace(facts, resource=resource, stall=stall, waiting=closed)


_LOST: Final = frozenset({IdentityMatch.OTHER, IdentityMatch.GONE})


def _knowing(
    resource: ProvisionedResource, verdict: IdentityMatch, shown: str | None
) -> ProvisionedResource:
    if verdict is IdentityMatch.REMEMBER:
        return transitions.known_as(resource, shown)
    if verdict is IdentityMatch.FORGET:
        return transitions.known_as(resource, None)
    return resource


def _said(verdict: IdentityMatch) -> Explanation:
    what = (
        "The substrate that the node registered from was replaced by another one of the same name."
        if verdict is IdentityMatch.OTHER
        else "The substrate was deleted while its node is in the mesh."
    )
    message = (
        f"{what} Increment spec.retry to deregister the node and create a new machine, or delete "
        "the resource."
    )
    return Explanation(reason=Reason.SUBSTRATE_LOST, message=message)
