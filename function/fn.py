"""The servicer: protobuf in, values through, protobuf out.

Belongs here: conversion, and the edge where an error becomes a result. Not here: any
decision. The only module besides `function.main` that knows the SDK.

A payload may hold a bootstrap token, so nothing of it is ever logged or put into a
result: an unforeseen error shows its class and place in the log, and a fixed text with
the request's tag in the answer. Source: reference, crossplane §2.3, §6.4 and §6.5.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import grpc
from crossplane.function import logging, resource, response
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from crossplane.function.proto.v1 import run_function_pb2_grpc as grpcv1
from google.protobuf import struct_pb2

from function import declare, enrol
from function.compose.call import Answer, Composed, Notice, Request, Ttl
from function.contract import names
from function.contract.conditions import Verdict
from function.contract.errors import ContractError

RESPONSE_MAX_BYTES: Final = 4 * 1024 * 1024 - 64 * 1024
"""Crossplane refuses 4 MiB; the rest is room for what gRPC adds around the message."""

_OURS: Final = Path(__file__).parent

_TAG_SHOWN: Final = 12
"""Characters of the tag that correlate an answer with the log."""

_INPUTS: Final[Mapping[str, Callable[[Request], Answer]]] = {
    declare.KIND: declare.answer,
    enrol.KIND: enrol.answer,
}
"""Who answers each input."""

_STATUS: Final = {
    True: fnv1.STATUS_CONDITION_TRUE,
    False: fnv1.STATUS_CONDITION_FALSE,
    None: fnv1.STATUS_CONDITION_UNKNOWN,
}


class FunctionRunner(grpcv1.FunctionRunnerServiceServicer):
    """Answers RunFunction; keeps no state between calls."""

    def __init__(self) -> None:
        self._log = logging.get_logger()

    async def RunFunction(  # noqa: N802 - gRPC's name
        self, req: fnv1.RunFunctionRequest, _: grpc.aio.ServicerContext
    ) -> fnv1.RunFunctionResponse:
        """Answer one call.

        Idempotency: a pure function of the request; equal requests get equal answers.
        """
        try:
            return run(req)
        except ContractError as error:
            return _fatal(req, f"cannot run step: {error}")
        except Exception as error:  # noqa: BLE001 - the edge: an exception's text may quote a payload
            tag = req.meta.tag[:_TAG_SHOWN]
            place = _place(error)
            self._log.error(
                "run_failed",
                tag=tag,
                error=type(error).__name__,
                place=place,
            )
            return _fatal(req, f"cannot run step: internal error; look for tag {tag} in the log")


def run(req: fnv1.RunFunctionRequest) -> fnv1.RunFunctionResponse:
    """Answer one request.

    Desired state, context and tag of the request are kept.

    Raises:
        ContractError: The step's input is unreadable.
    """
    step = plain(req.input)
    kind = step.get("kind")
    if not isinstance(kind, str) or kind not in _INPUTS:
        raise ContractError(field="input.kind", rule=f"must be one of {', '.join(_INPUTS)}")
    rsp = _response(req, _INPUTS[kind](_request(req, step)))
    if rsp.ByteSize() <= RESPONSE_MAX_BYTES:
        return rsp
    return _fatal(req, "cannot run step: the response is larger than Crossplane takes")


def plain(struct: struct_pb2.Struct) -> dict[str, Any]:
    """Return a Struct as plain values.

    A Struct holds doubles only: whole ones become integers again.
    """
    return {key: _plain(value) for key, value in struct.fields.items()}


def manifest(struct: struct_pb2.Struct) -> dict[str, Any]:
    """Return an object as plain values, without its `managedFields`, which are large."""
    return {
        key: _head(value.struct_value) if key == "metadata" else _plain(value)
        for key, value in struct.fields.items()
    }


def _head(struct: struct_pb2.Struct) -> dict[str, Any]:
    return {key: _plain(value) for key, value in struct.fields.items() if key != "managedFields"}


def _plain(value: struct_pb2.Value) -> Any:
    match value.WhichOneof("kind"):
        case "struct_value":
            return plain(value.struct_value)
        case "list_value":
            return [_plain(item) for item in value.list_value.values]
        case "number_value":
            number = value.number_value
            return int(number) if number.is_integer() else number
        case "string_value":
            return value.string_value
        case "bool_value":
            return value.bool_value
        case _:
            return None


class _Objects(Mapping[str, dict[str, Any]]):
    """Objects of a request by name, converted when somebody looks at one.

    A pipeline may compose hundreds that are nobody's business here.
    """

    def __init__(
        self,
        source: Mapping[str, fnv1.Resource],
        read: Callable[[struct_pb2.Struct], dict[str, Any]],
    ) -> None:
        self._source = source
        self._convert = read
        self._read: dict[str, dict[str, Any]] = {}

    def __getitem__(self, name: str) -> dict[str, Any]:
        if name not in self._read:
            # Indexing a protobuf map creates the entry: look before reading.
            if name not in self._source:
                raise KeyError(name)
            self._read[name] = self._convert(self._source[name].resource)
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._source)

    def __len__(self) -> int:
        return len(self._source)

    def __contains__(self, name: object) -> bool:
        return name in self._source


def _request(req: fnv1.RunFunctionRequest, step: dict[str, Any]) -> Request:
    required = {
        name: manifest(found.items[0].resource) if found.items else None
        for name, found in req.required_resources.items()
    }
    asked = req.context.fields.get(names.CONTEXT_PREVIEW)
    return Request(
        xr=manifest(req.observed.composite.resource),
        resources=_Objects(req.observed.resources, manifest),
        whole=_Objects(req.observed.resources, plain),
        desired=_Objects(req.desired.resources, plain),
        held=_held(req.observed) if step.get("kind") == enrol.KIND else frozenset(),
        required=required,
        step=step,
        preview=asked is not None and asked.bool_value,
    )


def _held(observed: fnv1.State) -> frozenset[str]:
    """Return which resources carry the hold, without converting any."""
    return frozenset(name for name, one in observed.resources.items() if _is_held(one.resource))


def _is_held(struct: struct_pb2.Struct) -> bool:
    for key in ("metadata", "labels"):
        # Indexing a protobuf map creates the entry: look before reading.
        if key not in struct.fields:
            return False
        struct = struct.fields[key].struct_value
    return names.LABEL_HOLD in struct.fields and (
        struct.fields[names.LABEL_HOLD].string_value == "true"
    )


def _response(req: fnv1.RunFunctionRequest, answer: Answer) -> fnv1.RunFunctionResponse:
    rsp = response.to(req, ttl=answer.ttl.value)
    for name, composed in answer.resources.items():
        _compose(rsp.desired, name, composed)
    if answer.status:
        composite = rsp.desired.composite.resource
        status = plain(composite).get("status")
        merged = {**(status if isinstance(status, dict) else {}), **answer.status}
        resource.update(rsp.desired.composite, {"status": merged})
    if not answer.ready:
        # Otherwise it is as ready as its resources, other steps' among them.
        rsp.desired.composite.ready = fnv1.READY_FALSE
    rsp.conditions.extend(_condition(verdict) for verdict in answer.verdicts)
    rsp.results.extend(_event(notice) for notice in answer.notices)
    for name, wanted in answer.requirements.items():
        response.require_resources(
            rsp,
            name,
            wanted.api_version,
            wanted.kind,
            match_name=wanted.name,
            namespace=wanted.namespace,
        )
    return rsp


def _compose(desired: fnv1.State, name: str, composed: Composed | None) -> None:
    if composed is None:
        desired.resources.pop(name, None)
        return
    made = desired.resources[name]
    made.resource.Clear()
    resource.update(made, composed.manifest)
    if composed.ready is not None:
        made.ready = fnv1.READY_TRUE if composed.ready else fnv1.READY_FALSE


def _event(notice: Notice) -> fnv1.Result:
    return fnv1.Result(
        severity=fnv1.SEVERITY_WARNING,
        reason=notice.reason,
        message=notice.message,
        target=fnv1.TARGET_COMPOSITE,
    )


def _condition(verdict: Verdict) -> fnv1.Condition:
    return fnv1.Condition(
        type=verdict.type,
        status=_STATUS[verdict.status],
        reason=verdict.reason,
        message=verdict.message,
        target=fnv1.TARGET_COMPOSITE,
    )


def _place(error: Exception) -> str:
    """Return the module and line of ours that an error came through last."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(_OURS)]
    frame = (ours or frames)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno}"


def _fatal(req: fnv1.RunFunctionRequest, message: str) -> fnv1.RunFunctionResponse:
    if req.desired.ByteSize() + req.context.ByteSize() > RESPONSE_MAX_BYTES // 2:
        # Nothing of a fatal answer is applied, so what is too large may stay out.
        req = fnv1.RunFunctionRequest(meta=fnv1.RequestMeta(tag=req.meta.tag))
    rsp = response.to(req, ttl=Ttl.REFUSED.value)
    response.fatal(rsp, message)
    return rsp
