"""What is known of nodes that stay as they are, so that they are not composed anew.

An XR of a hundred nodes is reconciled because one of them changed. Of the others everything
that their composition reads is as it was, to the byte, and so is what it says: a digest of
the one leads to the other. Belongs here: what a composition reads, and which nodes may be
known. Not here: digests and where they are kept (`function.memory`).

Nothing secret is known: of what is composed the bootstrap is left out, to be copied from
what is observed or rendered with the node's own token.
Source: issue "Speed"; docs/decisions/0010.
"""

from __future__ import annotations

import json

from function.compose import decorated, pipeline, reading
from function.compose.call import Outcome, Place, Read, Request
from function.compose.enrol_input import RECORD_PREFIX, EnrolInput
from function.compose.enrolled import Enrolled, retry
from function.compose.facts import XR, Facts, Refusal, Token
from function.compose.raw import Raw
from function.contract.errors import ContractError
from function.render import document, fieldpath

_REQUIRED = (pipeline.REQUIRE_RECORD, pipeline.REQUIRE_SUBSTRATE, pipeline.REQUIRE_TOKEN)


def common(request: Request, step: EnrolInput, xr: XR) -> bytes | None:
    """Return a digest of what all nodes of a call read; None: nothing is known of any.

    A node alone is most likely what changed, so it is only looked for in versions that were
    met before.
    """
    memory, records = request.memory, sorted(request.recorded)
    if memory is None or request.preview:
        return None
    if len(records) == 1 and not memory.met((*records, records[0].removeprefix(RECORD_PREFIX))):
        return None
    places = {entry.labels_from for entry in step.resources if entry.labels_from is not None}
    labels = {place: _labels(request.xr, place) for place in places}
    # Crossplane sends a map in any order.
    said = json.dumps([repr(xr), retry(request.xr), labels], sort_keys=True)
    text = reading.shared(request.step, _text)
    return memory.digest(Read(said=(said.encode(), text)))


def digest(one: Enrolled, shared: bytes, token: Token | None) -> bytes | None:
    """Return a digest of all that the composition of a node reads; None: it is not known.

    Args:
        one: The node.
        shared: A digest of what all nodes read.
        token: Its own; only its length and generation are read.
    """
    request, record = one.request, one.record_name
    if request.memory is None or one.name not in request.desired or one.excess or one.forgotten:
        return None
    if record not in request.recorded or record in request.desired:
        return None
    if one.scoped(pipeline.REQUIRE_RECORD) in request.required:
        return None
    sought = request.lookup(one.scoped(pipeline.REQUIRE_SUBSTRATE))
    if sought.raw is not None:
        return None
    said = (one.siblings, sought.looked, None if token is None else token.generation)
    like = _like(token)
    if like is None:
        return None
    there = one.name in request.resources
    read = Read(
        said=(shared, one.name.encode(), repr((*said, like)).encode()),
        desired=(one.name,),
        observed=(one.name, record) if there else (record,),
    )
    return request.memory.digest(read)


def _like(token: Token | None) -> int | None:
    """Return the length of a token of ours; None: of another, which is never known."""
    if token is None:
        return 0
    return document.replaceable(token.plaintext)


def carried(facts: Facts, outcome: Outcome) -> tuple[Place, ...] | None:
    """Return where a substrate carries the bootstrap; None: the node is not to be known.

    While it drains, nobody says where; one that is found is soon observed.
    """
    target = facts.target
    if target is None or target.given is None or isinstance(facts.declared, Refusal):
        return None
    if facts.drain or facts.preview:
        return None
    try:
        return () if outcome.substrate is None else decorated.where(facts)
    except ContractError:
        return None


def _labels(xr: Raw, place: str) -> object:
    try:
        return fieldpath.read(xr, fieldpath.parse("labelsFrom", place))
    except ContractError:
        return None


def _text(step: Raw) -> bytes:
    return json.dumps(step, sort_keys=True).encode()
