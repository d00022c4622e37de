"""The input `Enrol`: resources that earlier steps composed become nodes.

Belongs here: which resources a step means in a request, and the one answer for all of them.
Not here: what is composed of each (`function.compose`). Pure. Everything that the step does
not name stays as earlier steps left it. Source: design §3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from function.compose import joint, pipeline, reading, siblings
from function.compose.call import Answer, Composed, Outcome, Request, Requirement
from function.compose.enrol_input import (
    RECORD_PREFIX,
    RESOURCES_MAX,
    EnrolInput,
    EnrolResource,
)
from function.compose.enrolled import Enrolled
from function.compose.facts import Facts
from function.compose.raw import Raw, mapping, metadata
from function.contract import names
from function.contract.errors import ContractError

KIND: Final = "Enrol"


def answer(request: Request) -> Answer:
    """Answer one call with the input `Enrol`.

    Raises:
        ContractError: The step's input is unreadable.
    """
    step = reading.parsed(EnrolInput, request.step, "input")
    if any(_is_record(request.desired, name) for name in request.desired):
        # This step would drain what the other one enrolled.
        raise ContractError(field="input", rule="must be the only Enrol step of its pipeline")
    enrolled = {one.name: one for one in _enrolled(step, request)}
    facts = {name: one.facts() for name, one in enrolled.items()}
    present = {name: found for name, found in facts.items() if found is not None}
    outcomes = {name: pipeline.compose(found, {}) for name, found in present.items()}
    resources: dict[str, Composed | None] = {}
    for name, outcome in outcomes.items():
        resources |= _composed(enrolled[name], present[name], outcome)
    holders = _holders(step, present)
    for name in _left(request, enrolled):
        holders.setdefault(name, [])
    resources |= siblings.composed(reading.xr(request.xr), request, holders)
    said = joint.verdicts(outcomes)
    return Answer(
        resources=resources,
        ready=all(outcome.open for outcome in outcomes.values()),
        verdicts=said,
        status={},
        ttl=joint.ttl(outcomes.values()),
        requirements=_requirements(enrolled, outcomes),
        notices=joint.notices(request.xr, said),
    )


def _enrolled(step: EnrolInput, request: Request) -> Iterator[Enrolled]:
    xr = reading.xr(request.xr)
    recorded = sorted(_recorded(request))
    meant = {name: entry for name in _candidates(step, request) if (entry := _entry(step, name))}
    fresh = [name for name in meant if name not in recorded]
    excess = frozenset(fresh[max(RESOURCES_MAX - len(recorded), 0) :])
    for name, entry in meant.items():
        held_names = dict.fromkeys(entry.hold)
        found = [siblings.reference(xr, request, sibling) for sibling in held_names]
        held = tuple(one for one in found if one is not None)
        yield Enrolled(
            request=request,
            step=step,
            xr=xr,
            name=name,
            entry=entry,
            excess=name in excess,
            siblings=held,
        )
    for name in recorded:
        if name not in meant:
            entry = step.resources[0].model_copy(update={"name": name, "hold": ()})
            yield Enrolled(
                request=request, step=step, xr=xr, name=name, entry=entry, forgotten=True
            )


def _candidates(step: EnrolInput, request: Request) -> list[str]:
    """Return the names that the step may mean, its own exact ones first, in one order."""
    exact = [entry.name for entry in step.resources if not entry.many]
    others = {name for name in request.desired if not name.startswith(RECORD_PREFIX)}
    others |= _recorded(request)
    others |= {name for name in request.held - others if _machine(request, name)}
    return [*exact, *sorted(others - set(exact))]


def _entry(step: EnrolInput, name: str) -> EnrolResource | None:
    """Return the entry that means a resource: its exact one, else the first that fits."""
    exact = (entry for entry in step.resources if entry.name == name)
    fits = (entry for entry in step.resources if entry.means(name))
    return next(exact, None) or next(fits, None)


def _recorded(request: Request) -> set[str]:
    """Return the resources of which this XR composes a record."""
    return {
        name.removeprefix(RECORD_PREFIX)
        for name in request.resources
        if _is_record(request.resources, name)
    }


def _is_record(objects: Mapping[str, Raw], name: str) -> bool:
    return name.startswith(RECORD_PREFIX) and objects[name].get("kind") == names.RECORD_KIND


def _composed(one: Enrolled, facts: Facts, outcome: Outcome) -> dict[str, Composed | None]:
    substrate = outcome.substrate
    if substrate is not None:
        # Its step, or a later one, says whether it is ready; without a step nobody would.
        ready = True if facts.drain else None
        substrate = replace(substrate, ready=ready)
    made = {one.name: substrate}
    if outcome.record is not None and one.record_name not in one.request.desired:
        made[one.record_name] = replace(outcome.record, ready=outcome.open)
    return made


def _holders(step: EnrolInput, present: Mapping[str, Facts]) -> dict[str, list[Facts]]:
    """Return who holds each sibling."""
    holders: dict[str, list[Facts]] = {held: [] for entry in step.resources for held in entry.hold}
    for name, facts in present.items():
        entry = _entry(step, name)
        for held in () if entry is None else entry.hold:
            holders[held].append(facts)
    return holders


def _left(request: Request, enrolled: Mapping[str, Enrolled]) -> list[str]:
    """Return the siblings that no entry names any more; the reconciler has yet to let go."""
    return sorted(name for name in request.held - enrolled.keys() if not _machine(request, name))


def _machine(request: Request, name: str) -> bool:
    """Whether an observed resource was enrolled, and is not what such a one needs."""
    return names.LABEL_RECORD in mapping(metadata(request.resources[name]).get("labels"))


def _requirements(
    enrolled: Mapping[str, Enrolled], outcomes: Mapping[str, Outcome]
) -> dict[str, Requirement]:
    return {
        enrolled[name].scoped(requirement): wanted
        for name, outcome in outcomes.items()
        for requirement, wanted in outcome.requirements.items()
    }
