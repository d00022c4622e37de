"""What is known of nodes that stay as they are, so that they are not composed anew.

An XR of a hundred nodes is reconciled because one of them changed. Of the others everything
that their composition reads is as it was, to the byte, and so is what it says: a digest of
the one leads to the other. Belongs here: what a composition reads, and when a node is
settled. Not here: digests and where they are kept (`function.memory`).

Nothing secret is known: while a token is among what a node reads it is not settled, and of
what it composes the bootstrap is left out, to be copied from what is observed.
Source: issue "Speed"; docs/decisions/0010.
"""

from __future__ import annotations

import json

from function.compose import decorated, pipeline, reading
from function.compose.call import Outcome, Read, Request, Ttl
from function.compose.enrol_input import EnrolInput
from function.compose.enrolled import Enrolled, retry
from function.compose.facts import XR, Facts, Refusal
from function.compose.raw import Raw
from function.contract.errors import ContractError
from function.render import fieldpath

_REQUIRED = (pipeline.REQUIRE_RECORD, pipeline.REQUIRE_SUBSTRATE, pipeline.REQUIRE_TOKEN)


def common(request: Request, step: EnrolInput, xr: XR) -> bytes | None:
    """Return a digest of what all nodes of a call read; None: nothing is known of any."""
    if request.memory is None or request.preview:
        return None
    places = {entry.labels_from for entry in step.resources if entry.labels_from is not None}
    labels = {place: _labels(request.xr, place) for place in places}
    # Crossplane sends a map in any order.
    said = json.dumps([repr(xr), retry(request.xr), labels], sort_keys=True)
    text = reading.shared(request.step, _text)
    return request.memory.digest(Read(said=(said.encode(), text)))


def digest(one: Enrolled, shared: bytes) -> bytes | None:
    """Return a digest of all that the composition of a node reads; None: it is not settled."""
    request, record = one.request, one.record_name
    seen = one.name in request.desired and one.name in request.resources
    if request.memory is None or not seen or one.excess or one.forgotten:
        return None
    if record not in request.recorded or record in request.desired:
        return None
    if any(one.scoped(name) in request.required for name in _REQUIRED):
        return None
    siblings = repr(one.siblings) if one.siblings else ""
    read = Read(
        said=(shared, one.name.encode(), siblings.encode()),
        desired=(one.name,),
        observed=(one.name, record),
        alone=len(request.recorded) == 1,
    )
    return request.memory.digest(read)


def carried(facts: Facts, outcome: Outcome) -> tuple[fieldpath.Path, ...] | None:
    """Return where a settled node's substrate carries the bootstrap; None: it is not settled.

    A settled one is enrolled, and its step gives it.
    """
    live, record = facts.substrate, facts.record
    given = None if facts.target is None else facts.target.given
    if live is None or given is None or record is None or isinstance(facts.declared, Refusal):
        return None
    if facts.token is not None or not outcome.open or outcome.ttl is not Ttl.STEADY:
        return None
    return tuple(decorated.carried(facts, live))


def _labels(xr: Raw, place: str) -> object:
    try:
        return fieldpath.read(xr, fieldpath.parse("labelsFrom", place))
    except ContractError:
        return None


def _text(step: Raw) -> bytes:
    return json.dumps(step, sort_keys=True).encode()
