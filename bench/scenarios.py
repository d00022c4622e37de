"""The requests that are sent, and what the answer to each composes.

One real moment of a node's life per scenario. A new input kind is a builder and its lines
in `SCENARIOS`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from google.protobuf import json_format, struct_pb2

from function import fn
from function.contract import names
from tests.unit.function import enrol_world, given

Object = dict[str, Any]

USER_DATA_BYTES: Final = 2048
"""The issue's size; a cloud-init document of ours is about as long."""

_VERSIONS: Final = 9_000_000_000_000_000
"""Where the texts that change begin; no other text in a request looks so."""

_CHANGED: Final = ", changed"
_ANEW: Final = ", anew"

SIZES: Final = (1, 5, 100)
"""Nodes of one XR."""

_LABELS: Final = {f"team-{number}": f"value-{number}" for number in range(10)}
_SPENT: Final = {"secretRef": {"name": "spent"}, "generation": 1, "state": "Consumed"}
"""The bootstrap of a node that registered."""

_NODE: Final = {"id": given.ID, "meshIP": "100.64.0.7", "registeredAt": "2026-01-01T00:00:00Z"}
_MANAGED_FIELDS: Final = [
    {
        "manager": f"apiextensions.crossplane.io/composed/{number:064x}",
        "operation": "Apply",
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {f"f:{field}": {"f:nested": {}} for field in "abcdefghijkl"},
    }
    for number in range(2)
]
"""What the API server adds to each object; Crossplane hands it on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One request, sent again and again with another text in one record each time.

    An XR is reconciled because something changed. Most often it is nothing that a
    composition reads: a version, a time, a counter in a status. Each moment is also measured
    where it is: a condition of a record says something else in each request, which is told on
    (`, changed`), or a label that was accepted has another value, and the node is composed
    anew (`, anew`).

    Attributes:
        name: Input kind and moment.
        nodes: Nodes of the XR.
        request: As Crossplane sends it.
        versions: The texts in it, each there once, that are another in each request.
        answer: As our function answers it.
    """

    name: str
    nodes: int
    request: fnv1.RunFunctionRequest
    versions: tuple[bytes, ...]
    answer: fnv1.RunFunctionResponse

    @property
    def plan(self) -> Object:
        """What the answer composes, in protobuf's JSON, for the contenders to compose."""
        return dict(json_format.MessageToDict(self.answer))


def every() -> list[Scenario]:
    """Every scenario, its answer checked to hold what it is meant to."""
    return [
        _scenario(f"{name}{how}", nodes, build(nodes), change)
        for name, nodes, build in SCENARIOS
        for how, change in (("", _versioned), (_CHANGED, _said), (_ANEW, _relabelled))
    ]


def _scenario(
    name: str,
    nodes: int,
    request: fnv1.RunFunctionRequest,
    change: Callable[[struct_pb2.Struct, str], None],
) -> Scenario:
    versions = tuple(_texts(request, change))
    answer = fn.run(request)
    if any(result.severity == fnv1.SEVERITY_FATAL for result in answer.results):
        message = f"cannot build scenario {name}: {answer.results[0].message}"
        raise ValueError(message)
    if len(answer.desired.resources) < 2 * nodes:
        message = f"cannot build scenario {name}: not every node is composed"
        raise ValueError(message)
    return Scenario(name=name, nodes=nodes, request=request, versions=versions, answer=answer)


def _texts(
    request: fnv1.RunFunctionRequest, change: Callable[[struct_pb2.Struct, str], None]
) -> Iterator[bytes]:
    for number, name in enumerate(sorted(request.observed.resources)):
        record = request.observed.resources[name].resource
        if record.fields["kind"].string_value == names.RECORD_KIND:
            text = f"{_VERSIONS + number}"
            change(record, text)
            yield text.encode()


def _versioned(record: struct_pb2.Struct, text: str) -> None:
    record.fields["metadata"].struct_value.fields["resourceVersion"].string_value = text


def _said(record: struct_pb2.Struct, text: str) -> None:
    conditions = record.fields["status"].struct_value.fields["conditions"].list_value
    del conditions.values[:]
    said = {"type": "Admitted", "status": "True", "reason": "Admitted", "message": text}
    conditions.values.add().struct_value.update(said)


def _relabelled(record: struct_pb2.Struct, text: str) -> None:
    accepted = record.fields["status"].struct_value.fields["accepted"].struct_value
    accepted.fields["labels"].struct_value.fields["team-0"].string_value = text


def _declare_creating(_nodes: int) -> fnv1.RunFunctionRequest:
    """The token has just been minted: the document is rendered, the substrate composed."""
    return given.request(
        given.xr(labels=_LABELS),
        resources={"record": _observed(given.record(_accepted()))},
        found=given.required(token=given.secret(), substrate=None),
    )


def _declare_ready(nodes: int) -> fnv1.RunFunctionRequest:
    """The node is Ready: every run from now on, so nearly all there are."""
    created = fn.run(_declare_creating(nodes)).desired.resources["substrate"].resource
    substrate = given.substrate(given.READY)
    substrate["spec"] = fn.plain(created)["spec"]
    substrate["spec"]["userData"] = _padded(substrate["spec"]["userData"])
    status = _accepted(phase="Ready", node=_NODE, bootstrap=_SPENT)
    resources = {
        "record": _observed(given.record(status)),
        "substrate": _observed(substrate),
    }
    return given.request(given.xr(labels=_LABELS), resources=resources)


def _accepted(**fields: Any) -> Object:
    return given.status(accepted=given.declaration(labels=_LABELS), **fields)


def _enrol_creating(nodes: int) -> fnv1.RunFunctionRequest:
    """Every token has just been minted."""
    world = _world(nodes)
    return _settled(world)


def _enrol_ready(nodes: int) -> fnv1.RunFunctionRequest:
    """Every node is Ready."""
    world = _world(nodes)
    world.step()
    for name in world.given:
        world.objects[name]["status"] = {"conditions": [given.READY]}
        provider = world.objects[name]["spec"]["forProvider"]
        provider["userData"] = _padded(provider["userData"])
        world.say(name, node=_NODE, phase="Ready", bootstrap=_SPENT)
    # Once more, for the record says now what it sees.
    world.step()
    return _settled(world)


def _world(nodes: int) -> enrol_world.World:
    servers = {f"server-{number}": enrol_world.server() for number in range(nodes)}
    world = enrol_world.World(enrol_world.entry("server-*"), **servers)
    world.xr["spec"]["labels"] = _LABELS
    world.step()
    for name in servers:
        world.accept(name)
    return world


def _settled(world: enrol_world.World) -> fnv1.RunFunctionRequest:
    """The request with everything that the function asks for."""
    answer = world.run()
    asked = answer.requirements.resources.items()
    return world.request({name: world._look_up(one.kind, one.match_name) for name, one in asked})


def _padded(document: str) -> str:
    return document + "#" * max(0, USER_DATA_BYTES - len(document))


def _observed(raw: Object) -> Object:
    made = copy.deepcopy(raw)
    made["metadata"] |= {
        "managedFields": _MANAGED_FIELDS,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "resourceVersion": "123456",
        "uid": "99999999-2222-3333-4444-555555555555",
    }
    return made


SCENARIOS: Final[tuple[tuple[str, int, Callable[[int], fnv1.RunFunctionRequest]], ...]] = (
    ("Declare, creating", 1, _declare_creating),
    ("Declare, ready", 1, _declare_ready),
    *(("Enrol, creating", nodes, _enrol_creating) for nodes in SIZES),
    *(("Enrol, ready", nodes, _enrol_ready) for nodes in SIZES),
)
