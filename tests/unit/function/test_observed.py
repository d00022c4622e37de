"""Which fields of an observed object get through to what composes."""

from __future__ import annotations

from typing import Any

from google.protobuf import struct_pb2
from hypothesis import given as examples
from hypothesis import strategies as st

from function.contract import names
from function.wire import observed, structs
from tests.unit.function.hostile.calls import wire

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
_STATUSES = st.fixed_dictionaries(
    {}, optional={"conditions": st.lists(_LEAVES, max_size=2) | _LEAVES, "other": _LEAVES}
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


def normalised(value: dict[str, Any]) -> struct_pb2.Struct:
    return observed.normalised(struct(value))


@examples(_MANIFESTS, _MANIFESTS)
def test_what_is_normalised_to_equal_bytes_reads_the_same(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    first, second = normalised(one), normalised(other)

    alike = wire(first) == wire(second)

    # A flag equals a number, and is written otherwise.
    assert alike == (_ordered(structs.plain(first)) == _ordered(structs.plain(second)))


def _ordered(value: Any) -> str:
    if isinstance(value, dict):
        # An empty map is no empty list.
        return f"map {sorted((key, _ordered(item)) for key, item in value.items())}"
    return repr([_ordered(item) for item in value]) if isinstance(value, list) else repr(value)


def test_versions_managed_fields_and_a_providers_counters_do_not_get_through() -> None:
    assert structs.plain(normalised(SERVER)) == {
        "kind": "Server",
        "metadata": {"name": "a", "uid": "u"},
        "status": {"conditions": SERVER["status"]["conditions"]},
    }


def test_the_whole_status_of_a_record_gets_through() -> None:
    status = {"phase": "Ready", "conditions": [{"type": "Admitted", "message": "x"}]}
    record = {"kind": names.RECORD_KIND, "status": status}

    assert structs.plain(normalised(record)) == record


@examples(_MANIFESTS)
def test_normalising_twice_changes_nothing_more(value: dict[str, Any]) -> None:
    once = normalised(value)

    assert wire(observed.normalised(once)) == wire(once)


@examples(_MANIFESTS)
def test_normalising_changes_nothing_of_the_request(value: dict[str, Any]) -> None:
    given = struct(value)
    before = wire(given)

    observed.normalised(given)

    assert wire(given) == before


SPEC: dict[str, Any] = {"spec": {"a": {"labels": {"x": "y"}, "secret": "s"}, "b": [{"c": 1}]}}


def _at(*path: str | int) -> dict[str, Any]:
    made = struct_pb2.Struct()
    observed.copy_path(struct(SPEC), made, path)
    return structs.plain(made)


def test_what_stands_beside_a_path_does_not_get_through() -> None:
    assert _at("spec", "a", "labels") == {"spec": {"a": {"labels": {"x": "y"}}}}


def test_a_list_on_the_way_gets_through_whole() -> None:
    assert _at("spec", "b", 0, "c") == {"spec": {"b": [{"c": 1}]}}


def test_where_a_path_leads_nowhere_nothing_stands_at_its_end() -> None:
    assert _at("spec", "a", "secret", "x") == {"spec": {"a": {}}}
    assert _at("metadata", "a") == {}
