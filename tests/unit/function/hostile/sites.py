"""Every place of a request, and what does not belong there.

Finding places, putting something odd at one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from google.protobuf import struct_pb2

Struct, Value = struct_pb2.Struct, struct_pb2.Value
Step = str | int


def value(raw: Any) -> struct_pb2.Value:
    """A plain value as protobuf, numbers that JSON cannot carry among them."""
    struct = Struct()
    struct.update({"it": raw})
    return struct.fields["it"]


ODD: tuple[struct_pb2.Value, ...] = (
    Value(),
    value(None),
    value(True),
    value(-1),
    value(1e308),
    value(float("nan")),
    value(float("inf")),
    value(""),
    value("x" * 5000),
    value("\x00\u202e\U0001f916\u0085\n- {{ a }}{% b %}"),
    value([]),
    value({}),
    value([[None]]),
    value([{"name": {}, "key": [], "type": {}, "conditions": 1}]),
    value({"a": None, "name": ["x"], "labels": 1, "f:spec": "x"}),
)
"""One of each type and the awkward ones of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One place of a request.

    Attributes:
        part: Which of its objects, for example `observed/record`.
        path: Keys and indices from that object down; empty: the whole object.
    """

    part: str
    path: tuple[Step, ...]

    def __str__(self) -> str:
        return "/".join((self.part, *map(str, self.path)))


def structs(request: fnv1.RunFunctionRequest) -> dict[str, struct_pb2.Struct]:
    """Every object of a request by a name for it."""
    found = {"input": request.input, "xr": request.observed.composite.resource}
    for name, one in request.observed.resources.items():
        found[f"observed/{name}"] = one.resource
    for name, one in request.desired.resources.items():
        found[f"desired/{name}"] = one.resource
    for name, looked in request.required_resources.items():
        for item in looked.items:
            found[f"required/{name}"] = item.resource
    return found


def sites(request: fnv1.RunFunctionRequest) -> list[Site]:
    """Every place of every object, in one order."""
    return [
        Site(part=part, path=path)
        for part, struct in sorted(structs(request).items())
        for path in ((), *_below(struct))
    ]


def _below(struct: struct_pb2.Struct) -> Iterator[tuple[Step, ...]]:
    for key in sorted(struct.fields):
        yield from _at((key,), struct.fields[key])


def _at(path: tuple[Step, ...], found: struct_pb2.Value) -> Iterator[tuple[Step, ...]]:
    yield path
    if found.HasField("struct_value"):
        for below in _below(found.struct_value):
            yield (*path, *below)
    elif found.HasField("list_value"):
        for index, item in enumerate(found.list_value.values):
            yield from _at((*path, index), item)


def spoil(
    request: fnv1.RunFunctionRequest, site: Site, odd: struct_pb2.Value
) -> fnv1.RunFunctionRequest:
    """A copy with something odd at a place; an object as a whole can only be another object."""
    made = fnv1.RunFunctionRequest()
    made.CopyFrom(request)
    struct = structs(made)[site.part]
    if not site.path:
        struct.CopyFrom(odd.struct_value)
        return made
    here = struct.fields[str(site.path[0])]
    for step in site.path[1:]:
        if isinstance(step, int):
            here = here.list_value.values[step]
        else:
            here = here.struct_value.fields[step]
    here.CopyFrom(odd)
    return made
