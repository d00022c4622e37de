"""`Stalled` and `Reconciling` of the XR, over every combination of what they follow from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from function.compose.status.merged_conditions import merged, notices
from function.compose.status.progress import ProgressFacts, progress
from function.contract.conditions import ConditionType, DesiredCondition, ObservedCondition, Reason
from function.contract.errors import ContractError
from function.contract.strategy import Phase
from function.model.call import Outcome, Ttl
from tests.unit.function import given

STALLED, RECONCILING = ConditionType.STALLED, ConditionType.RECONCILING
BOOLEANS = (False, True)
Pair = tuple[DesiredCondition, DesiredCondition]


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What both follow from."""

    admitted: bool | None
    failed: bool
    stalled: str | None
    reconciling: str | None
    phase: Phase | None
    going: bool
    preview: bool
    withheld: ContractError | None = None

    def judged(self) -> Pair:
        return progress(
            ProgressFacts(
                admitted=DesiredCondition(
                    type=ConditionType.ADMITTED, status=self.admitted, reason="Ours", message="ours"
                ),
                failed=DesiredCondition(
                    type=ConditionType.PROVISIONING_FAILED,
                    status=self.failed,
                    reason="Quota",
                    message="quota",
                ),
                stalled=_observed(self.stalled, "Late", "late"),
                reconciling=_observed(self.reconciling, "Waiting", "waits"),
                phase=self.phase,
                withheld=self.withheld,
                going=self.going,
                preview=self.preview,
            )
        )


def _observed(status: str | None, reason: str, message: str) -> ObservedCondition | None:
    if status is None:
        return None
    return ObservedCondition(status=status, reason=reason, message=message)


def everything() -> Iterator[Given]:
    told = (None, "True", "False", "Unknown")
    phases = (None, *Phase)
    for admitted, failed, stalled, reconciling, phase, going, preview in product(
        (None, *BOOLEANS), BOOLEANS, told, told, phases, BOOLEANS, BOOLEANS
    ):
        yield Given(
            admitted=admitted,
            failed=failed,
            stalled=stalled,
            reconciling=reconciling,
            phase=phase,
            going=going,
            preview=preview,
        )


def test_both_are_always_there_with_words_and_never_both_true() -> None:
    for each in everything():
        stalled, reconciling = each.judged()
        assert (stalled.type, reconciling.type) == (STALLED, RECONCILING)
        assert all(one.reason and one.message for one in (stalled, reconciling))
        assert not (stalled.status and reconciling.status), each


def test_a_refusal_and_a_terminal_failure_stall_unless_the_record_goes() -> None:
    for each in everything():
        if each.admitted is False or each.failed:
            stalled, _ = each.judged()
            assert stalled.status is (not each.going or each.stalled == "True")


def test_the_records_own_stall_is_the_xrs() -> None:
    for each in everything():
        if each.stalled == "True":
            assert each.judged()[0].status is True


def test_the_reason_of_what_is_awaited_is_in_one_condition() -> None:
    for each in everything():
        stalled, reconciling = each.judged()
        if stalled.status:
            assert (reconciling.reason, reconciling.message) == (stalled.reason, stalled.message)


def test_a_live_one_mirrors_whether_the_reconciler_is_done() -> None:
    for each in everything():
        live = each.admitted and not each.failed and each.stalled != "True" and not each.preview
        if live and each.reconciling in ("True", "False"):
            assert str(each.judged()[1].status) == each.reconciling


FRESH = Given(
    admitted=True, failed=False, stalled=None, reconciling="True", phase=Phase.PENDING,
    going=False, preview=False,
)  # fmt: skip


def test_a_namespace_that_converges_is_under_way() -> None:
    said = {one.type: one for one in given.answer().verdicts}
    refused = replace(said[ConditionType.ADMITTED], status=False, reason=Reason.NAMESPACE_NOT_READY)

    stalled, reconciling = progress(
        ProgressFacts(
            admitted=refused, failed=said[ConditionType.PROVISIONING_FAILED], stalled=None,
            reconciling=_observed("True", "NamespaceNotReady", "soon"), phase=None,
            withheld=None, going=False, preview=False,
        )
    )  # fmt: skip

    assert (stalled.status, reconciling.status) == (False, True)


def _withheld(reason: Reason) -> ContractError:
    return ContractError(field="spec.userData", rule="is too large", reason=reason)


def test_a_document_that_cannot_be_made_stalls() -> None:
    stalled, _ = replace(FRESH, withheld=_withheld(Reason.USER_DATA_TOO_LARGE)).judged()

    assert (stalled.status, stalled.reason) == (True, Reason.USER_DATA_TOO_LARGE)


def test_a_document_that_awaits_its_token_does_not() -> None:
    stalled, reconciling = replace(FRESH, withheld=_withheld(Reason.WAITING_FOR_TOKEN)).judged()

    assert (stalled.status, reconciling.status) == (False, True)


def test_before_the_first_status_the_reconciler_is_awaited() -> None:
    fresh = Given(
        admitted=True, failed=False, stalled=None, reconciling=None, phase=None,
        going=False, preview=False,
    )  # fmt: skip

    assert fresh.judged()[1].reason == Reason.WAITING_FOR_RECONCILER


def _outcome(status: bool) -> Outcome:
    conditions = given.answer().verdicts
    pair = Given(
        admitted=not status, failed=False, stalled="False", reconciling="True",
        phase=Phase.PROVISIONING, going=False, preview=False,
    ).judged()  # fmt: skip
    return Outcome(
        record=None, substrate=None, ready=False, open=False,
        verdicts=(*conditions[:-2], *pair), status={}, ttl=Ttl.STEADY, requirements={},
    )  # fmt: skip


def test_of_several_nodes_the_one_that_is_stalled_counts() -> None:
    said = {one.type: one for one in merged({"a": _outcome(False), "b": _outcome(True)})}

    assert said[STALLED].status is True
    assert said[RECONCILING].status is False
    assert said[STALLED].message == "b: ours"


def test_a_stall_is_warned_of_once() -> None:
    said = merged({"b": _outcome(True)})
    (stalled,) = [one for one in said if one.type is STALLED]

    first = notices({}, said)
    told = {"conditions": [
        {"type": STALLED, "status": "True", "reason": stalled.reason, "message": stalled.message}
    ]}  # fmt: skip

    assert [(one.reason, one.message) for one in first] == [(stalled.reason, stalled.message)]
    assert notices(told, said) == ()


def test_a_further_stalled_node_is_no_news_of_the_first() -> None:
    one, two = merged({"a": _outcome(True)}), merged({"a": _outcome(True), "b": _outcome(True)})
    three = merged({"a": _outcome(True), "b": _outcome(True), "c": _outcome(True)})
    (notice,) = notices({}, two)
    told = [
        {"type": each.type, "status": "True", "reason": each.reason, "message": each.message}
        for each in two
        if each.type is STALLED
    ]

    assert notice.message == f"a: {notices({}, one)[0].message}"
    assert notices({"conditions": told}, three) == ()
