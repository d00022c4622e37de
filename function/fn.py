"""The servicer: protobuf in, values through, protobuf out.

The answer as protobuf, and the edge where an error becomes a result.

A payload may hold a bootstrap token, so nothing of it is ever logged or put into a
result: an unforeseen error shows its class and place in the log, and a fixed text with
the request's tag in the answer. Source: reference, crossplane §2.3, §6.4 and §6.5.
"""

from __future__ import annotations

import functools
import os
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import grpc
from crossplane.function import logging, response
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from crossplane.function.proto.v1 import run_function_pb2_grpc as grpcv1

from function.cache import LRUNodeCache, SettledNodes
from function.compose.substrate_identity import StrangerError
from function.contract.conditions import DesiredCondition
from function.contract.errors import ContractError
from function.inputs import declare, enrol
from function.model.call import Answer, Composed, Notice, Request, Ttl
from function.model.objects import Raw
from function.wire import requests, structs
from function.wire.structs import plain

__all__ = ["RESPONSE_MAX_BYTES", "FunctionRunner", "plain", "run"]

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


_META: Final = {ttl: response.to(fnv1.RunFunctionRequest(), ttl=ttl.value).meta for ttl in Ttl}
"""What an answer says of how long it holds."""

_COMPOSITE: Final = fnv1.TARGET_COMPOSITE


class FunctionRunner(grpcv1.FunctionRunnerServiceServicer):
    """Answers RunFunction.

    What it keeps of settled nodes changes how long an answer takes, and nothing of it: equal
    requests get equal answers whatever came before.
    """

    def __init__(self) -> None:
        self._log = logging.get_logger()
        self._kept = SettledNodes(key=os.urandom(32))

    async def RunFunction(  # noqa: N802 - gRPC's name
        self, req: fnv1.RunFunctionRequest, _: grpc.aio.ServicerContext
    ) -> fnv1.RunFunctionResponse:
        """Answer one call.

        Idempotency: a pure function of the request; equal requests get equal answers.
        """
        try:
            return run(req, self._kept)
        except StrangerError as error:
            rsp = _fatal(req, f"cannot run step: {error}")
            _say(rsp, error.verdict)
            return rsp
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
            return _fatal(
                req, f"cannot run step: internal error; see tag {tag} in the log of the function"
            )


def run(req: fnv1.RunFunctionRequest, kept: SettledNodes | None = None) -> fnv1.RunFunctionResponse:
    """Answer one request.

    Desired state, context and tag of the request are kept.

    Args:
        req: The request.
        kept: What settled nodes composed in earlier calls; it changes how long an answer takes,
            and nothing of the answer.

    Raises:
        ContractError: The step's input is unreadable.
    """
    step = requests.step(req.input)
    kind = step.get("kind")
    if not isinstance(kind, str) or kind not in _INPUTS:
        raise ContractError(field="input.kind", rule=f"must be one of {', '.join(_INPUTS)}")
    request = requests.request(
        req, step, None if kept is None else functools.partial(LRUNodeCache, kept)
    )
    answer = _INPUTS[kind](request)
    rsp = _response(req, request, answer)
    cache = request.cache
    if isinstance(cache, LRUNodeCache):
        cache.restore(rsp.desired)
    if rsp.ByteSize() <= RESPONSE_MAX_BYTES:
        if isinstance(cache, LRUNodeCache):
            cache.keep(rsp.desired)
        return rsp
    return _fatal(req, "cannot run step: the response is larger than Crossplane accepts")


def _response(
    req: fnv1.RunFunctionRequest, request: Request, answer: Answer
) -> fnv1.RunFunctionResponse:
    rsp = fnv1.RunFunctionResponse(meta=_META[answer.ttl])
    rsp.meta.tag = req.meta.tag
    rsp.desired.CopyFrom(req.desired)
    rsp.context.CopyFrom(req.context)
    for name, composed in answer.resources.items():
        _compose(rsp.desired, name, composed, request.desired)
    if answer.status:
        composite = rsp.desired.composite.resource
        status = plain(composite).get("status")
        merged = {**(status if isinstance(status, dict) else {}), **answer.status}
        there = composite.fields["status"].struct_value
        there.Clear()
        structs.write(there, merged)
    if not answer.ready:
        # Otherwise it is as ready as its resources, other steps' among them.
        rsp.desired.composite.ready = fnv1.READY_FALSE
    for verdict in answer.verdicts:
        _say(rsp, verdict)
    rsp.results.extend(_event(notice) for notice in answer.notices)
    if answer.requirements:
        asked = rsp.requirements.resources
        for name, wanted in answer.requirements.items():
            one = asked[name]
            one.api_version, one.kind, one.match_name = (
                wanted.api_version,
                wanted.kind,
                wanted.name,
            )
            if wanted.namespace is not None:
                one.namespace = wanted.namespace
    return rsp


def _say(rsp: fnv1.RunFunctionResponse, verdict: DesiredCondition) -> None:
    rsp.conditions.add(
        type=verdict.type,
        status=_STATUS[verdict.status],
        reason=verdict.reason,
        message=verdict.message,
        target=_COMPOSITE,
    )


def _compose(
    desired: fnv1.State, name: str, composed: Composed | None, given: Mapping[str, Raw]
) -> None:
    if composed is None:
        desired.resources.pop(name, None)
        return
    made = desired.resources[name]
    if name in given:
        # It is still as its step gave it.
        structs.patch(made.resource, given[name], composed.manifest)
    else:
        structs.write(made.resource, composed.manifest)
    if composed.ready is not None:
        made.ready = fnv1.READY_TRUE if composed.ready else fnv1.READY_FALSE


def _event(notice: Notice) -> fnv1.Result:
    return fnv1.Result(
        severity=fnv1.SEVERITY_WARNING,
        reason=notice.reason,
        message=notice.message,
        target=_COMPOSITE,
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
