"""What the cloud does next, over every combination of what it can see."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import yaml

from dev.cloud import machine as machines
from dev.cloud.machine import Fault, Faults, Machine, Phase, State, Step

NOW = 1000.0
CLOUD = Path(machines.__file__).parent


def machine(
    *,
    deleting: bool = False,
    claimed: bool = True,
    paused: bool = False,
    faults: Faults | None = None,
) -> Machine:
    return Machine(
        uid="u-1",
        namespace="ns",
        name="web",
        generation=1,
        resource_version="5",
        deleting=deleting,
        claimed=claimed,
        paused=paused,
        faults=faults or Faults(),
        instance_type="s",
        region="eu",
        finalizers=(machines.FINALIZER,) if claimed else (),
    )


def state(phase: Phase, *, due_at: float = 0.0, exit_code: int | None = None) -> State:
    return State(machine_id="i-1", phase=phase, created_at="", due_at=due_at, exit_code=exit_code)


ALL_MACHINES = [
    machine(
        deleting=deleting,
        claimed=claimed,
        paused=paused,
        faults=Faults(create=create, boot=boot, delete=delete),
    )
    for deleting, claimed, paused, boot, create, delete in itertools.product(
        *[(False, True)] * 4, (None, *Fault), (None, Fault.HANG, Fault.FAIL)
    )
]
ALL_STATES = [
    None,
    *(
        state(phase, due_at=due_at, exit_code=code)
        for phase, due_at, code in itertools.product(Phase, (NOW - 1, NOW + 1), (None, 0, 1))
    ),
]


def every_decision() -> list[tuple[Machine, State | None, bool, machines.Decision]]:
    return [
        (one, known, running, machines.decide(one, known, running=running, now=NOW))
        for one, known, running in itertools.product(ALL_MACHINES, ALL_STATES, (False, True))
    ]


def test_a_machine_is_destroyed_only_when_nothing_of_it_runs_and_its_time_is_over() -> None:
    for one, known, running, decision in every_decision():
        if decision.step is Step.DESTROY:
            assert known is not None
            assert one.deleting
            assert not running
            assert known.due_at <= NOW
            assert one.faults.delete is None


def test_the_finalizer_goes_only_when_there_is_nothing_left() -> None:
    for one, known, _running, decision in every_decision():
        if decision.step is Step.RELEASE:
            assert one.deleting
            assert known is None or known.phase in {Phase.FAILED, Phase.DELETED}


def test_nothing_happens_to_a_paused_machine() -> None:
    steps = {decision.step for one, _, _, decision in every_decision() if one.paused}

    assert steps == {Step.NONE}


def test_a_machine_that_is_being_deleted_is_never_created_or_started() -> None:
    forbidden = {Step.CLAIM, Step.CREATE, Step.REFUSE, Step.BOOT, Step.POWER_ON}

    for one, _known, _running, decision in every_decision():
        assert not (one.deleting and decision.step in forbidden)


def test_a_machine_that_is_not_being_deleted_is_never_ended() -> None:
    forbidden = {Step.BEGIN_DELETE, Step.POWER_OFF, Step.DESTROY, Step.RELEASE, Step.FAIL_DELETE}

    for one, _known, _running, decision in every_decision():
        assert one.deleting or decision.step not in forbidden


@pytest.mark.parametrize(
    ("one", "known", "running", "step", "look_again_s"),
    [
        pytest.param(machine(claimed=False), None, False, Step.CLAIM, 0, id="finalizer first"),
        pytest.param(machine(), None, False, Step.CREATE, 0, id="then the cloud"),
        pytest.param(
            machine(faults=Faults(create=Fault.FAIL)),
            None,
            False,
            Step.REFUSE,
            0,
            id="quota used up",
        ),
        pytest.param(
            machine(), state(Phase.CREATING, due_at=NOW + 2), False, Step.NONE, 2, id="takes time"
        ),
        pytest.param(machine(), state(Phase.CREATING), False, Step.BOOT, 0, id="created"),
        pytest.param(
            machine(faults=Faults(create=Fault.HANG)),
            state(Phase.CREATING),
            False,
            Step.NONE,
            None,
            id="never comes up",
        ),
        pytest.param(machine(), state(Phase.BOOTING), False, Step.POWER_ON, 0, id="booting"),
        pytest.param(
            machine(), state(Phase.BOOTING), True, Step.POWER_ON, 0, id="came up unobserved"
        ),
        pytest.param(
            machine(), state(Phase.RUNNING, exit_code=0), False, Step.POWER_ON, 0, id="died"
        ),
        pytest.param(machine(), state(Phase.RUNNING), True, Step.NONE, 0.25, id="document runs"),
        pytest.param(
            machine(), state(Phase.RUNNING, exit_code=1), True, Step.NONE, None, id="settled"
        ),
        pytest.param(
            machine(faults=Faults(boot=True)),
            state(Phase.RUNNING),
            True,
            Step.NONE,
            None,
            id="its document never runs",
        ),
        pytest.param(machine(), state(Phase.FAILED), False, Step.NONE, None, id="refused for good"),
        pytest.param(
            machine(deleting=True),
            state(Phase.RUNNING),
            True,
            Step.BEGIN_DELETE,
            0,
            id="deletion asked for",
        ),
        pytest.param(
            machine(deleting=True),
            state(Phase.DELETING, due_at=NOW + 2),
            True,
            Step.POWER_OFF,
            0,
            id="power goes first",
        ),
        pytest.param(
            machine(deleting=True),
            state(Phase.DELETING, due_at=NOW + 2),
            False,
            Step.NONE,
            2,
            id="deletion takes time",
        ),
        pytest.param(
            machine(deleting=True, faults=Faults(delete=Fault.HANG)),
            state(Phase.DELETING),
            True,
            Step.NONE,
            machines.DELETE_RETRY_S,
            id="deletion hangs, machine runs",
        ),
        pytest.param(
            machine(deleting=True, faults=Faults(delete=Fault.FAIL)),
            state(Phase.DELETING),
            True,
            Step.FAIL_DELETE,
            machines.DELETE_RETRY_S,
            id="deletion fails, machine runs",
        ),
        pytest.param(
            machine(deleting=True), state(Phase.DELETED), False, Step.RELEASE, None, id="all gone"
        ),
    ],
)
def test_the_next_step(
    one: Machine, known: State | None, running: bool, step: Step, look_again_s: float | None
) -> None:
    decision = machines.decide(one, known, running=running, now=NOW)

    assert (decision.step, decision.look_again_s) == (step, look_again_s)


@pytest.mark.parametrize(
    ("annotations", "tags", "faults"),
    [
        ({}, {}, Faults()),
        ({f"{machines.GROUP}/create": "fail"}, {}, Faults(create=Fault.FAIL)),
        ({}, {"demo-create": "fail"}, Faults(create=Fault.FAIL)),
        ({}, {"demo-create": "hang"}, Faults(create=Fault.HANG)),
        ({f"{machines.GROUP}/boot": "never"}, {}, Faults(boot=True)),
        ({}, {"demo-boot": "never"}, Faults(boot=True)),
        ({f"{machines.GROUP}/delete": "hang"}, {}, Faults(delete=Fault.HANG)),
        ({}, {"demo-delete": "fail"}, Faults(delete=Fault.FAIL)),
        ({f"{machines.GROUP}/delete": "no"}, {"demo-delete": "fail"}, Faults()),
    ],
)
def test_faults_come_from_annotations_before_tags(
    annotations: dict[str, str], tags: dict[str, str], faults: Faults
) -> None:
    read = machines.read(
        {
            "metadata": {"uid": "u", "namespace": "n", "name": "m", "annotations": annotations},
            "spec": {"forProvider": {"tags": tags}},
        }
    )

    assert read.faults == faults


def documents(name: str) -> list[Any]:
    return list(yaml.safe_load_all((CLOUD / name).read_text()))


def test_the_crd_says_what_the_provider_speaks_of() -> None:
    (crd,) = documents("crd.yaml")
    (version,) = crd["spec"]["versions"]
    status = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]

    assert crd["metadata"]["name"] == f"{machines.PLURAL}.{machines.GROUP}"
    assert crd["spec"]["group"] == machines.GROUP
    assert version["name"] == machines.VERSION
    shown = set(status["atProvider"]["properties"]["state"]["enum"])
    assert shown == {phase.value for phase in Phase} - {"failed", "deleted"}
    assert "userData" not in yaml.safe_dump(status)


def test_crossplane_may_compose_machines_and_the_provider_may_do_no_more_than_it_does() -> None:
    roles = {item["metadata"]["name"]: item for item in documents("rbac.yaml")[1:]}

    aggregated = roles["demo-cloud-compose"]
    assert aggregated["metadata"]["labels"] == {
        "rbac.crossplane.io/aggregate-to-crossplane": "true"
    }
    assert {rule["apiGroups"][0] for rule in aggregated["rules"]} == {machines.GROUP}
    verbs = {verb for rule in documents("rbac.yaml")[1]["rules"] for verb in rule["verbs"]}
    assert verbs == {"get", "list", "watch", "patch", "create"}
