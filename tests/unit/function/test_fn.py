"""The edge between protobuf and values: what is kept, echoed, bounded and never told."""

from __future__ import annotations

import contextlib
import io
import random
from collections.abc import Callable
from typing import Any

import pytest
import structlog
from crossplane.function import logging
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from google.protobuf import json_format, struct_pb2

from function import fn
from function.wire import structs
from tests.unit.function import given
from tests.unit.function.enrol_world import World, entry, server

SEED = 20260117
HOSTILE = 400
"""Mutations per run: a quick corpus; the long suite fuzzes."""


class Context:
    """The servicer looks at no context."""


async def call(request: fnv1.RunFunctionRequest) -> fnv1.RunFunctionResponse:
    answer = await fn.FunctionRunner().RunFunction(request, Context())
    assert isinstance(answer, fnv1.RunFunctionResponse)
    return answer


def fatal(answer: fnv1.RunFunctionResponse) -> str:
    (result,) = answer.results
    assert result.severity == fnv1.SEVERITY_FATAL
    return str(result.message)


def wire(answer: fnv1.RunFunctionResponse) -> bytes:
    return bytes(answer.SerializeToString(deterministic=True))


async def test_tag_context_and_foreign_desired_state_are_kept() -> None:
    request = given.request(
        desired={"resources": {"theirs": {"resource": {"kind": "Bucket"}, "ready": "READY_TRUE"}}},
        context={"example.org/key": {"a": 1}},
    )

    answer = await call(request)

    assert answer.meta.tag == request.meta.tag
    assert answer.context == request.context
    assert answer.desired.resources["theirs"] == request.desired.resources["theirs"]
    assert set(answer.desired.resources) == {"theirs", "record"}


async def test_status_that_an_earlier_step_wrote_is_kept() -> None:
    earlier = {"composite": {"resource": {"status": {"theirs": "x"}}}}
    request = given.request(resources={"record": given.record(given.status())}, desired=earlier)

    answer = await call(request)

    status = fn.plain(answer.desired.composite.resource)["status"]
    assert status["theirs"] == "x"
    assert status["phase"] == "Provisioning"


async def test_an_open_gate_leaves_readiness_to_the_resources_and_other_steps() -> None:
    node = {"id": "n", "meshIP": "100.64.0.7", "registeredAt": "2026-01-01T00:00:00Z"}
    resources = {
        "record": given.record(given.status(node=node, phase="Ready")),
        "substrate": given.substrate(given.READY),
    }

    alone = await call(given.request(resources=resources))
    said = await call(
        given.request(resources=resources, desired={"composite": {"ready": "READY_TRUE"}})
    )
    held = await call(
        given.request(resources=resources, desired={"composite": {"ready": "READY_FALSE"}})
    )

    assert alone.desired.composite.ready == fnv1.READY_UNSPECIFIED
    assert {r.ready for r in alone.desired.resources.values()} == {fnv1.READY_TRUE}
    assert said.desired.composite.ready == fnv1.READY_TRUE
    assert held.desired.composite.ready == fnv1.READY_FALSE


async def test_a_composite_that_waits_for_us_is_not_ready() -> None:
    answer = await call(given.request(found={}))

    assert answer.desired.composite.ready == fnv1.READY_FALSE
    assert not answer.desired.resources


async def test_reading_maps_creates_no_entries() -> None:
    request = given.request(found={})
    before = request.SerializeToString(deterministic=True)

    await call(request)

    assert request.SerializeToString(deterministic=True) == before


def enrolled() -> fnv1.RunFunctionRequest:
    world = World(entry("server-*"), **{"server-a": server()})
    world.step()
    return world.request({})


@pytest.mark.parametrize("make", [given.request, enrolled])
async def test_an_xr_that_crossplane_tells_of_nothing_is_run_again_soon(
    make: Callable[[], fnv1.RunFunctionRequest],
) -> None:
    told = []
    for status in ("True", "False", "Unknown"):
        request = make()
        said = given.condition("Responsive", status, "WatchCircuitOpen", "too many watch events")
        composite = request.observed.composite.resource
        composite.get_or_create_struct("status").update({"conditions": [said]})
        told.append((await call(request)).meta.ttl.seconds)

    assert told == [600, 30, 600]


async def test_conditions_and_requirements_are_on_the_wire() -> None:
    answer = await call(given.request())

    assert {each.type for each in answer.conditions} == {
        "Admitted",
        "BootstrapInjected",
        "NodeRegistered",
        "ProvisioningFailed",
        "CloudTagsComplete",
        "Reconciling",
        "Stalled",
    }
    selector = answer.requirements.resources["cloud"]
    assert (selector.kind, selector.match_name) == ("Cloud", "hetzner-eu")
    assert not selector.HasField("namespace")


async def test_time_to_live_is_long_when_steady_and_short_when_waiting() -> None:
    steady = await call(given.request())
    waiting = await call(given.request(found=given.required(blueprint=None)))

    assert steady.meta.ttl.seconds == 600
    assert waiting.meta.ttl.seconds == 10


async def test_equal_requests_get_equal_bytes() -> None:
    resources = {"record": given.record(given.status()), "substrate": given.substrate()}

    answers = {wire(await call(given.request(resources=resources))) for _ in range(5)}

    assert len(answers) == 1


@pytest.mark.parametrize(
    ("step", "field"),
    [
        ({}, "input.kind"),
        ({"apiVersion": "broker.fn.plexsphere.com/v1alpha1", "kind": "Dance"}, "input.kind"),
        ({"apiVersion": "x/v1", "kind": "Declare"}, "input.apiVersion"),
    ],
)
async def test_an_unreadable_input_is_fatal_and_names_the_field(
    step: dict[str, Any], field: str
) -> None:
    answer = await call(given.request(input=step))

    assert fatal(answer).startswith(f"cannot run step: {field}: ")
    assert not answer.desired.resources


async def test_a_fatal_answer_keeps_the_desired_state() -> None:
    desired = {"resources": {"theirs": {"resource": {"kind": "Bucket"}}}}

    answer = await call(given.request(input={}, desired=desired))

    assert "theirs" in answer.desired.resources


async def test_an_unforeseen_error_tells_nothing_but_its_class(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def explode(_: object) -> None:
        message = f"boom {given.TOKEN}"
        raise RuntimeError(message)

    monkeypatch.setattr(fn, "_INPUTS", {"Declare": explode})
    printed = io.StringIO()
    logging.configure()

    with contextlib.redirect_stdout(printed):
        answer = await call(given.request())
    structlog.reset_defaults()

    tag = given.request().meta.tag[:12]
    assert (
        fatal(answer)
        == f"cannot run step: internal error; see tag {tag} in the log of the function"
    )
    assert "RuntimeError" in printed.getvalue()
    assert tag in printed.getvalue()
    assert "boom" not in printed.getvalue()
    assert given.TOKEN not in printed.getvalue()


async def test_a_response_too_large_for_crossplane_is_fatal() -> None:
    desired = {"resources": {"theirs": {"resource": {"data": "x" * (4 * 1024 * 1024)}}}}

    answer = await call(given.request(desired=desired))

    assert fatal(answer) == "cannot run step: the response is larger than Crossplane accepts"
    assert answer.ByteSize() < 4 * 1024 * 1024


def test_numbers_come_back_as_they_were_written() -> None:
    struct = struct_pb2.Struct()
    json_format.ParseDict(
        {"whole": 40, "part": 1.5, "no": None, "list": [1, True, "x"]},
        struct,
    )

    found = fn.plain(struct)

    assert found == {"whole": 40, "part": 1.5, "no": None, "list": [1, True, "x"]}
    assert isinstance(found["whole"], int)


def test_managed_fields_are_left_out_of_an_object_and_of_nothing_else() -> None:
    struct = struct_pb2.Struct()
    json_format.ParseDict(
        {"metadata": {"name": "a", "managedFields": [1]}, "spec": {"managedFields": [1]}}, struct
    )

    assert structs.manifest(struct) == {"metadata": {"name": "a"}, "spec": {"managedFields": [1]}}


def mutations(generator: random.Random, value: Any) -> Any:
    """One hostile value in place of a random part of a document."""
    odd: list[Any] = [
        None,
        True,
        -1,
        1e308,
        "",
        "x" * 5000,
        [],
        {},
        [[]],
        {"a": None},
        "\u0000",
        "../../x",
    ]
    if isinstance(value, dict) and value and generator.random() < 0.85:
        key = generator.choice(sorted(value))
        return {**value, key: mutations(generator, value[key])}
    if isinstance(value, list) and value and generator.random() < 0.7:
        return [mutations(generator, value[0]), *value[1:]]
    return generator.choice(odd)


async def test_hostile_objects_never_break_the_function_or_drop_the_substrate() -> None:
    generator = random.Random(SEED)  # noqa: S311 - a seeded corpus, no secret
    status = given.status(node={"id": "n", "meshIP": "100.64.0.7", "registeredAt": "t"})
    sources: dict[str, Any] = {
        "xr": given.xr(retry=1),
        "blueprint": given.blueprint(),
        "credential": given.credential(),
        "cloud": given.cloud(),
        "record": given.record(status),
        "substrate": given.substrate(given.READY),
    }
    internal = 0

    for _ in range(HOSTILE):
        objects = dict(sources)
        victim = generator.choice(sorted(objects))
        changed = mutations(generator, objects[victim])
        objects[victim] = changed if isinstance(changed, dict) else {}
        answer = await call(
            given.request(
                objects["xr"],
                {"record": objects["record"], "substrate": objects["substrate"]},
                {name: objects[name] for name in ("blueprint", "credential", "cloud")},
            )
        )
        if any(result.severity == fnv1.SEVERITY_FATAL for result in answer.results):
            internal += "internal error" in fatal(answer)
            assert "internal error" in fatal(answer) or "observed resource" in fatal(answer)
            assert given.TOKEN not in fatal(answer)
        else:
            assert "substrate" in answer.desired.resources
            assert len(answer.conditions) == 7

    assert internal == 0
