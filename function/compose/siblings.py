"""Composes the objects that must outlive a node: its network, its volume.

Which siblings are composed, and that they are held. A sibling is composed only after a
record that lists it was accepted: nobody would ever release one that no record knows.
Source: design §3, `hold`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from function.compose import last_applied, substrate_identity
from function.contract import names
from function.contract.record import SubstrateReference
from function.contract.strategy import SubstrateState
from function.model import parsing
from function.model.call import Composed, Request
from function.model.facts import XR, Facts
from function.model.objects import Raw, mapping, metadata


def reference(xr: XR, request: Request, name: str) -> SubstrateReference | None:
    """Return what a sibling is or will be; None where nobody composes one of that name.

    Raises:
        StrangerError: Another object stands under its name.
    """
    substrate_identity.judge_sibling(xr, request, name)
    raw = request.resources.get(name) or request.desired.get(name)
    if raw is None:
        return None
    called = metadata(raw).get("name") or _own_name(xr, name)
    what = {"apiVersion": raw.get("apiVersion"), "kind": raw.get("kind"), "name": called}
    return parsing.readable(SubstrateReference, what)


def composed(
    xr: XR, request: Request, holders: Mapping[str, Sequence[bool]]
) -> dict[str, Composed | None]:
    """Return what to compose of the siblings; one that is missing stays as it was given.

    Args:
        xr: The composite.
        request: The call.
        holders: By sibling: of each resource that names it, whether it holds it by now.
    """
    made: dict[str, Composed | None] = {}
    for name, holding in holders.items():
        given, live = request.desired.get(name), request.resources.get(name)
        wanted = any(holding)
        if live is not None and (wanted or _held(live)):
            base = (
                last_applied.last_applied(request.whole.get(name, live)) if given is None else given
            )
            made[name] = Composed(manifest=_marked(base, None), ready=None)
        elif live is None and given is not None and holding:
            # Without anybody to hold it yet, a machine may be waiting for it to be there.
            fresh = Composed(manifest=_marked(given, _own_name(xr, name)), ready=None)
            made[name] = fresh if wanted else None
    return made


def holds(facts: Facts) -> bool:
    """Whether a node holds its siblings: its record that lists them is accepted."""
    known = facts.status
    accepted = known.accepted is not None and known.substrate is SubstrateState.PRESENT
    return facts.preview or (accepted and facts.record is not None and not facts.record.terminating)


def _held(live: Raw) -> bool:
    return mapping(metadata(live).get("labels")).get(names.LABEL_HOLD) == "true"


def _marked(base: Raw, name: str | None) -> dict[str, Any]:
    manifest = dict(base)
    head = dict(metadata(manifest))
    if name is not None:
        head["name"] = head.get("name") or name
    head["labels"] = {**mapping(head.get("labels")), names.LABEL_HOLD: "true"}
    return {**manifest, "metadata": head}


def _own_name(xr: XR, name: str) -> str:
    """Name a sibling that its step left without a name, before it may be composed."""
    group = names.group_of(xr.api_version)
    return names.record_name(group=group, kind=xr.kind, name=xr.name, resource=name)
