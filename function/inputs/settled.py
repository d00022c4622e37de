"""Says which nodes are settled, and what the composition of one reads.

What a settled node composed may be kept between calls, found again by its slice: the parts of
the request that its composition reads. A slice is None where a node cannot be settled.
Source: docs/decisions/0010.
"""

from __future__ import annotations

from collections.abc import Callable

from function.compose import pipeline, substrate_lookup
from function.contract import names
from function.contract.strategy import BootstrapState, MeshRole
from function.inputs.enrolled_resource import Enrolled
from function.model.call import ComposedNode, NodeSlice, Outcome, Request
from function.model.facts import Facts, Refusal
from function.model.objects import Shared

_LOOKUPS = (pipeline.REQUIRE_RECORD, pipeline.REQUIRE_SUBSTRATE, pipeline.REQUIRE_TOKEN)
"""What is looked up for a node that is still on its way."""


def composed(
    request: Request, part: NodeSlice | None, compose: Callable[[], ComposedNode | None]
) -> ComposedNode | None:
    """Return what happens to a node; it is composed unless it is kept."""
    if request.cache is None or part is None:
        return compose()
    return request.cache.composed(part, compose)


def is_settled(facts: Facts, outcome: Outcome) -> bool:
    """Whether a node goes on as it is, and nothing that it composes holds a live token."""
    record = facts.record
    if record is None or record.found or record.unreadable is not None or facts.preview:
        return False
    if isinstance(facts.declared, Refusal) or facts.drain or outcome.unrendered:
        return False
    known = facts.status
    if facts.token is not None or known.bootstrap.state is BootstrapState.ISSUED:
        return False
    came = known.node is not None or substrate_lookup.role(facts) is MeshRole.STANDALONE
    there = facts.substrate is not None
    return there and came and outcome.record is not None and outcome.substrate is not None


def enrolled_slice(one: Enrolled) -> NodeSlice | None:
    """Return what the composition of an enrolled resource reads."""
    request, record = one.request, one.record_name
    step, xr = request.step, request.xr
    if not (isinstance(step, Shared) and isinstance(xr, Shared)):
        return None
    if request.preview or one.excess or one.forgotten or record in request.desired:
        return None
    seen = request.resources
    if one.name not in request.desired or one.name not in seen or record not in seen:
        return None
    # Nothing is looked up for most.
    if request.required and any(
        one.scoped(requirement) in request.required for requirement in _LOOKUPS
    ):
        return None
    held = [(held.api_version, held.kind, held.name) for held in one.siblings]
    return NodeSlice(
        said=(step.digest, xr.digest, repr(held).encode()),
        given=(one.name,),
        observed=(one.name, record),
    )


def declared_slice(request: Request) -> NodeSlice | None:
    """Return what the composition of a `ProvisionedResource` reads."""
    ours = (names.RESOURCE_SUBSTRATE, names.RESOURCE_RECORD)
    if request.preview or any(name in request.desired for name in ours):
        return None
    if not all(name in request.resources for name in ours):
        return None
    found = sorted(request.required.items())
    read = (request.step, request.xr, *(raw for _, raw in found))
    shared = [one.digest for one in read if isinstance(one, Shared)]
    if len(shared) < len(read) or any(name in _LOOKUPS for name, _ in found):
        return None
    looked = repr([name for name, _ in found]).encode()
    return NodeSlice(said=(looked, *shared), given=(), observed=ours)
