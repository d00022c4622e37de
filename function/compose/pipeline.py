"""Composes one node: facts in, manifests and conditions out.

Reducing facts to a situation, carrying out a stage's plan, readiness, the XR's status, what
else is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Protocol, assert_never
from uuid import UUID, uuid5

from function.compose import enrolled_substrate, record_manifest, stage, substrate, substrate_lookup
from function.compose.stage import RecordState, Stage, SubstratePlan, TokenState
from function.compose.status.conditions import StageResult, conditions_of, said
from function.contract import conditions, names
from function.contract.conditions import ConditionType, Reason
from function.contract.errors import ContractError, forget_frames
from function.contract.record import (
    Bootstrap,
    Declaration,
    Enrolment,
    ProviderConfigReference,
    RecordStatus,
)
from function.contract.secrets import TokenPlaintext
from function.contract.strategy import BootstrapState, MeshRole, Phase, SubstrateState
from function.model.call import Composed, Lookup, Outcome, Requirement, Ttl
from function.model.facts import Facts, Record, Refusal, Token
from function.model.objects import Raw, status

REQUIRE_RECORD: Final = "record"
REQUIRE_TOKEN: Final = "token"  # noqa: S105 - a requirement's name
REQUIRE_SUBSTRATE: Final = "substrate"

PREVIEW_ID: Final = UUID("00000000-0000-7000-8000-000000000000")
PREVIEW_TOKEN: Final = "preview-token-not-a-secret"  # noqa: S105 - a placeholder
PREVIEW_ENROLMENT: Final = Enrolment(
    base_url="https://broker.invalid",
    plexd_download_url="https://broker.invalid/plexd-linux-{arch}",
    plexd_image="broker.invalid/plexd:v0.0.0",
)
"""Placeholders under a top-level domain that never resolves (RFC 2606)."""

_MAY_BE_READY: Final = frozenset({Stage.SUSTAIN, Stage.KEEP})
_WAITING: Final = frozenset({Stage.SEEK, Stage.VANISHING, Stage.DRAINED})


def compose(given: Facts, requirements: Mapping[str, Requirement]) -> Outcome:
    """Return what to compose, and what is to be told.

    Args:
        given: The facts of one request.
        requirements: What the input itself needs; ours are added.

    Returns:
        An outcome that is equal for equal facts, and that, fed back as observed, gives
        itself again.
    """
    facts = _previewed(given) if given.preview else given
    judged = _judged(facts)
    record_composed = substrate_composed = None
    manifest = None if judged.stage in stage.UNRECORDED else record_manifest.manifest(facts)
    if manifest is not None:
        ready = facts.status.phase is Phase.READY
        record_composed = Composed(manifest=manifest, ready=ready)
    if judged.composed is not None:
        ready = judged.live is not None and _is_ready(judged.live)
        substrate_composed = Composed(manifest=judged.composed, ready=ready)
    opened = _enrolled(facts, judged.stage)
    return Outcome(
        record=record_composed,
        substrate=substrate_composed,
        ready=substrate_composed is not None and substrate_composed.ready is True and opened,
        open=opened,
        verdicts=conditions_of(facts, judged),
        status=_xr_status(facts.status),
        ttl=_ttl(facts, judged),
        requirements={**requirements, **_requirements(given)},
        unrendered=judged.unrendered is not None,
    )


def situation(facts: Facts) -> stage.StageFacts:
    """Reduce facts to the closed sets that decide."""
    known = facts.status
    state = RecordState.NONE
    if facts.record is not None:
        state = RecordState.TERMINATING if facts.record.terminating else RecordState.ALIVE
    return stage.StageFacts(
        preview=facts.preview,
        refused=isinstance(facts.declared, Refusal)
        or (facts.record is not None and facts.record.unreadable is not None),
        record=state,
        accepted=known.accepted is not None
        and known.xr_name is not None
        and known.substrate is SubstrateState.PRESENT,
        absent=known.substrate is SubstrateState.ABSENT,
        sight=substrate_lookup.locate(facts),
        held=_held(facts),
        token=_token_state(facts),
        drain=facts.drain,
        acknowledged=facts.recorded.get("released") is True,
    )


def _judged(facts: Facts) -> StageResult:
    chosen = stage.stage_of(situation(facts))
    live = substrate_lookup.located(facts)
    try:
        composed = _composed(facts, chosen, live)
    except ContractError as error:
        forget_frames(error)
        if live is None:
            return StageResult(stage=Stage.WITHHELD, withheld=error)
        return StageResult(stage=chosen, composed=_kept(facts, live), live=live, unrendered=error)
    return StageResult(stage=chosen, composed=composed, live=live)


def _kept(facts: Facts, live: Raw) -> dict[str, Any]:
    try:
        return _maker(facts).keep(facts, live)
    except ContractError:
        return _maker(facts).last_composed(facts, live)


def _composed(facts: Facts, chosen: Stage, live: Raw | None) -> dict[str, Any] | None:
    plan = stage.PLANS[chosen]
    match plan:
        case SubstratePlan.NONE:
            return None
        case SubstratePlan.KEEP:
            return None if live is None else _maker(facts).keep(facts, live)
        case SubstratePlan.RENDER:
            return None if live is None else _maker(facts).update(facts, live)
        case SubstratePlan.BIRTH:
            accepted = facts.status.accepted
            if accepted is None:
                return None
            return _maker(facts).create(facts, accepted, _enrolment(facts))
        case _:
            assert_never(plan)


class _Maker(Protocol):
    """Makes the manifest of the substrate: alone, or out of what an earlier step gave."""

    def last_composed(self, facts: Facts, live: Raw) -> dict[str, Any]: ...

    def keep(self, facts: Facts, live: Raw) -> dict[str, Any]: ...

    def update(self, facts: Facts, live: Raw) -> dict[str, Any]: ...

    def create(
        self, facts: Facts, accepted: Declaration, enrolment: Enrolment
    ) -> dict[str, Any]: ...


def _maker(facts: Facts) -> _Maker:
    return substrate if facts.target is None else enrolled_substrate


def _previewed(facts: Facts) -> Facts:
    """Return facts as if the reconciler had accepted the declaration."""
    accepted = None if isinstance(facts.declared, Refusal) else facts.declared
    identity = PREVIEW_ID if facts.target is None else uuid5(PREVIEW_ID, facts.resource)
    pretended = RecordStatus(
        provisioned_resource_id=str(identity),
        xr_name=names.xr_name(identity),
        accepted=accepted,
        substrate=SubstrateState.PRESENT,
        provider_config_ref=ProviderConfigReference(name="preview"),
        bootstrap=Bootstrap(generation=1, state=BootstrapState.ISSUED),
    )
    return replace(
        facts,
        record=Record(raw={}, status=pretended),
        substrate=None,
        sought=Lookup(),
        token=Token(plaintext=TokenPlaintext(PREVIEW_TOKEN), generation=1),
        enrolment=_first(facts.enrolment, PREVIEW_ENROLMENT),
    )


def _enrolment(facts: Facts) -> Enrolment:
    return _first(facts.status.enrolment or Enrolment(), facts.enrolment)


def _first(strong: Enrolment, weak: Enrolment) -> Enrolment:
    """Return the knobs of the first, completed from the second field by field."""
    missing = {
        name: value
        for name, value in ((name, getattr(weak, name)) for name in Enrolment.model_fields)
        if name not in strong.model_fields_set
    }
    return strong.model_copy(update=missing)


def _held(facts: Facts) -> bool:
    """Tell whether the reconciler refused the declaration or reports a lost substrate.

    Also while an edit of parameters is not accepted: a machine made of the earlier ones would
    be there when it is.
    """
    admitted = said(facts, ConditionType.ADMITTED)
    refused = admitted is not None and admitted.status == "False"
    return refused or _lost(facts) or substrate_lookup.edited(facts)


def _lost(facts: Facts) -> bool:
    stalled = said(facts, ConditionType.STALLED)
    return (
        stalled is not None and stalled.status == "True" and stalled.reason == Reason.SUBSTRATE_LOST
    )


def _token_state(facts: Facts) -> TokenState:
    if substrate_lookup.role(facts) is MeshRole.STANDALONE:
        return TokenState.NOT_NEEDED
    bootstrap = facts.status.bootstrap
    if (
        facts.token is not None
        and bootstrap.state is BootstrapState.ISSUED
        and facts.token.generation == bootstrap.generation
    ):
        return TokenState.AT_HAND
    return TokenState.ABSENT


def _is_ready(live: Raw) -> bool:
    return conditions.is_true(status(live), ConditionType.READY)


def _enrolled(facts: Facts, chosen: Stage) -> bool:
    known = facts.status
    if facts.target is not None and facts.drain:
        return facts.target.given is None
    if chosen not in _MAY_BE_READY or known.phase is Phase.FAILED or _lost(facts):
        return False
    return (
        substrate_lookup.role(facts) is MeshRole.STANDALONE
        or known.node is not None
        or known.phase is Phase.READY
        or substrate_lookup.uninjected(facts)
    )


def _xr_status(known: RecordStatus) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if known.phase is not None:
        found["phase"] = str(known.phase)
    if known.provisioned_resource_id is not None:
        found["provisionedResourceID"] = known.provisioned_resource_id
    if known.xr_name is not None:
        found["xrName"] = known.xr_name
    if known.node is not None:
        found["node"] = {"id": known.node.id, "meshIP": known.node.mesh_ip}
    return found


def _ttl(facts: Facts, judged: StageResult) -> Ttl:
    if isinstance(facts.declared, Refusal):
        waiting = facts.declared.pending or facts.declared.waiting
        return Ttl.WAITING if waiting else Ttl.REFUSED
    if judged.withheld is not None or judged.unrendered is not None:
        return Ttl.REFUSED
    named = facts.status.bootstrap.secret_ref is not None
    unwatched = judged.stage is Stage.WAIT_TOKEN and named
    return Ttl.WAITING if unwatched or judged.stage in _WAITING else Ttl.STEADY


def _requirements(facts: Facts) -> dict[str, Requirement]:
    """What is needed beside the input's own, from nothing but what is observed."""
    found: dict[str, Requirement] = {}
    if facts.preview or facts.xr.project_id is None:
        return found
    if facts.record is None or facts.record.found:
        found[REQUIRE_RECORD] = Requirement(
            api_version=names.API_VERSION,
            kind=names.RECORD_KIND,
            name=facts.record_key,
            namespace=facts.xr.namespace,
        )
    if not substrate_lookup.adoptable(facts):
        return found
    what = substrate_lookup.reference(facts)
    if what is not None:
        found[REQUIRE_SUBSTRATE] = Requirement(
            api_version=what.api_version,
            kind=what.kind,
            name=what.name,
            namespace=facts.xr.namespace,
        )
    secret = facts.status.bootstrap.secret_ref
    if secret is not None and substrate_lookup.role(facts) is MeshRole.NODE:
        found[REQUIRE_TOKEN] = Requirement(
            api_version="v1", kind="Secret", name=secret.name, namespace=facts.xr.namespace
        )
    return found
