"""A name of an `Enrol` step that means no resource is told, and leaves nothing unsaid."""

from __future__ import annotations

from typing import Any

import pytest
from crossplane.function.proto.v1 import run_function_pb2 as fnv1

from function import fn
from function.compose.status.conditions import MESSAGE_MAX
from function.contract.strategy import Phase
from tests.unit.function import given
from tests.unit.function.enrol_world import World, entry, server

Object = dict[str, Any]

NETWORK: Object = {"apiVersion": "hcloud.example.org/v1alpha1", "kind": "Network"}
BOX: Object = {"apiVersion": "machines.example.org/v1", "kind": "Box", "spec": {"size": "small"}}


def admitted(answer: fnv1.RunFunctionResponse) -> tuple[str, str, str]:
    (found,) = (one for one in answer.conditions if one.type == "Admitted")
    return fnv1.Status.Name(found.status).rpartition("_")[2], found.reason, found.message


def fronts(*names: str, **more: Object) -> World:
    """A world whose steps compose a front and a network, and whose entries have these names."""
    return World(*map(entry, names), **{"front-0": server(), "network": NETWORK}, **more)


def wire(answer: fnv1.RunFunctionResponse) -> bytes:
    return answer.SerializeToString(deterministic=True)


def told(world: World, answer: fnv1.RunFunctionResponse) -> None:
    """Be Crossplane that writes the conditions onto the XR."""
    conditions = [
        given.condition(
            one.type,
            fnv1.Status.Name(one.status).rpartition("_")[2].title(),
            one.reason,
            one.message,
        )
        for one in answer.conditions
    ]
    world.xr["status"] = {"conditions": conditions}


def test_an_exact_name_that_nobody_composes_is_refused_and_the_xr_is_not_ready() -> None:
    answer = fronts("front0").run()

    assert admitted(answer) == (
        "FALSE",
        "ResourceNotFound",
        (
            "input.resources[0].name: must be a resource that an earlier step composes, and "
            "'front0' is none (nearest: 'front-0'); earlier steps compose 'front-0', 'network'"
        ),
    )
    assert answer.desired.composite.ready == fnv1.READY_FALSE
    assert answer.meta.ttl.seconds == 60


def test_it_withholds_nothing_that_other_steps_composed() -> None:
    world = fronts("front0")

    answer = world.run()

    assert set(answer.desired.resources) == {"front-0", "network"}
    for name in world.given:
        assert fn.plain(answer.desired.resources[name].resource) == world.given[name]


def test_the_resources_of_other_entries_go_on() -> None:
    world = fronts("server", "front0", server=server())
    world.enrolled()

    answer = world.run()

    assert {"server", "record-server"} < set(answer.desired.resources)
    assert (
        "userData" in fn.plain(answer.desired.resources["server"].resource)["spec"]["forProvider"]
    )
    registered = {one.type: one.status for one in answer.conditions}
    assert registered["NodeRegistered"] == fnv1.STATUS_CONDITION_TRUE
    assert admitted(answer)[1] == "ResourceNotFound"
    assert answer.desired.composite.ready == fnv1.READY_FALSE


def test_what_else_is_not_as_it_should_be_is_counted_behind_it() -> None:
    world = fronts("server", "front0", server=server())

    assert admitted(world.run())[2].endswith("; 1 more of its resources are affected")


def test_a_warning_says_it_once() -> None:
    world = fronts("server", "front0", server=server())

    first = world.run()
    told(world, first)
    second = world.run()

    (said,) = first.results
    assert (said.severity, said.reason) == (fnv1.SEVERITY_WARNING, "ResourceNotFound")
    assert said.target == fnv1.TARGET_COMPOSITE
    assert said.message.startswith("input.resources[1].name: must be a resource")
    assert admitted(first)[2].startswith(said.message)
    assert not second.results


def test_nor_does_a_stalled_node_beside_it_warn_again_and_again() -> None:
    world = fronts("server", "front0", server=server())
    world.enrolled()
    world.say(
        conditions=[given.condition("Stalled", "True", "RegistrationTimeout", "no node came")]
    )

    told(world, world.run())

    assert not world.run().results


def test_the_warning_comes_again_when_it_says_something_else() -> None:
    world = fronts("front0")
    told(world, world.step())

    (said,) = world.run().results

    assert "'front-0' exists and is not enrolled" in said.message


def test_the_corrected_name_is_admitted_as_if_it_had_never_been_wrong() -> None:
    world = fronts("front0")
    told(world, world.run())
    world.entries = [entry("front-0")]

    answer = world.run()

    assert admitted(answer)[1] == "WaitingForReconciler"
    assert not answer.results


def test_a_machine_that_exists_beside_it_is_named() -> None:
    world = fronts("front0", **{"front-1": server()})
    world.step()

    said = admitted(world.run())[2]

    assert "; 'front-0', 'front-1' exist and are not enrolled; " in said


@pytest.mark.parametrize("name", ["front0", "front_*"])
def test_a_machine_of_a_kind_that_nobody_knows_is_named_if_its_name_is_the_nearest(
    name: str,
) -> None:
    world = World(entry(name), **{"front-0": BOX, "network": NETWORK})
    world.step()

    assert "'front-0' exists and is not enrolled" in admitted(world.run())[2]


def test_a_machine_of_the_kind_of_an_enrolled_one_is_named() -> None:
    world = World(entry("a"), entry("front0"), a=BOX, other=BOX, network=NETWORK)
    world.step()

    assert "'other' exists and is not enrolled" in admitted(world.run())[2]


def test_a_machine_that_another_entry_enrols_or_holds_is_not_named() -> None:
    world = World(
        entry("a", hold=["b"]),
        entry("front0"),
        entry("pool-*"),
        a=server(),
        b=server(),
        **{"pool-0": server()},
    )
    world.step()
    world.accept("a")
    world.step()

    said = admitted(world.run())[2]

    assert "enrolled" not in said
    assert "earlier steps compose 'a', 'b', 'pool-0'" in said


def test_what_an_entry_holds_is_no_name_to_choose() -> None:
    """The schema refuses an entry for what another one holds."""
    world = fronts("front0", "pool-*")
    world.entries[1]["hold"] = ["front-0"]

    assert "nearest" not in admitted(world.run())[2]


def test_a_machine_that_a_step_dropped_is_not_named_for_it_goes() -> None:
    world = fronts("front0", **{"front-1": server()})
    world.step()
    del world.given["front-1"]

    said = admitted(world.run())[2]

    assert "front-1" not in said


def test_where_nobody_composes_anything_that_is_said() -> None:
    assert admitted(World(entry("front0")).run())[2].endswith("; earlier steps compose none")


def test_records_are_no_names_to_choose_from() -> None:
    world = fronts("front0", server=server())
    world.entries.append(entry("server"))
    world.step()

    assert "record-" not in admitted(world.run())[2]


def test_several_wrong_names_are_told_together() -> None:
    world = fronts("front0", "network0", "third")

    said = admitted(world.run())[2]

    assert "input.resources[0].name: must be" in said
    assert "'network0' is none (nearest: 'network')" in said
    assert "; 1 more name means none; " in said
    assert "third" not in said


def test_a_long_step_is_told_within_a_conditions_length() -> None:
    many = {f"{number:03}-{'x' * 120}\u202e": server() for number in range(200)}
    world = World(*(entry(f"{'y' * 124}{number}") for number in range(200)), **many)
    told(world, world.step())

    answer = world.run()
    told(world, answer)

    assert len(admitted(answer)[2]) <= MESSAGE_MAX
    assert "\u202e" not in admitted(answer)[2]
    assert not world.run().results


def test_its_answer_does_not_hang_on_the_order_of_a_request() -> None:
    world = fronts("front0", "pool-*", **{"front-1": server()})
    world.step()
    first = world.run()
    world.given = dict(reversed(world.given.items()))
    world.objects = dict(reversed(world.objects.items()))

    assert wire(world.run()) == wire(first)


@pytest.mark.parametrize("name", ["pool-*", "*"])
def test_a_star_that_fits_nothing_is_said_and_refuses_nothing(name: str) -> None:
    world = World(entry(name))

    answer = world.run()

    assert admitted(answer) == (
        "TRUE",
        "NotExpected",
        (
            "the Enrol step matches no resource; input.resources[0].name: "
            f"'{name}' fits no resource that an earlier step composes"
        ),
    )
    assert answer.desired.composite.ready == fnv1.READY_UNSPECIFIED
    assert not answer.results


def test_a_star_that_fits_nothing_is_said_beside_a_node_that_is_there() -> None:
    world = World(entry("server"), entry("pool-*"), server=server())
    world.enrolled()

    answer = world.run()

    assert admitted(answer) == (
        "TRUE",
        "Admitted",
        (
            "the declaration was accepted; input.resources[1].name: 'pool-*' fits no resource "
            "that an earlier step composes"
        ),
    )
    assert answer.desired.composite.ready == fnv1.READY_UNSPECIFIED


def test_a_star_that_fits_nothing_is_said_behind_the_longest_refusal() -> None:
    world = World(entry("server"), entry("pool-*"), server=server())
    world.step()
    refusal = given.condition("Admitted", "False", "RightsMissing", "x" * 2 * MESSAGE_MAX)
    world.objects["record-server"]["status"] = {"conditions": [refusal]}

    said = admitted(world.run())[2]

    assert len(said) == MESSAGE_MAX
    assert said.endswith(
        "xx; input.resources[1].name: 'pool-*' fits no resource that an earlier step composes"
    )


def test_a_star_whose_resources_an_exact_name_takes_fits_them() -> None:
    world = World(entry("front-0"), entry("front-*"), **{"front-0": server()})

    assert "fits no resource" not in admitted(world.run())[2]


def test_a_star_whose_last_resource_is_drained_fits_it_until_it_is_gone() -> None:
    world = World(entry("pool-*"), **{"pool-0": server()})
    world.enrolled("pool-0")
    world.given.clear()

    draining = admitted(world.step())[2]
    world.say("pool-0", substrate="Absent", phase="Deprovisioning")
    for _ in range(2):
        world.step()
    world.finish("pool-0")

    assert "fits no resource" not in draining
    assert "fits no resource" in admitted(world.run())[2]


@pytest.mark.parametrize("name", ["front0", "pool-*"])
def test_in_a_preview_a_name_without_a_resource_is_an_error(name: str) -> None:
    world = fronts("front-0", name)
    world.preview = True

    answer = world.run()

    status, reason, message = admitted(answer)
    assert (status, reason) == ("FALSE", "ResourceNotFound")
    assert f"input.resources[1].name: must {'fit' if '*' in name else 'be'} a resource" in message
    assert {"front-0", "record-front-0", "network"} == set(answer.desired.resources)
    assert not answer.requirements.resources
    assert [one.severity for one in answer.results] == [fnv1.SEVERITY_WARNING]


def test_an_exact_name_whose_resource_its_step_dropped_is_drained_before_it_is_refused() -> None:
    world = World(entry("front-0"), **{"front-0": server()})
    world.enrolled("front-0")
    world.given.clear()
    said = [world.step()]
    world.say("front-0", substrate="Absent", phase="Deprovisioning")
    said += [world.step(), world.step()]

    world.finish("front-0")

    assert "ResourceNotFound" not in [admitted(answer)[1] for answer in said]
    assert not any(answer.results for answer in said)
    assert [answer.desired.composite.ready for answer in said] == [fnv1.READY_UNSPECIFIED] * 3
    assert admitted(world.run())[1] == "ResourceNotFound"


def test_a_record_that_goes_when_this_xr_composes_it_no_more_is_waited_for() -> None:
    world = World(entry("front-0"), **{"front-0": server()})
    world.enrolled("front-0")
    world.given.clear()
    world.step()
    world.say("front-0", substrate="Absent", phase=str(Phase.DEPROVISIONING))
    world.step()
    world.step()
    # Crossplane observes what the XR refers to, and it refers to what was composed last.
    world.elsewhere = [world.objects.pop("record-front-0")]

    answer = world.run()

    assert admitted(answer)[1] == "NotExpected"
    assert answer.desired.composite.ready == fnv1.READY_UNSPECIFIED
    assert not answer.desired.resources
    assert answer.meta.ttl.seconds == 10


def test_what_an_orphaned_xr_left_is_neither_refused_nor_taken() -> None:
    """The reconciler drains it, once the XR that was applied again is Ready for a while."""
    world = World(entry("front-0"), entry("server"), **{"front-0": server()}, server=server())
    world.enrolled("front-0")
    world.accept("server")
    world.step()
    world.elsewhere = [world.objects.pop(name) for name in ("front-0", "record-front-0")]
    del world.given["front-0"]

    answer = world.run()

    assert admitted(answer)[1] == "Admitted"
    assert set(answer.desired.resources) == {"server", "record-server"}


def test_a_record_of_that_name_that_is_another_composites_excuses_nothing() -> None:
    world = fronts("front0")
    (wanted,) = world.run().requirements.resources.values()
    owner = {"kind": "Pool", "name": "other", "uid": "u-2", "controller": True}
    head = {"name": wanted.match_name, "ownerReferences": [owner]}
    world.elsewhere = [{"kind": "ProvisioningRecord", "metadata": head}]

    answer = world.run()

    assert admitted(answer)[1] == "ResourceNotFound"
    assert set(answer.desired.resources) == {"front-0", "network"}


def test_outside_a_project_nothing_is_looked_up() -> None:
    world = fronts("front0")
    world.xr["metadata"]["namespace"] = "default"

    answer = world.run()

    assert admitted(answer)[1] == "ResourceNotFound"
    assert not answer.requirements.resources
