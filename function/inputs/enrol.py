"""The input `Enrol`: resources that earlier steps composed become nodes.

Which resources a step means in a request, and the one answer for all of them. Pure.
Everything that the step does not name stays as earlier steps left it. Source: design §3.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Final

from function.compose import pipeline, siblings
from function.compose.status import merged_conditions
from function.contract import names
from function.contract.errors import ContractError
from function.contract.record import Declaration
from function.inputs import settled, unmatched
from function.inputs.enrol_schema import RECORD_PREFIX, RESOURCES_MAX, EnrolInput, EnrolResource
from function.inputs.enrolled_resource import Enrolled, declares
from function.inputs.unmatched import Unmatched
from function.model import parsing
from function.model.call import (
    Answer,
    Composed,
    ComposedNode,
    Outcome,
    Request,
    Requirement,
)
from function.model.facts import XR, Facts, Refusal
from function.model.objects import Raw, Shared, mapping, metadata

KIND: Final = "Enrol"


def answer(request: Request) -> Answer:
    """Answer one call with the input `Enrol`.

    Raises:
        ContractError: The step's input is unreadable.
    """
    step = parsing.shared(request.step, _input)
    if any(_is_record(request.desired, name) for name in request.desired):
        # This step would drain what the other one enrolled.
        raise ContractError(field="input", rule="must be the only Enrol step of its pipeline")
    xr = parsing.shared(request.xr, parsing.xr)
    enrolled = {one.name: one for one in _enrolled(step, xr, request)}
    nodes: dict[str, ComposedNode] = {}
    for name, one in enrolled.items():
        part = settled.enrolled_slice(one)
        node = settled.composed(request, part, functools.partial(_node, one))
        if node is not None:
            nodes[name] = node
    outcomes = {name: node.outcome for name, node in nodes.items()}
    resources: dict[str, Composed | None] = {}
    for node in nodes.values():
        resources |= node.resources
    holders = _holders(step, enrolled, nodes)
    for name in _left(request, enrolled):
        holders.setdefault(name, [])
    resources |= siblings.composed(xr, request, holders)
    said = merged_conditions.merged(outcomes)
    answered = Answer(
        resources=resources,
        ready=all(outcome.open for outcome in outcomes.values()),
        verdicts=said,
        status={},
        ttl=merged_conditions.ttl(request.told, (one.ttl for one in outcomes.values())),
        requirements=_requirements(enrolled, outcomes),
        notices=merged_conditions.notices(request.told, said),
    )
    missing = unmatched.unmatched(request, step, enrolled, nodes)
    return answered if missing is None else _with(answered, missing, request, outcomes.values())


def _with(
    answered: Answer, missing: Unmatched, request: Request, outcomes: Collection[Outcome]
) -> Answer:
    """Return an answer that tells of the entries that mean no resource; it drops nothing."""
    said, notices = answered.verdicts, answered.notices
    if missing.refused:
        said = merged_conditions.refused(said, outcomes, missing.text)
        # The XR's own stall is this refusal from now on, and has a notice of its own.
        notices = merged_conditions.notices(request.told, merged_conditions.unstalled(said))
        notices += merged_conditions.refusals(request.told, missing.text)
    elif missing.text:
        said = merged_conditions.noted(said, missing.text)
    return replace(
        answered,
        ready=answered.ready and not missing.refused,
        verdicts=said,
        ttl=merged_conditions.ttl(request.told, (answered.ttl, missing.ttl)),
        requirements={**answered.requirements, **missing.requirements},
        notices=notices,
    )


def _node(one: Enrolled) -> ComposedNode | None:
    """Return what happens to a resource; None where there is nothing of it."""
    facts = one.facts()
    if facts is None:
        return None
    outcome = pipeline.compose(facts, {})
    return ComposedNode(
        outcome=outcome,
        resources=_composed(one, facts, outcome),
        holds=siblings.holds(facts),
        settled=settled.is_settled(facts, outcome),
    )


def _input(step: Raw) -> EnrolInput:
    return parsing.parsed(EnrolInput, step, "input")


def _enrolled(step: EnrolInput, xr: XR, request: Request) -> Iterator[Enrolled]:
    earlier = _recorded(request)
    recorded = sorted(earlier)
    entry_of = parsing.shared(request.step, _entries)
    names_ = _candidates(step, request, earlier)
    meant = {name: entry for name in names_ if (entry := entry_of(name))}
    fresh = [name for name in meant if name not in earlier]
    excess = frozenset(fresh[max(RESOURCES_MAX - len(recorded), 0) :])
    held_names = dict.fromkeys(held for entry in meant.values() for held in entry.hold)
    there = {name: siblings.reference(xr, request, name) for name in held_names}
    declared = _declarations(request)
    for name, entry in meant.items():
        found = [there[sibling] for sibling in dict.fromkeys(entry.hold)]
        held = tuple(one for one in found if one is not None)
        yield Enrolled(
            request=request,
            step=step,
            xr=xr,
            name=name,
            entry=entry,
            declared=declared[entry.name],
            excess=name in excess,
            siblings=held,
        )
    for name in recorded:
        if name not in meant:
            first = step.resources[0]
            yield Enrolled(
                request=request,
                step=step,
                xr=xr,
                name=name,
                entry=first.model_copy(update={"name": name, "hold": ()}),
                declared=declared[first.name],
                forgotten=True,
            )


def _declarations(request: Request) -> Mapping[str, Declaration | Refusal]:
    """Return what each entry declares of a resource that it means, by the entry's name."""
    if isinstance(request.step, Shared):
        return parsing.shared(request.xr, _declared, request.step)
    return _declared(request.xr, request.step)


def _declared(raw: Raw, step: Raw) -> Mapping[str, Declaration | Refusal]:
    xr = parsing.shared(raw, parsing.xr)
    entries = parsing.shared(step, _input).resources
    return {entry.name: declares(raw, xr, entry) for entry in entries}


def _candidates(step: EnrolInput, request: Request, recorded: set[str]) -> list[str]:
    """Return the names that the step may mean, its own exact ones first, in one order."""
    exact = [entry.name for entry in step.resources if not entry.many]
    others = {name for name in request.desired if not name.startswith(RECORD_PREFIX)}
    others |= recorded
    others |= {name for name in request.held - others if _machine(request, name)}
    return [*exact, *sorted(others - set(exact))]


def _entries(raw: Raw) -> Callable[[str], EnrolResource | None]:
    """Return what finds a resource's entry: its exact one, else the first that fits."""
    step = parsing.shared(raw, _input)
    exact = {entry.name: entry for entry in step.resources}
    many = [entry for entry in step.resources if entry.many]

    def entry_of(name: str) -> EnrolResource | None:
        return exact.get(name) or next((entry for entry in many if entry.means(name)), None)

    return entry_of


def _recorded(request: Request) -> set[str]:
    """Return the resources of which this XR composes a record."""
    return {
        name.removeprefix(RECORD_PREFIX)
        for name in request.recorded
        if name.startswith(RECORD_PREFIX)
    }


def _is_record(objects: Mapping[str, Raw], name: str) -> bool:
    return name.startswith(RECORD_PREFIX) and objects[name].get("kind") == names.RECORD_KIND


def _composed(one: Enrolled, facts: Facts, outcome: Outcome) -> dict[str, Composed | None]:
    made: dict[str, Composed | None] = {one.name: None}
    if outcome.substrate is not None:
        # Its step, or a later one, says whether it is ready; without a step nobody would.
        ready = True if facts.drain else None
        made[one.name] = Composed(manifest=outcome.substrate.manifest, ready=ready)
    if outcome.record is not None and one.record_name not in one.request.desired:
        made[one.record_name] = Composed(manifest=outcome.record.manifest, ready=outcome.open)
    return made


def _holders(
    step: EnrolInput, enrolled: Mapping[str, Enrolled], nodes: Mapping[str, ComposedNode]
) -> dict[str, list[bool]]:
    """Return of each sibling whether those that name it hold it by now."""
    holders: dict[str, list[bool]] = {name: [] for entry in step.resources for name in entry.hold}
    for name, node in nodes.items():
        for sibling in enrolled[name].entry.hold:
            holders[sibling].append(node.holds)
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
