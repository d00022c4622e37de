"""Reports repeated failures of a reconcile as a condition of its record.

Which failures are a record's own, and one word of them in its conditions. What a reconcile has
told itself, such as a deregistration that failed, is told already. Source: reference, peers
§4.2 fault 3; Kubernetes API conventions, "Conditions".
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import Any, Final

from function.contract.conditions import ConditionType, DesiredCondition, Reason, find
from reconciler.app.converge.reconciler import Reconciler
from reconciler.app.queue.work_queue import describe
from reconciler.domain.aggregate.errors import NodeDeregistrationFailedError, StaleAggregateError
from reconciler.domain.aggregate.explanation import Explanation
from reconciler.domain.record import status
from reconciler.domain.record.conditions import StatusFacts
from reconciler.ports.registration import AllocationLostError, StoreUnavailableError
from reconciler.ports.store.lease import FencedError

PATIENCE: Final = 3
"""Failures in a row before anything is said: what passes within a second is nobody's news."""

MESSAGE_MAX: Final = 512
"""Longest message, in characters: a refusal is named in its first words."""

FAILING_MAX: Final = 10_000
"""Records that are counted at once; of more, the longest silent are counted again."""

_PASSING: Final = (
    OSError,
    TimeoutError,
    StoreUnavailableError,
    AllocationLostError,
    StaleAggregateError,
    FencedError,
)
_CONFLICT: Final = 409
_TOO_MANY: Final = 429

_log = logging.getLogger(__name__)


class FailureReporter(Reconciler):
    """Implements `Reconciler.run` over `Reconciler.run`."""

    _failing: OrderedDict[str, int] | None = None

    async def run(self, raw: dict[str, Any]) -> float | None:
        """Do one record; what it fails of for the third time in a row is said on it.

        It is said once until a reconcile succeeds, so that a reconcile which writes something else
        before it fails does not cost a write each time.

        Raises:
            Exception: Whatever the reconcile failed of.
        """
        failing = self._failing = OrderedDict() if self._failing is None else self._failing
        uid = str(raw["metadata"]["uid"])
        try:
            again = await super().run(raw)
        except Exception as error:
            if _is_its_own(error):
                failing[uid] = failing.pop(uid, 0) + 1
                if failing[uid] == PATIENCE and not await self._tell(raw, error):
                    failing[uid] -= 1
                if len(failing) > FAILING_MAX:
                    failing.popitem(last=False)
            raise
        failing.pop(uid, None)
        return again

    async def _tell(self, raw: dict[str, Any], error: Exception) -> bool:
        """Write it into the record; tell whether that worked, which nothing depends on."""
        why = Explanation(reason=Reason.RECONCILE_FAILED, message=describe(error)[:MESSAGE_MAX])
        try:
            await self._ports.cluster.records.write_status(raw, self._said(raw, why))
        except Exception as unsaid:  # noqa: BLE001 - the reconcile's own failure is what counts
            _log.debug("failure_untold error=%s", describe(unsaid))
            return False
        return True

    def _said(self, raw: dict[str, Any], why: Explanation) -> dict[str, Any]:
        previous = raw.get("status") or {}
        now = self._ports.clock.now()
        generation = int(raw["metadata"].get("generation", 0))
        if not previous.get("conditions"):
            facts = StatusFacts(resource=None, waiting=why)
            return {**previous, **status.render(previous, facts, generation=generation, now=now)}
        ready = find(previous, ConditionType.READY)
        told = {ConditionType.RECONCILING: True}
        if ready is None or ready.status != "True":
            told[ConditionType.READY] = False
        fresh = {
            kind.value: status.condition(
                previous,
                DesiredCondition(type=kind, status=says, reason=why.reason, message=why.message),
                generation=generation,
                now=now,
            )
            for kind, says in told.items()
        }
        kept = [fresh.pop(item["type"], item) for item in previous["conditions"]]
        return {**previous, "conditions": [*kept, *fresh.values()]}


def _is_its_own(error: Exception) -> bool:
    """Tell whether it is this record's trouble: neither an outage, nor told, nor a lost race."""
    if isinstance(error, (*_PASSING, NodeDeregistrationFailedError)):
        return False
    answered = getattr(error, "status", None)
    return answered is None or (answered < 500 and answered not in (_CONFLICT, _TOO_MANY))
