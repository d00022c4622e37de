"""Status-transformer, as far as the published blueprints use it, for tests without it.

A stand-in that answers as function-status-transformer v0.4.0 does for the hooks below, and
fails loudly on any other. `STATUS_TRANSFORMER` names the real program, which then takes its
place. Source: function-status-transformer, `fn.go` and `input/v1beta1`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from crossplane.function import resource
from crossplane.function.proto.v1 import run_function_pb2 as fnv1

Object = dict[str, Any]

INPUT = "function-status-transformer.fn.crossplane.io/v1beta1"

_STATUS = {"True": fnv1.STATUS_CONDITION_TRUE, "False": fnv1.STATUS_CONDITION_FALSE}


def transform(
    answer: fnv1.RunFunctionResponse, given: Object, observed: Mapping[str, fnv1.Resource]
) -> None:
    """Set what the hooks say; of one type the first hook that matches counts."""
    assert given["kind"] == "StatusTransformation"
    told: set[str] = set()
    for hook in given["statusConditionHooks"]:
        assert hook.keys() == {"matchers", "setConditions"}, hook
        (matcher,) = hook["matchers"]
        groups = _matched(matcher, observed)
        if groups is None:
            continue
        for setter in hook["setConditions"]:
            assert setter.keys() == {"target", "condition"}, setter
            assert setter["target"] == "Composite"
            wanted = setter["condition"]
            if wanted["type"] not in told:
                told.add(wanted["type"])
                answer.conditions.append(_condition(wanted, groups))


def _condition(wanted: Object, groups: Mapping[str, str]) -> fnv1.Condition:
    message = wanted["message"]
    for name, text in groups.items():
        message = message.replace("{{ ." + name + " }}", text)
    return fnv1.Condition(
        type=wanted["type"],
        status=_STATUS[wanted["status"]],
        reason=wanted["reason"],
        message=message,
        target=fnv1.TARGET_COMPOSITE,
    )


def _matched(matcher: Object, observed: Mapping[str, fnv1.Resource]) -> Mapping[str, str] | None:
    assert matcher["type"] == "AnyResourceMatchesAnyCondition", matcher
    for each in matcher["resources"]:
        for name, found in sorted(observed.items()):
            if re.search(each["name"], name) is None:
                continue
            body = resource.struct_to_dict(found.resource)
            for wanted in matcher["conditions"]:
                for groups in _of_condition(wanted, body):
                    return groups
    return None


def _of_condition(wanted: Object, body: Object) -> Iterator[Mapping[str, str]]:
    """Yield what a condition's message is made of, once, where it is the wanted one."""
    assert wanted.keys() <= {"type", "status", "message"}, wanted
    listed = body.get("status", {}).get("conditions", [])
    absent = {"status": "Unknown", "message": ""}
    said = next((each for each in listed if each["type"] == wanted["type"]), absent)
    if wanted.get("status", said["status"]) != said["status"]:
        return
    if "message" not in wanted:
        yield {}
        return
    match = re.search(wanted["message"], said.get("message", ""))
    if match is not None:
        yield match.groupdict()
