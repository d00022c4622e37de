"""What holds of every answer, whatever was asked.

Assertions on one request and its answer.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable

from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from google.protobuf import struct_pb2

from function import fn
from function.contract.record import RecordSpec
from tests.unit.function import given
from tests.unit.function.hostile.bases import Base
from tests.unit.function.hostile.calls import wire

TYPES = [
    "Admitted",
    "BootstrapInjected",
    "CloudTagsComplete",
    "NodeRegistered",
    "ProvisioningFailed",
    "Reconciling",
    "Stalled",
]
_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_MESSAGE_MAX = 1024


def _forms(token: str) -> tuple[bytes, ...]:
    """A token as it may be quoted: plain, and base64 at each of its three alignments."""
    raw = token.encode()
    coded = (base64.b64encode(b"\0" * lead + raw)[4:-4] for lead in range(3))
    return (raw, *coded)


CANARIES = _forms(given.TOKEN)


def fatal(answer: fnv1.RunFunctionResponse) -> str | None:
    """The message of a fatal answer, or None."""
    said = [one for one in answer.results if one.severity == fnv1.SEVERITY_FATAL]
    return said[0].message if said else None


def is_readable(answer: fnv1.RunFunctionResponse) -> None:
    """It goes over the wire, and no field of it is odd."""
    again = fnv1.RunFunctionResponse.FromString(wire(answer))
    assert wire(again) == wire(answer)
    assert answer.ByteSize() <= fn.RESPONSE_MAX_BYTES


def says_all(answer: fnv1.RunFunctionResponse) -> None:
    """All conditions, each once, as the API server takes them."""
    assert sorted(one.type for one in answer.conditions) == TYPES
    for one in answer.conditions:
        assert one.status != fnv1.STATUS_CONDITION_UNSPECIFIED
        assert _REASON.fullmatch(one.reason)
        assert len(one.reason) <= 256
        assert 1 <= len(one.message) <= _MESSAGE_MAX


def keeps_others(
    base: Base, request: fnv1.RunFunctionRequest, answer: fnv1.RunFunctionResponse
) -> None:
    """Tag, context and what other steps composed are there, to the byte."""
    assert answer.meta.tag == request.meta.tag
    assert wire(answer.context) == wire(request.context)
    for name in request.desired.resources:
        if name not in base.ours:
            assert name in answer.desired.resources
            before, after = request.desired.resources[name], answer.desired.resources[name]
            assert wire(after) == wire(before)
    made = set(answer.desired.resources) - set(request.desired.resources)
    assert made <= base.ours


def drops_nothing(base: Base, answer: fnv1.RunFunctionResponse) -> None:
    assert base.kept <= set(answer.desired.resources)


def tells_no_token(answer: fnv1.RunFunctionResponse, carriers: Iterable[tuple[str, ...]]) -> None:
    """The token is nowhere but at its one path."""
    told = fnv1.RunFunctionResponse()
    told.CopyFrom(answer)
    for name, *path in carriers:
        if name in told.desired.resources:
            _cut(told.desired.resources[name].resource, path)
    text = told.SerializeToString()
    assert not any(form in text for form in CANARIES)


def _cut(struct: struct_pb2.Struct, path: list[str]) -> None:
    *parents, last = path
    for key in parents:
        if key not in struct.fields:
            return
        struct = struct.fields[key].struct_value
    struct.fields.pop(last, None)


def records_are_legal(answer: fnv1.RunFunctionResponse) -> None:
    """Every record that is composed fits its own kind."""
    for one in answer.desired.resources.values():
        made = fn.plain(one.resource)
        if made.get("kind") == "ProvisioningRecord":
            RecordSpec.model_validate(made["spec"])


STRANGER = "cannot run step: observed resource "
"""How a run ends that finds another object under a name of ours."""


def lawful_or_stranger(
    base: Base, request: fnv1.RunFunctionRequest, answer: fnv1.RunFunctionResponse
) -> bool:
    """A run that finds another object under a name of ours ends, and says so; tell whether."""
    if not (fatal(answer) or "").startswith(STRANGER):
        lawful(base, request, answer)
        return False
    is_readable(answer)
    keeps_others(base, request, answer)
    tells_no_token(answer, ())
    assert [(one.type, one.reason) for one in answer.conditions] == [
        ("Admitted", "NotComposedHere")
    ]
    assert len(answer.conditions[0].message) <= _MESSAGE_MAX
    return True


def lawful(base: Base, request: fnv1.RunFunctionRequest, answer: fnv1.RunFunctionResponse) -> None:
    """Everything that holds of every answer but a fatal one."""
    assert fatal(answer) is None, fatal(answer)
    is_readable(answer)
    says_all(answer)
    keeps_others(base, request, answer)
    drops_nothing(base, answer)
    tells_no_token(answer, base.carriers)
