"""What is gathered for a diagnosis where the objects below a node are odd."""

from __future__ import annotations

from typing import Any, Final

import pytest
from aiohttp import web

from reconciler.adapters.kubernetes.diagnosis.reader import DiagnosisReader
from reconciler.adapters.kubernetes.diagnosis.resource_types import ResourceType
from reconciler.domain.diagnosis.facts import DiagnosisFacts, Presence
from tests.integration.kubernetes.test_client import answering

pytestmark = pytest.mark.integration

BACKEND: Final = ResourceType(api_version="shop.example.org/v1", kind="Backend", plural="backends")
XR: Final = {"apiVersion": BACKEND.api_version, "kind": "Backend", "name": "shop"}
BELOW: Final = "machines.example.org/v1"

Object = dict[str, Any]


def record(*substrate: Object, **status: Any) -> Object:
    spec = {"declaration": {"xr": XR}, "substrate": list(substrate)}
    return {"metadata": {"name": "r", "uid": "u"}, "spec": spec, "status": status}


def named(name: str, kind: str = "Box") -> Object:
    return {"apiVersion": BELOW, "kind": kind, "name": name}


async def read(found: Object, *, machine: int | Object = 404) -> DiagnosisFacts:
    """Gather from a server with one record; `machine` is what it answers of any Box."""

    async def answer(request: web.Request) -> web.Response:
        path = request.path
        if path.endswith("/provisioningrecords"):
            return web.json_response({"items": [found]})
        if path == f"/apis/{BELOW}":
            return web.json_response({"resources": [{"name": "boxes", "kind": "Box"}]})
        if "/boxes/" in path and not isinstance(machine, int):
            return web.json_response(machine)
        if path.endswith("/events"):
            return web.json_response({"items": []})
        status = machine if isinstance(machine, int) and "/boxes/" in path else 404
        return web.json_response({}, status=status)

    async with answering(answer) as client:
        return await DiagnosisReader(client).read(BACKEND, "ns", "shop")


async def test_a_substrate_without_a_name_is_none_yet() -> None:
    (node,) = (await read(record(named("")))).nodes

    assert node.substrate is None


async def test_a_substrate_without_a_name_has_the_records_handle() -> None:
    (node,) = (await read(record(named(""), xrName="pr-1"))).nodes

    assert node.substrate is not None
    assert (node.substrate.name, node.substrate.presence) == ("pr-1", Presence.ABSENT)


@pytest.mark.parametrize(
    ("status", "presence"), [(403, Presence.FORBIDDEN), (500, Presence.UNREADABLE)]
)
async def test_one_object_that_cannot_be_read_takes_no_answer(
    status: int, presence: Presence
) -> None:
    (node,) = (await read(record(named("box")), machine=status)).nodes

    assert node.substrate is not None
    assert node.substrate.presence is presence


async def test_what_a_terminal_would_obey_is_not_kept() -> None:
    odd = {
        "metadata": {"name": "box", "uid": "b", "finalizers": ["a\x1b[2Jb"]},
        "spec": {"crossplane": {"resourceRefs": [named("x", kind="K\x1b[2J")]}},
        "status": {"conditions": [{"type": "Ready", "status": "False", "message": "m\x1b[31m"}]},
    }
    (node,) = (await read(record(named("box")), machine=odd)).nodes

    assert r"\x1b" not in repr(node)
    assert node.composed[0].presence is Presence.ABSENT


async def test_what_a_ready_node_is_made_of_is_not_read() -> None:
    ready = {"type": "Ready", "status": "True", "reason": "Registered", "message": ""}
    (node,) = (await read(record(named("box"), conditions=[ready]), machine=500)).nodes

    assert node.substrate is None


async def test_another_kinds_record_of_the_name_is_not_its() -> None:
    other = record(named("box"))
    other["spec"]["declaration"] = {"xr": {**XR, "kind": "Frontend"}}

    assert (await read(other)).nodes == ()
