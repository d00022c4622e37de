"""Replaces a machine whose node does not register.

The effects of each step. A crash after any effect is found again by the next look: what is
under way is remembered before anything is touched, and every effect repeats safely. Source:
issue 5, "Registration timeout"; docs/decisions/0014.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from function.contract.conditions import Reason
from function.contract.record import ObservedSubstrate, SubstrateReference
from function.contract.strategy import BootstrapState, Phase
from reconciler.app.registration.bootstrap import BootstrapTokens
from reconciler.app.replacement import replacement_messages
from reconciler.app.replacement.observation import (
    ReplacementObservation,
    ReplacementObserver,
    ReplacementPorts,
    is_absent,
)
from reconciler.app.replacement.rate_limit import ReplacementRateLimit
from reconciler.app.status import waiting_messages
from reconciler.app.status.publishing import Publisher
from reconciler.domain.aggregate.explanation import Explanation
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.events import audit
from reconciler.domain.identity.token_life import TokenLife
from reconciler.domain.record.record_view import RecordView
from reconciler.domain.replacement import replacement, transitions
from reconciler.domain.replacement.replacement import ReplacementStep as Step
from reconciler.ports.cluster.substrates import KindNotServedError, LiveObject, NotAllowedError
from reconciler.ports.store.aggregates import RegisteredNode

_STEPS_MAX: Final = 8
"""Steps of one reconcile: from the beginning to letting go are four; more come with a change of
the world between two, and the rest with the next reconcile."""

SILENT_S: Final = 30.0
"""How soon a node that is overdue to report is looked at again: no change tells of a report."""

_UNDER_WAY: Final = frozenset({Step.WAIT, Step.RELEASE, Step.AWAIT_FUNCTION, Step.FINISH})
_RESTS: Final = _UNDER_WAY | {Step.NOTHING, Step.STALL, Step.EXHAUSTED}
"""The steps that end a reconcile; after any other the world is looked at again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacementResult:
    """The result of a replacement step.

    Attributes:
        resource: The aggregate afterwards.
        life: Its tokens, read before its node.
        node: Its node, if one is in the mesh.
        waiting: What a replacement under way waits for; None while none is.
        stall: What an operator must fix; None when nothing is.
        final: `stall` outranks whatever else stalls.
        absent: The function must compose no substrate.
        again: Seconds after which to come back, or None.
    """

    resource: ProvisionedResource
    life: TokenLife
    node: RegisteredNode | None
    waiting: Explanation | None = None
    stall: Explanation | None = None
    final: bool = False
    absent: bool = False
    again: float | None = None

    @property
    def registered(self) -> bool:
        """Whether its node is in the mesh."""
        return self.node is not None


class Replacement:
    """Keeps or recreates the machines of one management cluster."""

    def __init__(
        self,
        ports: ReplacementPorts,
        bootstrap: BootstrapTokens,
        publisher: Publisher,
        *,
        timeout: timedelta,
    ) -> None:
        self._ports = ports
        self._observer = ReplacementObserver(ports, bootstrap, timeout=timeout)
        self._publisher = publisher
        self._timeout = timeout
        self._rate_limit = ReplacementRateLimit(ports.repository)

    async def run(
        self, resource: ProvisionedResource, view: RecordView, *, refused: bool
    ) -> ReplacementResult:
        """Do what a node that does not come asks for.

        Args:
            resource: The aggregate; its deletion was not requested.
            view: Its record.
            refused: Its declaration as it stands is not accepted.

        Idempotency: on an unchanged world it writes nothing.
        """
        try:
            return await self._run(resource, view, refused=refused)
        except (KindNotServedError, NotAllowedError) as error:
            served = isinstance(error, NotAllowedError)
            reason = Reason.RIGHTS_MISSING if served else Reason.KIND_NOT_SERVED
            return await self._prevented(
                resource, view, Explanation(reason=reason, message=str(error))
            )

    async def seen(self, resource: ProvisionedResource, view: RecordView) -> RecordView:
        """Return the record without the machine that was released, which it may still show.

        Costs one GET, and only of a record that starts over and shows a machine.
        """
        observed = view.spec.observed
        if not (observed.exists and resource.recreations and resource.phase is Phase.PENDING):
            return view
        if (await self._observer.find(resource, view))[1] is not None:
            return view
        spec = view.spec.model_copy(update={"observed": ObservedSubstrate()})
        return replace(view, spec=spec)

    async def begin(self, resource: ProvisionedResource) -> None:
        """Remember that a machine is recreated because an operator asked for it.

        Raises:
            StaleAggregateError: The aggregate was changed since it was read.

        Idempotency: one that was abandoned, or has begun, begins now.
        """
        await self._ports.repository.update(transitions.begun(resource, self._now(resource)))

    async def _run(
        self, resource: ProvisionedResource, view: RecordView, *, refused: bool
    ) -> ReplacementResult:
        for _ in range(_STEPS_MAX):
            look = await self._observer.look(resource, view, refused=refused)
            step = replacement.decide(look.situation)
            if step is Step.BEGIN:
                begun = await self._rate_limit.begin(resource, self._now(resource))
                if begun is None:
                    return self._outcome(Step.STALL, resource, view, look, held_back=True)
                resource = begun
                continue
            resource = await self._do(step, resource, view, look)
            if step in _RESTS:
                return self._outcome(step, resource, view, look)
        return self._outcome(Step.WAIT, resource, view, look)

    async def _prevented(
        self, resource: ProvisionedResource, view: RecordView, why: Explanation
    ) -> ReplacementResult:
        """Tell whoever can fix it that the cluster refuses a step; what was published stays."""
        stored = await self._ports.repository.get(resource.id)
        life, node = await self._observer.mesh(stored)
        found = ReplacementResult(
            resource=stored,
            life=life,
            node=node,
            stall=why,
            final=True,
            again=waiting_messages.POLL_MAX_S,
        )
        if stored.recreating_since is None:
            return found
        return replace(
            found,
            waiting=replacement_messages.under_way(Step.WAIT),
            absent=stored.substrate.released and is_absent(view),
        )

    async def _do(
        self,
        step: Step,
        resource: ProvisionedResource,
        view: RecordView,
        look: ReplacementObservation,
    ) -> ProvisionedResource:
        update, now = self._ports.repository.update, self._now(resource)
        match step:
            case Step.ABANDON:
                return await update(transitions.abandoned(resource, now))
            case Step.REVOKE:
                await self._ports.tokens.revoke(resource.id)
            case Step.DEREGISTER if resource.bootstrap_token_id is not None:
                if await self._ports.nodes.reclaim(resource.bootstrap_token_id):
                    await self._publisher.deregistered_event(view, resource)
            case Step.LET_GO:
                uid = None if look.live is None else look.live.uid
                entry = audit.recreation(resource, _cause(resource, look))
                return await update(transitions.let_go(resource, uid, now), audit=entry)
            case Step.RELEASE if look.live is not None:
                await self._release(resource, view, look.live, look.reference)
            case Step.FINISH:
                return await update(transitions.finished(resource, now))
        return resource

    async def _release(
        self,
        resource: ProvisionedResource,
        view: RecordView,
        live: LiveObject,
        reference: SubstrateReference,
    ) -> None:
        """Annotate before the wish is published: a refused delete opens the XR's breaker.

        An object that the XR does not control any more (it was orphaned, and the XR applied
        again under another uid) is dropped by nobody: once no run composes it, we delete it.
        """
        if not is_absent(view):
            attempts = replacement.policy(resource).attempts
            await self._publisher.recreating_event(view, resource, attempts=attempts)
        if not live.released:
            await self._ports.cluster.substrates.release(reference, view.namespace, uid=live.uid)
        acknowledged = view.spec.released and is_absent(view)
        if acknowledged and not _dropped_by(view, live) and not live.terminating:
            await self._ports.cluster.substrates.delete_object(
                reference, view.namespace, uid=live.uid
            )

    def _outcome(
        self,
        step: Step,
        resource: ProvisionedResource,
        view: RecordView,
        look: ReplacementObservation,
        *,
        held_back: bool = False,
    ) -> ReplacementResult:
        silence = self._silence(resource, look)
        found = ReplacementResult(resource=resource, life=look.life, node=look.node, again=silence)
        if step in _UNDER_WAY:
            return replace(
                found,
                waiting=replacement_messages.under_way(step),
                absent=_may_say_absent(step, resource, view, look.live),
                again=self._again(step, resource),
            )
        if view.spec.released:
            # A token that is published before the function says otherwise might be composed
            # behind an absence that a teardown believes.
            return replace(found, waiting=replacement_messages.under_way(Step.FINISH))
        if step is Step.EXHAUSTED:
            return replace(found, stall=replacement_messages.EXHAUSTED, final=True)
        if step is Step.STALL:
            timeout = replacement.patience(resource, self._timeout)
            came = look.node is not None
            stall = replacement_messages.stalled(timeout, came=came, held_back=held_back)
            return replace(found, stall=stall)
        return found

    def _silence(self, resource: ProvisionedResource, look: ReplacementObservation) -> float | None:
        """Return when to look again for the report of a node that came; None waits for none."""
        if look.node is None or look.node.reported:
            return None
        left = replacement.patience(resource, self._timeout) - look.node.age
        return left.total_seconds() if left > timedelta() else SILENT_S

    def _again(self, step: Step, resource: ProvisionedResource) -> float | None:
        since = resource.recreating_since
        if step is Step.FINISH or since is None:
            return None
        if step is Step.WAIT:
            return waiting_messages.POLL_MAX_S
        return waiting_messages.poll_interval_s((self._ports.clock.now() - since).total_seconds())

    def _now(self, resource: ProvisionedResource) -> datetime:
        return max(self._ports.clock.now(), resource.updated_at)


def _may_say_absent(
    step: Step, resource: ProvisionedResource, view: RecordView, live: LiveObject | None
) -> bool:
    """Tell whether the wish may be published: only once Crossplane's delete is let through."""
    annotated = step is not Step.WAIT or live is None or live.released or is_absent(view)
    return resource.substrate.released and annotated


def _dropped_by(view: RecordView, live: LiveObject) -> bool:
    """Tell whether Crossplane drops an object for the XR that controls the record."""
    return live.controller is not None and live.controller.uid == view.controller_uid


def _cause(resource: ProvisionedResource, look: ReplacementObservation) -> str:
    life, live, known = look.life, look.live, resource.substrate.uid
    if live is not None and known not in (None, live.uid):
        return "it took the place of the one that its node registered from"
    came = life.state is BootstrapState.CONSUMED
    if came and live is None:
        return "the substrate that its node registered from was deleted"
    return "its node registered and never reported" if came else "no node registered in time"
