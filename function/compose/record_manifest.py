"""The record's manifest: the function's half of the exchange.

Metadata and spec of the ProvisioningRecord. Source: kinds.md, "What the function composes".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from function.compose import substrate_lookup
from function.compose.stage import SubstrateLookup
from function.contract import conditions, names
from function.contract.catalog.terminal import USUAL
from function.contract.conditions import ConditionType
from function.contract.record import (
    PROTECTED_MAX,
    ObservedSubstrate,
    SubstrateReference,
    wire,
)
from function.contract.redaction import provider_message, redacted
from function.contract.strategy import SubstrateState
from function.model import parsing
from function.model.facts import Facts, Refusal
from function.model.objects import Raw, mapping, metadata, status

REASON_MAX: Final = 512
"""Longest reason of a failure, in characters: a sentence of a provider, not its log."""

UID_MAX: Final = 253
"""Longest uid that the contract takes, in characters; Kubernetes' have 36."""


def manifest(facts: Facts) -> dict[str, Any] | None:
    """Return the record to compose, or None where nothing may be declared.

    A refused declaration leaves the one that the record holds.
    """
    declaration = _declaration(facts)
    if declaration is None:
        return None
    head: dict[str, Any] = {
        "name": facts.record_name,
        "namespace": facts.xr.namespace,
        "labels": {names.LABEL_XR: names.label_value(facts.xr.name)},
    }
    if _may_hold(facts):
        head["finalizers"] = [names.FINALIZER]
    what = substrate_lookup.reference(facts)
    spec: dict[str, Any] = {
        "declaration": declaration,
        "substrate": [] if what is None else [wire(what), *_siblings(facts)],
        "observed": _observed(facts),
    }
    if facts.status.substrate is SubstrateState.ABSENT:
        spec["released"] = True
    if facts.drain:
        spec["drain"] = True
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.RECORD_KIND,
        "metadata": head,
        "spec": spec,
    }


def failure(facts: Facts, live: Raw | None) -> conditions.ObservedCondition | None:
    """Return the terminal condition of a substrate, or None while it did not fail.

    Only the status that was asked for is terminal: Crossplane turns unseen conditions
    Unknown on any error.
    """
    if live is None:
        return None
    for kind, wanted in _terminal(facts):
        found = conditions.find(status(live), kind)
        if found is not None and found.status == wanted:
            reason = redacted(found.reason)
            message = provider_message(found.message, longest=REASON_MAX)
            return conditions.ObservedCondition(status=found.status, reason=reason, message=message)
    return None


def _terminal(facts: Facts) -> Sequence[tuple[str, str]]:
    """Return the conditions that are looked for; a blueprint that is away says the usual."""
    if facts.target is not None:
        return facts.target.terminal
    said = USUAL if facts.blueprint is None else facts.blueprint.terminal_conditions
    return [(one.type, one.status) for one in said]


def _siblings(facts: Facts) -> list[dict[str, Any]]:
    if facts.target is None:
        return []
    # What is refused changes nothing, so the record releases none.
    found = _listed(facts) if isinstance(facts.declared, Refusal) else []
    found += [one for one in facts.target.siblings if one not in found]
    return [wire(sibling) for sibling in found[: PROTECTED_MAX - 1]]


def _listed(facts: Facts) -> list[SubstrateReference]:
    listed = facts.recorded.get("substrate")
    entries = listed[1:] if isinstance(listed, list) else ()
    read = (parsing.readable(SubstrateReference, entry) for entry in entries)
    return [one for one in read if one is not None]


def _declaration(facts: Facts) -> dict[str, Any] | None:
    if not isinstance(facts.declared, Refusal):
        return wire(facts.declared)
    if facts.record is None:
        return None
    held = mapping(facts.recorded.get("declaration"))
    return dict(held) or None


def _may_hold(facts: Facts) -> bool:
    """The API server refuses a new finalizer on a terminating object."""
    if facts.record is None or not facts.record.terminating:
        return True
    finalizers = metadata(facts.record.raw).get("finalizers")
    return isinstance(finalizers, list) and names.FINALIZER in finalizers


def _observed(facts: Facts) -> dict[str, Any]:
    seen = substrate_lookup.located(facts)
    if seen is None and substrate_lookup.locate(facts) is SubstrateLookup.VANISHING:
        seen = facts.sought.raw
    if seen is None:
        return _unseen(facts)
    failed = failure(facts, seen)
    # As a manifest holds `ObservedSubstrate`: every value is known to fit.
    observed: dict[str, Any] = {
        "exists": True,
        "ready": conditions.is_true(status(seen), ConditionType.READY),
        "failed": failed is not None,
        "reason": "" if failed is None else f"{failed.reason}: {failed.message}"[:REASON_MAX],
    }
    stamp = substrate_lookup.stamped_generation(facts)
    if stamp is not None:
        observed["bootstrapGeneration"] = stamp
    uid = metadata(seen).get("uid")
    if isinstance(uid, str) and 0 < len(uid) <= UID_MAX:
        observed["uid"] = uid
    return observed


def _unseen(facts: Facts) -> dict[str, Any]:
    """What the record says stands while a substrate may be there that was not looked up."""
    undecided = substrate_lookup.adoptable(facts) and not facts.sought.looked
    if facts.record is not None and (undecided or facts.record.unreadable is not None):
        held = mapping(facts.recorded.get("observed"))
        if held:
            return dict(held)
    return wire(ObservedSubstrate())
