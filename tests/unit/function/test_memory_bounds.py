"""What the memory must not confuse, keep or let grow."""

from __future__ import annotations

import copy
import gc
import random
from collections.abc import Callable
from typing import Any

import pytest
from crossplane.function.proto.v1 import run_function_pb2 as fnv1

from function import fn
from function.cache import Nodes
from function.contract.errors import ContractError
from function.contract.secrets import TokenPlaintext
from tests.unit.function import given
from tests.unit.function.enrol_world import World
from tests.unit.function.test_memory import SERVERS, expected, minted, pool, secrets, wire


def meets(requests: list[fnv1.RunFunctionRequest]) -> Nodes:
    """Cold and warm answers to a sequence are equal, to the byte."""
    nodes = Nodes()
    for request in requests:
        other = copy.deepcopy(request)
        assert wire(fn.run(request, nodes)) == wire(fn.run(other))
    return nodes


def _text(world: World) -> None:
    world.given["server-a"]["spec"]["forProvider"] = "text"


def _another_kind(world: World) -> None:
    world.given["server-a"]["kind"] = "Machine"


@pytest.mark.parametrize("edit", [_text, _another_kind])
def test_what_falls_back_to_the_whole_object_is_not_remembered(
    edit: Callable[[World], None],
) -> None:
    world = pool(paths={"userData": "spec.forProvider.userData"})
    edit(world)
    before = world.request()
    mine = world.objects["server-a"]["metadata"]["managedFields"][0]
    rest: dict[str, Any] = {"f:spec": {"f:forProvider": {"f:image": {}}}, "f:metadata": {}}
    mine["fieldsV1"] = rest
    after = world.request()

    meets([before, after, before])
    meets([after, after, before])


def test_what_is_not_where_its_path_leads_spoils_no_answer() -> None:
    world = pool(paths={"userData": "spec.x[0].data"})
    world.given["server-a"]["spec"]["x"] = "text"

    meets([world.request(), world.request()])


def _large() -> str:
    source = random.Random(1)  # noqa: S311 - certificates that do not shrink
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    lines = ["".join(source.choice(alphabet) for _ in range(64)) for _ in range(110)]
    body = "\n".join(lines)
    return f"-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n"


@pytest.mark.parametrize(
    "tokens",
    [
        ("psb_" + "a" * 60, "psb_" + "b" * 60),
        (f"psb_prod_{'a' * 26}_node_{'a' * 32}", f"psb_prod_{'a' * 26}_node_{'b' * 32}"),
        (minted("one"), f"psb_prod_{'a' * 26}_node_{'b' * 32}"),
    ],
)
def test_no_document_that_was_packed_is_remembered(tokens: tuple[str, str]) -> None:
    world = expected({"provider": "aws"})
    for name in SERVERS:
        known = world.objects[f"record-{name}"]["status"]["enrolment"]
        world.say(name, enrolment={**known, "caBundle": _large()})

    nodes = meets([world.request(secrets(**dict.fromkeys(SERVERS, one))) for one in tokens])

    assert len(nodes) == 0


def _declared(resources: dict[str, Any], **fields: Any) -> fnv1.RunFunctionRequest:
    found = given.required(token=given.secret(), substrate=None)
    return given.request(resources=resources, found=found, **fields)


def test_an_empty_object_is_not_taken_for_an_absent_one() -> None:
    record = given.record(given.status())
    nodes = meets([_declared({"record": record})])

    with pytest.raises(ContractError, match="observed resource 'substrate'"):
        fn.run(_declared({"record": record, "substrate": {}}), nodes)


def test_what_another_step_composed_under_our_name_is_not_remembered() -> None:
    record = {"record": given.record(given.status())}
    desired = {"resources": {"substrate": {"resource": {"spec": {"parameters": {"a": -0.0}}}}}}

    nodes = meets([_declared(record, desired=desired)] * 2)

    assert len(nodes) == 0


def test_a_status_that_holds_a_token_is_not_remembered() -> None:
    status = given.status(provisionedResourceID=minted("odd"))

    nodes = meets([_declared({"record": given.record(status)})] * 2)

    assert len(nodes) == 0


def _bad_parameter() -> fnv1.RunFunctionRequest:
    xr = given.xr(parameters={"region": "nbg1", "bogus": 1})
    found = given.required(token=given.secret(), substrate=None)
    return given.request(xr, resources={"record": given.record(given.status())}, found=found)


def _withheld() -> fnv1.RunFunctionRequest:
    status = given.status()
    status["enrolment"]["baseURL"] = "nope"
    return _declared({"record": given.record(status)})


def _bad_labels() -> fnv1.RunFunctionRequest:
    world = expected({})
    world.xr["spec"]["labels"] = "bad"
    return world.request(secrets(**{name: minted(name) for name in SERVERS}))


def _filled() -> fnv1.RunFunctionRequest:
    world = expected({})
    world.given["server-a"]["spec"]["forProvider"]["userData"] = "mine"
    return world.request(secrets(**{name: minted(name) for name in SERVERS}))


@pytest.mark.parametrize("made", [_bad_parameter, _withheld, _bad_labels, _filled])
def test_no_token_outlives_its_call_in_an_error(
    made: Callable[[], fnv1.RunFunctionRequest],
) -> None:
    request = made()
    fn.run(request)
    gc.collect()
    gc.disable()
    try:
        before = _alive()
        fn.run(request)
        after = _alive()
    finally:
        gc.enable()

    assert after == before


def _alive() -> int:
    return sum(isinstance(one, TokenPlaintext) for one in gc.get_objects())


def test_what_is_too_large_to_be_remembered_is_not_kept_beside_what_is() -> None:
    blueprint = given.blueprint()
    blueprint["metadata"]["annotations"] = {f"note-{n}": "x" * 100 for n in range(400)}
    found = given.required(token=given.secret(), substrate=None, blueprint=blueprint)
    record = given.record(given.status())
    for number in range(3):
        xr = given.xr(labels={"number": f"{number}"})
        fn.run(given.request(xr, resources={"record": record}, found=found), Nodes())
    gc.collect()

    notes = [one for one in gc.get_objects() if isinstance(one, dict) and "note-7" in one]

    assert len(notes) <= 1
