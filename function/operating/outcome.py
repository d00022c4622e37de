"""Classifies one call by its request and response.

Turning a message into a few words of closed sets, for metrics, and into an identity without
values, for the log. Nothing of a payload but kinds and names leaves here, and those only
where they look like it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Final, NamedTuple

from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from google.protobuf import struct_pb2

from function.contract.conditions import ConditionType, Reason

OTHER: Final = "other"
"""Stands for every value that is none of ours."""

_INPUTS: Final = frozenset({"Declare", "Enrol"})
_REASONS: Final = frozenset(Reason)
_TAG_SHOWN: Final = 12
_PLAIN: Final = re.compile(r"[A-Za-z0-9./_:-]{1,253}")
"""What kinds, versions and names are made of; anything else could forge a log line."""

_DECISIVE: Final = (
    ConditionType.ADMITTED,
    ConditionType.BOOTSTRAP_INJECTED,
    ConditionType.NODE_REGISTERED,
)
"""The way of a node, in order: it waits at the first of these that is not True."""


@unique
class Result(StrEnum):
    """The outcome of a call."""

    READY = "Ready"
    WAITING = "Waiting"
    REFUSED = "Refused"
    FAILED = "Failed"
    FATAL = "Fatal"


@unique
class Severity(StrEnum):
    """The severest result of a response, in core's words."""

    NORMAL = "Normal"
    WARNING = "Warning"
    FATAL = "Fatal"


class CallOutcome(NamedTuple):
    """One call in words of closed sets.

    Attributes:
        reason: Why it is not ready; a member of `Reason`, `other`, or empty.
    """

    input_kind: str
    result: Result
    reason: str
    severity: Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class CallIdentity:
    """Whose call it was; `other` stands for what does not look like a name."""

    tag: str
    api_version: str
    kind: str
    name: str


def read(req: fnv1.RunFunctionRequest, rsp: fnv1.RunFunctionResponse) -> CallOutcome:
    """Return the outcome of a call. Total: every pair of messages has an outcome."""
    severity = _severity(rsp)
    if severity is Severity.FATAL:
        result, reason = Result.FATAL, ""
    elif rsp.desired.composite.ready != fnv1.READY_FALSE:
        # Then it is as ready as its resources, and nothing here holds it.
        result, reason = Result.READY, ""
    else:
        result, reason = _waiting({each.type: each for each in rsp.conditions})
    return CallOutcome(
        input_kind=input_kind(req),
        result=result,
        reason=reason if not reason or reason in _REASONS else OTHER,
        severity=severity,
    )


def input_kind(req: fnv1.RunFunctionRequest) -> str:
    """Return the kind of the step's input, or `other`."""
    kind = _text(req.input, "kind")
    return kind if kind in _INPUTS else OTHER


def identity(req: fnv1.RunFunctionRequest) -> CallIdentity:
    """Return whose call it was."""
    xr = req.observed.composite.resource
    name = OTHER
    if "metadata" in xr.fields:
        name = _shown(_text(xr.fields["metadata"].struct_value, "name"))
    return CallIdentity(
        tag=_shown(req.meta.tag[:_TAG_SHOWN]),
        api_version=_shown(_text(xr, "apiVersion")),
        kind=_shown(_text(xr, "kind")),
        name=name,
    )


def _waiting(conditions: dict[str, fnv1.Condition]) -> tuple[Result, str]:
    failed = conditions.get(ConditionType.PROVISIONING_FAILED)
    if failed is not None and failed.status == fnv1.STATUS_CONDITION_TRUE:
        return Result.FAILED, failed.reason
    for kind in _DECISIVE:
        found = conditions.get(kind)
        if found is None or found.status == fnv1.STATUS_CONDITION_TRUE:
            continue
        refused = kind is ConditionType.ADMITTED and found.status == fnv1.STATUS_CONDITION_FALSE
        return Result.REFUSED if refused else Result.WAITING, found.reason
    return Result.WAITING, ""


def _severity(rsp: fnv1.RunFunctionResponse) -> Severity:
    severities = {result.severity for result in rsp.results}
    if fnv1.SEVERITY_FATAL in severities:
        return Severity.FATAL
    return Severity.WARNING if fnv1.SEVERITY_WARNING in severities else Severity.NORMAL


def _text(struct: struct_pb2.Struct, key: str) -> str:
    # Indexing a protobuf map creates the entry: look before reading.
    return struct.fields[key].string_value if key in struct.fields else ""


def _shown(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else OTHER
