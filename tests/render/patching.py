"""Patch-and-transform, as far as the published blueprints use it, for tests without it.

A stand-in that answers as function-patch-and-transform v0.9.0 does for the patches and
transforms below, fails loudly on any other, and passes every other step through (as
auto-ready does while nothing is observed). `PATCH_AND_TRANSFORM` names the real program,
which then takes its place. Source: function-patch-and-transform v0.9.0, `patches.go` and
`transforms.go`.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import json
from collections.abc import Iterator
from typing import Any

import click
import grpc
from crossplane.function import cli as sdkcli
from crossplane.function import resource, response
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from crossplane.function.proto.v1 import run_function_pb2_grpc as grpcv1

from reconciler.catalog import schema_path
from tests.render import status_transforming

Object = dict[str, Any]

INPUT = "pt.fn.crossplane.io/v1beta1"


class MissingError(Exception):
    """A path that a patch reads is not there."""


class PatchRunner(grpcv1.FunctionRunnerServiceServicer):
    """Composes what the input's bases and patches say; without bases, nothing."""

    async def RunFunction(  # noqa: N802 - the protocol's name
        self, request: fnv1.RunFunctionRequest, context: grpc.aio.ServicerContext
    ) -> fnv1.RunFunctionResponse:
        answer = response.to(request)
        given = resource.struct_to_dict(request.input)
        if given.get("apiVersion") == status_transforming.INPUT:
            status_transforming.transform(answer, given, request.observed.resources)
        if given.get("apiVersion") != INPUT:
            return answer
        xr = resource.struct_to_dict(request.observed.composite.resource)
        sets = {each["name"]: each["patches"] for each in given.get("patchSets", [])}
        for each in given["resources"]:
            made = copy.deepcopy(each["base"])
            try:
                for patch in expanded(each.get("patches", []), sets):
                    apply(patch, xr, made)
            except MissingError:
                continue  # a Required path: composed once it is there
            resource.update(answer.desired.resources[each["name"]], made)
        return answer


def expanded(patches: list[Object], sets: dict[str, list[Object]]) -> Iterator[Object]:
    for patch in patches:
        if patch.get("type") == "PatchSet":
            yield from sets[patch["patchSetName"]]
        else:
            yield patch


def apply(patch: Object, xr: Object, made: Object) -> None:
    """Apply one patch; an optional one whose source is missing changes nothing."""
    kind = patch.get("type", "FromCompositeFieldPath")
    if kind == "ToCompositeFieldPath":
        return  # reads what was observed, of which a first render has nothing
    try:
        if kind == "CombineFromComposite":
            variables = patch["combine"]["variables"]
            values = tuple(read(xr, each["fromFieldPath"]) for each in variables)
            value: Any = patch["combine"]["string"]["fmt"] % values
        else:
            assert kind == "FromCompositeFieldPath", kind
            value = read(xr, patch["fromFieldPath"])
    except MissingError:
        if patch.get("policy", {}).get("fromFieldPath") == "Required":
            raise
        return
    for transform in patch.get("transforms", []):
        value = transformed(transform["string"], value)
    target = patch.get("toFieldPath", patch.get("fromFieldPath"))
    assert isinstance(target, str), patch
    write(made, target, value)


def transformed(rule: Object, value: Any) -> str:
    match rule["type"]:
        case "Format":
            text: str = rule["fmt"] % whole(value)
            return text
        case "Replace":
            return str(value).replace(rule["replace"]["search"], rule["replace"]["replace"])
        case "TrimPrefix":
            return str(value).removeprefix(rule["trim"])
        case "Convert":
            return converted(rule["convert"], value)
        case other:
            raise NotImplementedError(other)


def converted(how: str, value: Any) -> str:
    match how:
        case "ToBase64":
            return base64.b64encode(str(value).encode()).decode()
        case "ToSha256":
            assert isinstance(value, str), value
            return hashlib.sha256(value.encode()).hexdigest()
        case "ToJson":
            return json.dumps(value, sort_keys=True, separators=(",", ":"))
        case other:
            raise NotImplementedError(other)


def whole(value: Any) -> Any:
    """Turn a Struct's double back into the integer that it was."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def read(source: Any, path: str) -> Any:
    for segment in schema_path.parse(path):
        try:
            source = source[segment]
        except (KeyError, IndexError, TypeError) as error:
            raise MissingError(path) from error
    return source


def write(target: Any, path: str, value: Any) -> None:
    *parents, last = schema_path.parse(path)
    for segment, following in zip(parents, [*parents[1:], last], strict=True):
        target = child(target, segment, [] if isinstance(following, int) else {})
    place(target, last, value)


def child(target: Any, segment: str | int, empty: Any) -> Any:
    if isinstance(segment, int):
        if segment == len(target):
            target.append(empty)
        return target[segment]
    return target.setdefault(segment, empty)


def place(target: Any, segment: str | int, value: Any) -> None:
    if isinstance(segment, int) and segment == len(target):
        target.append(value)
    else:
        target[segment] = value


@click.command()
@sdkcli.standard_options
def main(**options: Any) -> None:
    """Serve the stand-in."""
    sdkcli.run(PatchRunner(), **options)


if __name__ == "__main__":
    main()
