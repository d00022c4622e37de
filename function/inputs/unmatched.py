"""Entries of an `Enrol` step that mean no resource.

Finding them, and what the XR says of them and of the machines beside them that no entry
enrols: a wrong name must not leave a machine without token and hold unsaid. Source:
docs/decisions/0009.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from function.compose import pipeline, substrate_identity
from function.contract import names
from function.contract.redaction import redacted
from function.inputs.enrol_schema import RECORD_PREFIX, EnrolInput, EnrolResource
from function.inputs.enrolled_resource import Enrolled
from function.model.call import Request, Requirement, Ttl
from function.model.objects import Raw
from function.render.fields import defaults

_TOLD_MAX: Final = 2
"""Entries that a text spells out; the others are counted."""

_QUOTED_MAX: Final = 72
"""Longest name that is shown whole, in characters."""

_LISTED_MAX: Final = 160
"""Longest list of names that is shown, in characters, unless its first alone is longer."""

_TEXT_MAX: Final = 960
"""Longest text, in characters: a condition has room for it and for a count behind it."""

_NAME_MAX: Final = 128
"""Longest name that an entry can have, in characters."""

_COMPARED_MAX: Final = 256
"""Names among which the nearest to a wrong one is sought: each takes some microseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmatched:
    """What entries that mean no resource do to the answer of their step.

    Attributes:
        refused: Whether the step is not admitted because of them.
        text: What the XR says of them; empty: nothing.
        ttl: How long an answer with them holds.
        requirements: The records that an earlier XR may have left, by requirement name.
    """

    refused: bool
    text: str
    ttl: Ttl
    requirements: Mapping[str, Requirement]


def unmatched(
    request: Request, step: EnrolInput, enrolled: Mapping[str, Enrolled], there: Collection[str]
) -> Unmatched | None:
    """Return what the entries that mean no resource do to an answer; None: all mean some.

    A star may fit none, since a pool may be scaled to zero; in a preview it may not. A name
    of which an earlier XR left the record is one that is about to be drained, and no error.

    Args:
        request: The call.
        step: Its step's input.
        enrolled: What the step means in it, by name.
        there: Names of what there is something of.
    """
    missing = {
        f"input.resources[{place}].name": entry
        for place, entry in enumerate(step.resources)
        if not entry.means_any(there)
    }
    if not missing:
        return None
    sought = {entry.name: enrolled[entry.name] for entry in missing.values() if not entry.many}
    left = {name for name, one in sought.items() if _is_left(one)}
    wrong: dict[str, EnrolResource] = {}
    empty: dict[str, EnrolResource] = {}
    for where, entry in missing.items():
        if entry.many and not request.preview:
            empty[where] = entry
        elif entry.name not in left:
            wrong[where] = entry
    requirements = dict(_record(one) for one in sought.values() if _may_be_left(one))
    return Unmatched(
        refused=bool(wrong),
        text=_text(request, step, enrolled, wrong, empty),
        ttl=Ttl.WAITING if left else Ttl.REFUSED if wrong else Ttl.STEADY,
        requirements=requirements,
    )


def _may_be_left(one: Enrolled) -> bool:
    return one.xr.project_id is not None and not one.request.preview


def _is_left(one: Enrolled) -> bool:
    """Whether an XR of this name left a record that this one does not compose."""
    found = one.request.lookup(one.scoped(pipeline.REQUIRE_RECORD)).raw
    return found is not None and not substrate_identity.is_strange(one.xr, found, one.record_key)


def _record(one: Enrolled) -> tuple[str, Requirement]:
    return one.scoped(pipeline.REQUIRE_RECORD), Requirement(
        api_version=names.API_VERSION,
        kind=names.RECORD_KIND,
        name=one.record_key,
        namespace=one.xr.namespace,
    )


def _text(
    request: Request,
    step: EnrolInput,
    enrolled: Mapping[str, Enrolled],
    wrong: Mapping[str, EnrolResource],
    empty: Mapping[str, EnrolResource],
) -> str:
    if not (wrong or empty):
        return ""
    composed = sorted(name for name in request.desired if not name.startswith(RECORD_PREFIX))
    free = _free(composed, step, enrolled)
    near = {
        where: _nearest(entry, free)
        for told in (wrong, empty)
        for where, entry in itertools.islice(told.items(), _TOLD_MAX)
    }
    said = [_fault(where, entry, near[where]) for where, entry in wrong.items() if where in near]
    said += [_note(where, entry) for where, entry in empty.items() if where in near]
    more = len(wrong) + len(empty) - len(said)
    if more:
        said.append(f"{more} more {'names mean' if more > 1 else 'name means'} none")
    machines = _unenrolled(request, enrolled, free, near.values())
    if machines:
        verbs = "exist and are" if len(machines) > 1 else "exists and is"
        said.append(f"{_listed(machines)} {verbs} not enrolled")
    if wrong:
        taken = sorted(set(composed) - set(free))
        said.append(f"earlier steps compose {_listed([*free, *taken]) or 'none'}")
    return redacted("; ".join(said))[:_TEXT_MAX]


def _fault(where: str, entry: EnrolResource, near: str | None) -> str:
    must, does = ("fit", "fits") if entry.many else ("be", "is")
    hint = "" if near is None else f" (nearest: {_quoted(near)})"
    composed = "a resource that an earlier step composes"
    return f"{where}: must {must} {composed}, and {_quoted(entry.name)} {does} none{hint}"


def _note(where: str, entry: EnrolResource) -> str:
    return f"{where}: {_quoted(entry.name)} fits no resource that an earlier step composes"


def _free(composed: Iterable[str], step: EnrolInput, enrolled: Mapping[str, Enrolled]) -> list[str]:
    """Return the composed resources that no entry means or holds."""
    meant = {name for name, one in enrolled.items() if not one.forgotten}
    held = {name for entry in step.resources for name in entry.hold}
    return [name for name in composed if name not in meant and name not in held]


def _nearest(entry: EnrolResource, free: Iterable[str]) -> str | None:
    known = [name for name in free if len(name) <= _NAME_MAX][:_COMPARED_MAX]
    found = difflib.get_close_matches(entry.name.removesuffix("*"), known, n=1)
    return found[0] if found else None


def _unenrolled(
    request: Request,
    enrolled: Mapping[str, Enrolled],
    free: Iterable[str],
    near: Iterable[str | None],
) -> list[str]:
    """Return the machines that are there, that a step composes and that no entry enrols.

    A machine is what takes user data, and what is of a kind with an enrolled resource or with
    the one of the nearest name.
    """
    first = {one.entry.name: name for name, one in enrolled.items() if name in request.desired}
    alike = {_kind(request.desired[name]) for name in (*first.values(), *near) if name is not None}
    return [
        name
        for name in free
        if name in request.resources and name not in request.held and name not in enrolled
        if (kind := _kind(request.resources[name])) in alike or defaults.takes_user_data(*kind)
    ]


def _kind(raw: Raw) -> tuple[str, str]:
    return names.group_of(str(raw.get("apiVersion", ""))), str(raw.get("kind", ""))


def _listed(shown: Sequence[str]) -> str:
    """Return names in order as far as they fit, and how many more there are."""
    quoted = [_quoted(name) for name in shown]
    ends = itertools.accumulate(len(one) + 2 for one in quoted)
    fit = max(1, sum(end <= _LISTED_MAX for end in ends))
    more = f" and {len(quoted) - fit} more" if len(quoted) > fit else ""
    return ", ".join(sorted(quoted[:fit])) + more


def _quoted(name: str) -> str:
    shown = ascii(name)
    return shown if len(shown) <= _QUOTED_MAX else f"{shown[: _QUOTED_MAX - 4]}...{shown[0]}"
