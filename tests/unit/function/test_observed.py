"""What is read of an observed object, and that its fingerprint tells all of that."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import struct_pb2
from hypothesis import given as examples
from hypothesis import strategies as st

from function.contract import names
from function.wire import observed

_LEAVES = st.text(max_size=4) | st.booleans() | st.integers(-9, 9) | st.none()
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=4,
)
_HEADS = st.fixed_dictionaries(
    {},
    optional={
        "labels": st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
        "name": _LEAVES,
        "resourceVersion": st.text(max_size=3),
        "managedFields": _LEAVES,
        "uid": st.text(max_size=3),
    },
)
_TEXTS = st.sampled_from(["", "a", "b"])
_CONDITIONS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["Admitted", "Stalled", "Ready", 1]),
        "status": st.sampled_from(["True", "False", True]),
        "reason": _TEXTS | st.just(1),
        "message": _TEXTS | st.just(1),
        "lastTransitionTime": st.text(max_size=2) | st.none(),
        "observedGeneration": st.integers(0, 2) | st.just(0.5),
    },
)
_STATUSES = st.fixed_dictionaries(
    {}, optional={"conditions": st.lists(_CONDITIONS, max_size=2) | _LEAVES, "other": _LEAVES}
)
_MANIFESTS = st.fixed_dictionaries(
    {"kind": st.sampled_from([names.RECORD_KIND, "Server"])},
    optional={
        "metadata": _HEADS | st.just("odd"),
        "status": _STATUSES | st.just("odd"),
        "spec": _VALUES,
    },
)

SERVER: dict[str, Any] = {
    "kind": "Server",
    "metadata": {"name": "a", "resourceVersion": "7", "managedFields": [{}], "uid": "u"},
    "status": {
        "atProvider": {"state": "on"},
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "then"}],
    },
}


def struct(value: dict[str, Any]) -> struct_pb2.Struct:
    made = struct_pb2.Struct()
    made.update(value)
    return made


def condition(kind: str, message: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "status": "True", "reason": "R", "message": message, **fields}


def record(*conditions: Any) -> struct_pb2.Struct:
    return struct({"kind": names.RECORD_KIND, "status": {"conditions": [*conditions]}})


@examples(_MANIFESTS, _MANIFESTS)
def test_what_has_one_fingerprint_reads_the_same(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    first, second = struct(one), struct(other)

    alike = observed.fingerprint(first) == observed.fingerprint(second)

    # A flag equals a number, and is written otherwise.
    assert alike == (_ordered(observed.read(first)) == _ordered(observed.read(second)))


def _ordered(value: Any) -> str:
    if isinstance(value, dict):
        # An empty map is no empty list.
        return f"map {sorted((key, _ordered(item)) for key, item in value.items())}"
    return repr([_ordered(item) for item in value]) if isinstance(value, list) else repr(value)


def test_what_changes_all_the_time_is_not_read() -> None:
    assert observed.read(struct(SERVER)) == {
        "kind": "Server",
        "metadata": {"name": "a", "uid": "u"},
        "status": {"conditions": SERVER["status"]["conditions"]},
    }


def test_a_message_that_is_told_on_stands_beside_the_parts() -> None:
    first = observed.fingerprint(record(condition("Admitted", "one"), condition("Other", "x")))
    second = observed.fingerprint(record(condition("Admitted", "two"), condition("Other", "y")))

    assert first.parts == second.parts
    assert first.texts == {"Admitted": "one", "Other": "x"}
    assert second.texts == {"Admitted": "two", "Other": "y"}


def test_whether_there_is_a_message_is_read() -> None:
    first = observed.fingerprint(record(condition("Stalled", "")))

    assert first.parts != observed.fingerprint(record(condition("Stalled", "x"))).parts


@pytest.mark.parametrize(
    "odd",
    [
        "text",
        {"type": "Other"},
        condition("Other", "x", status=True),
        condition("Other", "x", reason=1),
        condition("Other", "x", lastTransitionTime=None),
        condition("Other", "x", observedGeneration="soon"),
        condition("Other", "x", observedGeneration=0.5),
    ],
)
def test_conditions_that_may_not_be_readable_are_read_as_they_are(odd: object) -> None:
    said = [condition("Admitted", "one"), odd]

    assert observed.read(record(*said))["status"] == {"conditions": said}
    assert observed.fingerprint(record(*said)).texts == {}
