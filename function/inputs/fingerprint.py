"""What is known of nodes that stay as they are, so that they are not composed anew.

An XR is reconciled because something changed, and of most of its nodes nothing that their
composition reads: a digest of that leads to what was composed. What a composition reads,
and which nodes may be known.

Nothing secret is known: of what is composed the bootstrap is left out, to be copied from
what is observed or rendered with the node's own token.
Source: issue "Speed"; docs/decisions/0010.
"""

from __future__ import annotations

import functools
import json
from typing import Final

from function.compose import enrolled_substrate, pipeline
from function.contract import names
from function.contract.errors import ContractError
from function.inputs.enrol_schema import EnrolInput
from function.inputs.enrolled_resource import Enrolled, retry
from function.model.call import Digest, Outcome, Place, Read, Request
from function.model.facts import XR, Facts, Refusal, Token
from function.model.objects import Raw, Shared
from function.render.documents import template
from function.render.fields import fieldpath, inject

_PATHS_MAX: Final = 128
"""Places of labels that are remembered; a step's author names them."""


def common(request: Request, step: EnrolInput, xr: XR) -> bytes | None:
    """Return what all nodes of a call read; None: nothing is known of any."""
    if request.memory is None or request.preview:
        return None
    places = {entry.labels_from for entry in step.resources if entry.labels_from is not None}
    labels = [(place, _labels(request.xr, place)) for place in sorted(places)]
    who = (xr.api_version, xr.kind, xr.name, xr.namespace, xr.uid, retry(request.xr))
    return repr((who, labels, _bytes(request.step))).encode()


def digest_enrolled(one: Enrolled, shared: bytes, token: Token | None) -> Digest | None:
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


def digest_declared(request: Request, token: Token | None) -> Digest | None:
    """Return a digest of all that is read for a `ProvisionedResource`; None: it is not known.

    Args:
        request: The call.
        token: Its own; only its length and generation are read.
    """
    record, like = names.RESOURCE_RECORD, _like(token)
    if request.memory is None or request.preview or like is None:
        return None
    # What an earlier step composed under our names is what ours is written from.
    if not {record, names.RESOURCE_SUBSTRATE}.isdisjoint(request.desired):
        return None
    if record not in request.recorded or pipeline.REQUIRE_RECORD in request.required:
        return None
    sought = request.lookup(pipeline.REQUIRE_SUBSTRATE)
    seen = [request.xr, request.step]
    looked: dict[str, bool] = {}
    for name in sorted(request.required.keys() - {pipeline.REQUIRE_TOKEN}):
        found = request.required[name]
        looked[name] = found is not None
        if found is not None:
            seen.append(found)
    if sought.raw is not None or not all(isinstance(one, Shared) for one in seen):
        return None
    there = names.RESOURCE_SUBSTRATE in request.resources
    said = (looked, None if token is None else token.generation, like)
    read = Read(
        said=(repr(said).encode(), *map(_bytes, seen)),
        observed=(names.RESOURCE_SUBSTRATE, record) if there else (record,),
    )
    return request.memory.digest(read)


def places_declared(facts: Facts, outcome: Outcome) -> tuple[Place, ...] | None:
    """Return where the substrate of a `ProvisionedResource` carries the bootstrap.

    None: the node is not to be known.
    """
    if isinstance(facts.declared, Refusal) or facts.preview or outcome.unrendered:
        return None
    if outcome.substrate is None:
        return ()
    # Its Composition says whether the field at the end takes base64.
    return tuple((path, False) for path in inject.observed(outcome.substrate.manifest))


def places_enrolled(facts: Facts, outcome: Outcome) -> tuple[Place, ...] | None:
    """Return where a substrate carries the bootstrap; None: the node is not to be known.

    While it drains, nobody says where; one that is found is soon observed.
    """
    target = facts.target
    if target is None or target.given is None or isinstance(facts.declared, Refusal):
        return None
    # What could not be rendered is read from the whole object, of which a part is digested.
    if facts.drain or facts.preview or outcome.unrendered:
        return None
    try:
        return () if outcome.substrate is None else enrolled_substrate.where(facts)
    except ContractError:
        return None


def _like(token: Token | None) -> int | None:
    """Return the length of a token of ours; None: of another, which is never known."""
    if token is None:
        return 0
    return template.replaceable(token.plaintext)


def _labels(xr: Raw, place: str) -> object:
    try:
        found = fieldpath.read(xr, _path(place))
    except ContractError:
        return None
    # Crossplane sends a map in any order.
    return sorted(found.items()) if isinstance(found, dict) else found


@functools.lru_cache(maxsize=_PATHS_MAX)
def _path(place: str) -> fieldpath.Path:
    return fieldpath.parse("labelsFrom", place)


def _bytes(raw: Raw) -> bytes:
    return raw.digest if isinstance(raw, Shared) else json.dumps(raw, sort_keys=True).encode()
