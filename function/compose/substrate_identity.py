"""Checks that an observed object is the one composed under its name.

Crossplane observes what `spec.crossplane.resourceRefs` of an XR names and nobody else controls,
under the name in the object's own annotation. Both are written by who may edit the XR and the
object, and whatever is composed under that name gets the observed object's name, or, where
nothing is composed, the object is deleted. So another object under a name of ours ends the run:
then nothing is made, renamed, held or deleted.

The comparison. Source: Crossplane core, `ExistingComposedResourceObserver`,
`FunctionComposer.Compose`; docs/decisions/0022.
"""

from __future__ import annotations

from typing import Final

from function.contract import names
from function.contract.conditions import ConditionType, DesiredCondition, Reason
from function.contract.errors import ContractError
from function.contract.record import SubstrateReference
from function.contract.redaction import redacted
from function.model import parsing
from function.model.call import Lookup, Request
from function.model.facts import XR, Facts
from function.model.objects import Raw, mapping, metadata, terminating

_RECORD: Final = (names.GROUP, names.RECORD_KIND)

_QUOTED_MAX: Final = 253
"""Longest name that is quoted, in characters: the longest that an object can have."""

_NAMED: Final = (
    "another object has that name in its annotation crossplane.io/composition-resource-name: "
    "remove it from spec.crossplane.resourceRefs, or delete it"
)
_ANOTHERS: Final = "the object of that name belongs to another composite resource: delete it"
_PREPARED: Final = "the object of that name has no hold label for this record: delete it"

What = tuple[str, object]
"""Group and kind; a version may follow the provider's."""


class StrangerError(ContractError):
    """The object that is observed under a composed resource's name is another one.

    Its message quotes names of objects, cut to length.
    """

    def __init__(self, *, resource: str, must: str, instead: str = _NAMED) -> None:
        super().__init__(
            field=f"observed resource {_quoted(resource)!r}",
            rule=f"must be {_quoted(must)}; {instead}",
            reason=Reason.NOT_COMPOSED_HERE,
        )

    @property
    def verdict(self) -> DesiredCondition:
        """What the composite says of it."""
        kind = ConditionType.ADMITTED
        return DesiredCondition(type=kind, status=False, reason=self.reason, message=str(self))


def judge_record(xr: XR, raw: Raw | None, found: Lookup, *, resource: str, key: str) -> None:
    """Take as the record only what this XR composes, or an earlier one of this name left.

    Args:
        xr: The composite.
        raw: What is observed; None: nothing.
        found: What was looked up by the record's name. An earlier XR's has its uid until it goes.
        resource: Its name among the composed resources.
        key: The name that the record gets.

    Raises:
        StrangerError: It is another object, or another composite's.
    """
    must = f"{names.RECORD_KIND} {key!r}"
    if raw is not None:
        named = _what(raw) == _RECORD and metadata(raw).get("name") == key
        if not (named and _is_controlled(xr, raw)):
            raise StrangerError(resource=resource, must=must)
    if found.raw is not None and not _is_namesakes(xr, found.raw):
        raise StrangerError(resource=resource, must=must, instead=_ANOTHERS)


def is_strange(xr: XR, found: Raw, key: str) -> bool:
    """Whether an object of an enrolled resource's name belongs to somebody else.

    Args:
        xr: The composite.
        found: What was looked up.
        key: The name of the resource's record.
    """
    labelled = mapping(metadata(found).get("labels")).get(names.LABEL_RECORD)
    return labelled not in {None, key} or not _is_namesakes(xr, found)


def judge_substrate(facts: Facts) -> None:
    """Take what is observed as the substrate only if it is the one that this XR composes.

    Raises:
        StrangerError: It is another object.
    """
    live = facts.substrate
    if live is None:
        return
    declared = facts.target is None
    same = _is_declared(facts, live) if declared else _is_enrolled(facts, live)
    if not (same and _is_controlled(facts.xr, live)):
        raise StrangerError(resource=facts.resource, must=_expected(facts))


def judge_adopted(facts: Facts) -> None:
    """Adopt a substrate that was looked up only if it is held for this record.

    Its name is told as soon as a declaration is accepted, and whoever may make objects of its
    kind could make one before the pipeline does.

    Raises:
        StrangerError: It is not.
    """
    found = facts.sought.raw
    if found is not None and not terminating(found) and not _is_marked(facts, found):
        raise StrangerError(resource=facts.resource, must=_expected(facts), instead=_PREPARED)


def judge_sibling(xr: XR, request: Request, name: str) -> None:
    """Take what is observed as a sibling only if it is what its step composes, if one does.

    A held one may have got its name before its step gave it another: what is there keeps its own.

    Raises:
        StrangerError: It is another object.
    """
    live, given = request.resources.get(name), request.desired.get(name)
    if live is None or given is None:
        return
    held = mapping(metadata(live).get("labels")).get(names.LABEL_HOLD) == "true"
    if not (_is_given(given, live, named=not held) and _is_controlled(xr, live)):
        raise StrangerError(resource=name, must=_named(given.get("kind"), _name(given)))


def _is_declared(facts: Facts, live: Raw) -> bool:
    name, expected, marked = _name(live), facts.status.xr_name, _is_marked(facts, live)
    if expected is None:
        # Nobody says what it is called: the record was lost.
        return marked and names.provisioned_resource_id(name) is not None
    kinds = _kinds(facts, name)
    return name == expected and (marked or not kinds or _what(live) in kinds)


def _kinds(facts: Facts, name: str) -> set[What]:
    """Return what a substrate may be; empty: nobody says."""
    kinds: set[What] = set()
    listed = _listed(facts)
    if listed is not None and listed.name == name:
        kinds.add((names.group_of(listed.api_version), listed.kind))
    if facts.blueprint is not None:
        xr = facts.blueprint.xr
        kinds.add((names.group_of(xr.api_version), xr.kind))
    return kinds


def _is_enrolled(facts: Facts, live: Raw) -> bool:
    if _is_marked(facts, live):
        return True
    listed = _listed(facts)
    if listed is not None and listed.name:
        what = names.group_of(listed.api_version), listed.kind
        return _what(live) == what and _name(live) == listed.name
    given = None if facts.target is None else facts.target.given
    return given is None or _is_given(given, live)


def _is_marked(facts: Facts, live: Raw) -> bool:
    """Whether it is held for this record: tenants put the hold on nothing."""
    labels = mapping(metadata(live).get("labels"))
    held = labels.get(names.LABEL_HOLD) == "true"
    return held and labels.get(names.LABEL_RECORD) == facts.record_key


def _is_given(given: Raw, live: Raw, *, named: bool = True) -> bool:
    if not (given.get("apiVersion") and given.get("kind")):
        return True
    return _what(given) == _what(live) and (not named or _name(given) in {"", _name(live)})


def _expected(facts: Facts) -> str:
    listed = _listed(facts)
    kind: object = None if listed is None else listed.kind
    name = "" if listed is None else listed.name
    if facts.target is None:
        kind = kind if facts.blueprint is None else facts.blueprint.xr.kind
        name = facts.status.xr_name or ""
    elif facts.target.given is not None and not name:
        kind, name = facts.target.given.get("kind"), _name(facts.target.given)
    return _named(kind, name)


def _quoted(text: str) -> str:
    return redacted(text)[:_QUOTED_MAX]


def _named(kind: object, name: str) -> str:
    what = kind if isinstance(kind, str) and kind else "an object"
    return f"{what} {name!r}" if name else f"{what} that this XR composed"


def _listed(facts: Facts) -> SubstrateReference | None:
    """Return what the record says the substrate is."""
    entries = facts.recorded.get("substrate")
    first = entries[:1] if isinstance(entries, list) else []
    return parsing.readable(SubstrateReference, first[0]) if first else None


def _is_controlled(xr: XR, raw: Raw) -> bool:
    """Whether nobody else controls it; who lost its controller is adopted again.

    A composite that was written for `crossplane render` may have no uid.
    """
    return not xr.uid or all(owner.get("uid") == xr.uid for owner in _controllers(raw))


def _is_namesakes(xr: XR, raw: Raw) -> bool:
    """Whether it has no controller, or one of this XR's kind and name."""
    return all(
        (owner.get("kind"), owner.get("name")) == (xr.kind, xr.name) for owner in _controllers(raw)
    )


def _controllers(raw: Raw) -> list[Raw]:
    owners = metadata(raw).get("ownerReferences")
    read = [mapping(owner) for owner in owners] if isinstance(owners, list) else []
    return [owner for owner in read if owner.get("controller") is True]


def _what(raw: Raw) -> What:
    return names.group_of(str(raw.get("apiVersion", ""))), raw.get("kind")


def _name(raw: Raw) -> str:
    name = metadata(raw).get("name")
    return name if isinstance(name, str) else ""
