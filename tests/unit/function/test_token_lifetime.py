"""No token outlives the call that brought it, and no object that is too large to be kept."""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Callable
from typing import Any

import pytest
from crossplane.function.proto.v1 import run_function_pb2 as fnv1

from function import fn
from function.contract.secrets import TokenPlaintext
from tests.unit.function import given
from tests.unit.function.enrol_world import World, entry, server

SERVERS = ("server-a", "server-b", "server-c", "server-d")


def minted(seed: str) -> str:
    """A token of ours; equal seeds give equal ones."""
    digest = hashlib.sha256(seed.encode()).hexdigest()
    text = digest.translate(str.maketrans("0189", "wxyz"))
    return f"psb_prod_{'a' * 26}_node_{text[:32]}"


def expected(**fields: Any) -> World:
    """Accepted nodes whose machines are still to be made."""
    world = World(entry("server-*", **fields), **{name: server() for name in SERVERS})
    world.step()
    for name in SERVERS:
        world.accept(name)
    return world


def secrets(**tokens: str) -> dict[str, Any]:
    absent = {f"substrate/{name}": None for name in SERVERS}
    return absent | {f"token/{name}": given.secret(text) for name, text in tokens.items()}


def _declared(resources: dict[str, Any]) -> fnv1.RunFunctionRequest:
    found = given.required(token=given.secret(), substrate=None)
    return given.request(resources=resources, found=found)


def _bad_parameter() -> fnv1.RunFunctionRequest:
    xr = given.xr(parameters={"region": "nbg1", "bogus": 1})
    found = given.required(token=given.secret(), substrate=None)
    return given.request(xr, resources={"record": given.record(given.status())}, found=found)


def _withheld() -> fnv1.RunFunctionRequest:
    status = given.status()
    status["enrolment"]["baseURL"] = "nope"
    return _declared({"record": given.record(status)})


def _bad_labels() -> fnv1.RunFunctionRequest:
    world = expected()
    world.xr["spec"]["labels"] = "bad"
    return world.request(secrets(**{name: minted(name) for name in SERVERS}))


def _filled() -> fnv1.RunFunctionRequest:
    world = expected()
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
        fn.run(given.request(xr, resources={"record": record}, found=found))
    gc.collect()

    notes = [one for one in gc.get_objects() if isinstance(one, dict) and "note-7" in one]

    assert len(notes) <= 1
