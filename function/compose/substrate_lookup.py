"""Locates the substrate, observed or as the record remembers it.

Readings of facts.
"""

from __future__ import annotations

from function.compose.stage import SubstrateLookup
from function.contract.catalog import parameters
from function.contract.errors import ContractError
from function.contract.record import SubstrateReference
from function.contract.strategy import MeshRole, SubstrateState
from function.model import parsing
from function.model.facts import Facts, Refusal, memoised
from function.model.objects import Raw, generation, mapping, metadata, terminating


@memoised
def locate(facts: Facts) -> SubstrateLookup:
    """Say how the substrate is seen; a terminating record adopts nothing."""
    if facts.substrate is not None:
        return SubstrateLookup.OBSERVED
    if not facts.sought.looked or facts.record is None or facts.record.terminating:
        return SubstrateLookup.UNKNOWN
    if facts.sought.raw is None:
        return SubstrateLookup.MISSING
    if terminating(facts.sought.raw):
        return SubstrateLookup.VANISHING
    return SubstrateLookup.FOUND


@memoised
def located(facts: Facts) -> Raw | None:
    """Return the substrate that can be kept: observed, or found and not going."""
    match locate(facts):
        case SubstrateLookup.OBSERVED:
            return facts.substrate
        case SubstrateLookup.FOUND:
            return facts.sought.raw
        case _:
            return None


@memoised
def adoptable(facts: Facts) -> bool:
    """Whether a substrate may exist that this XR does not compose (yet, or any more)."""
    status = facts.status
    return (
        facts.record is not None
        and not facts.record.terminating
        and facts.substrate is None
        and status.substrate is SubstrateState.PRESENT
        and status.accepted is not None
        and status.xr_name is not None
    )


@memoised
def reference(facts: Facts) -> SubstrateReference | None:
    """Return what the substrate is or will be; None while that is not known.

    The object itself says it best, then the record, then whoever composes it: a kind never
    changes under a name.
    """
    live = located(facts)
    shown = None if live is None else _read(live, metadata(live).get("name"))
    if shown is not None:
        return shown
    name = facts.status.xr_name
    if facts.record is not None and not _outlived(facts):
        entries = facts.recorded.get("substrate")
        for entry in entries[:1] if isinstance(entries, list) else ():
            written = parsing.readable(SubstrateReference, entry)
            if written is not None and _is_it(facts, written):
                return written
    if facts.target is not None and facts.target.given is not None:
        given = facts.target.given
        return _read(given, metadata(given).get("name") or name or "")
    if name is None or facts.blueprint is None:
        return None
    xr = facts.blueprint.xr
    return SubstrateReference(api_version=xr.api_version, kind=xr.kind, name=name)


def _outlived(facts: Facts) -> bool:
    """Whether the record was written by a run that saw an earlier one under its name.

    It acknowledges an absence that nobody asked of it.
    """
    absent = facts.status.substrate is SubstrateState.ABSENT
    return facts.recorded.get("released") is True and not absent


def _is_it(facts: Facts, written: SubstrateReference) -> bool:
    """Whether what the record names is the substrate; a name that is still to come is empty."""
    if facts.target is not None:
        return written.name != ""
    return facts.status.xr_name in {None, written.name}


@memoised
def stamped_generation(facts: Facts) -> int | None:
    """Return the bootstrap generation on the substrate in sight.

    Somebody may have taken the annotation off: then the record remembers it.
    """
    live = located(facts)
    if live is None:
        return None
    stamp = generation(live)
    if stamp is not None or facts.record is None:
        return stamp
    remembered = mapping(facts.recorded.get("observed")).get("bootstrapGeneration")
    return remembered if isinstance(remembered, int) else None


@memoised
def uninjected(facts: Facts) -> bool:
    """Whether a resource of other steps was there before its record, and so has no bootstrap."""
    return (
        facts.target is not None
        and role(facts) is MeshRole.NODE
        and located(facts) is not None
        and stamped_generation(facts) is None
    )


@memoised
def role(facts: Facts) -> MeshRole:
    """Return the mesh role as accepted, else as declared, else the default."""
    if facts.status.accepted is not None:
        return facts.status.accepted.mesh_role
    return MeshRole.NODE if isinstance(facts.declared, Refusal) else facts.declared.mesh_role


def edited(facts: Facts) -> bool:
    """Whether parameters are declared that differ from the accepted ones."""
    declared, accepted = facts.declared, facts.status.accepted
    if isinstance(declared, Refusal) or accepted is None:
        return False
    return bool(parameters.changes(accepted.parameters, declared.parameters))


def known_reference(facts: Facts) -> SubstrateReference:
    """Return what the substrate is.

    Raises:
        ContractError: Whoever composes it does not say what it is.
    """
    what = reference(facts)
    if what is None:
        raise ContractError(field=facts.resource, rule="must have an apiVersion and a kind")
    return what


def _read(raw: Raw, name: object) -> SubstrateReference | None:
    what = {"apiVersion": raw.get("apiVersion"), "kind": raw.get("kind"), "name": name}
    return parsing.readable(SubstrateReference, what)


def handle(facts: Facts) -> str:
    """Return the node's resource handle, `pr-<uuid>`: also the name of a substrate of ours."""
    return facts.status.xr_name or known_reference(facts).name
