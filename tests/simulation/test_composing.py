"""The model of the function answers as the function does, wherever simulated lives lead."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from function.contract import names
from function.contract.registration import Registration
from tests.simulation import real_function
from tests.simulation.cluster import controller_of
from tests.simulation.composing import Composed, Seen
from tests.simulation.given import plan, world
from tests.simulation.ground import RECREATE
from tests.simulation.schedule import Kind, draw
from tests.simulation.world import play

WORLDS: Final = (
    *map(draw, range(6000, 6004)),
    world(plan(Kind.SLOW_PIPELINE, 50.0), plan(Kind.DELETE_RECORD, 60.0)),
    world(plan(Kind.DELETE_ORPHAN, 60.0), plan(Kind.FLAPS, 20.0)),
    world(plan(Kind.BREAK_GLASS, 60.0), plan(Kind.CREATE_FAILS, 0.0, 40.0)),
)

STAGES: Final = {"record-only", "create", "sustain", "absent", "terminating", "held"}
"""Those that a life comes through, and those that only a fault leads to."""


def answer(seen: Seen, *, xr_uid: str) -> dict[str, Any]:
    """Return what the real function composes, as the model says it."""
    assert seen.record is None or seen.declaration is not None
    ours = seen.record is not None and controller_of(seen.record) == xr_uid
    outcome = real_function.ask(seen, composes_record=ours)
    record, substrate = outcome.record, outcome.substrate
    metadata = {} if substrate is None else substrate.manifest["metadata"]
    stamp = (metadata.get("annotations") or {}).get(names.ANNOTATION_GENERATION)
    return {
        "spec": None if record is None else _resolved(record.manifest["spec"]),
        "substrate": metadata.get("name"),
        "generation": None if stamp is None else int(stamp),
    }


def model(seen: Seen, composed: Composed) -> dict[str, Any]:
    """Return what the model composes, in the same words."""
    born, kept = composed.born, composed.kept
    generation = None
    if composed.substrate is not None:
        generation = born.generation if born is not None else kept.generation if kept else None
    spec = None if composed.record is None else _resolved(composed.record)
    return {"spec": spec, "substrate": composed.substrate, "generation": generation}


def _resolved(spec: dict[str, Any]) -> dict[str, Any]:
    """Return a record's spec without who said what; the model knows what came of it alone."""
    said = {"registration", "given"}
    declaration = {k: v for k, v in spec["declaration"].items() if k not in said}
    return {**spec, "declaration": declaration}


def test_the_model_answers_as_the_function_does_in_simulated_lives() -> None:
    stages: Counter[str] = Counter()
    differing: list[tuple[str, Any, Any]] = []

    def compare(_: str, seen: Seen, composed: Composed) -> None:
        if seen.declaration is None:
            return
        stages[composed.stage] += 1
        said, really = model(seen, composed), answer(seen, xr_uid=seen.declaration["xr"]["uid"])
        if said != really:
            differing.append((composed.stage, said, really))

    for schedule in WORLDS:
        assert play(schedule, observer=compare).breach is None

    assert differing == []
    assert set(stages) >= STAGES, stages


def test_the_policy_of_a_simulated_xr_is_one_that_a_blueprint_may_have() -> None:
    assert Registration.model_validate(RECREATE["registration"]).attempts == 5
