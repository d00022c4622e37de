"""Values as a Struct, written anew or over others, and read."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import struct_pb2
from hypothesis import given
from hypothesis import strategies as st

from function import fn
from function.wire import structs

_LEAVES = st.text(max_size=4) | st.booleans() | st.integers(-9, 9) | st.none()
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=10,
)
_OBJECTS = st.dictionaries(st.text(max_size=3), _VALUES, max_size=4)


def by_protobuf(value: dict[str, Any]) -> struct_pb2.Struct:
    made = struct_pb2.Struct()
    made.update(value)
    return made


@given(_OBJECTS)
def test_whatever_the_value_it_is_written_as_protobuf_writes_it(value: dict[str, Any]) -> None:
    made = struct_pb2.Struct()

    structs.write(made, value)

    assert made == by_protobuf(value)
    assert fn.plain(made) == value


def patched(before: dict[str, Any], after: dict[str, Any]) -> struct_pb2.Struct:
    made = by_protobuf(before)
    structs.patch(made, before, after)
    return made


@given(_OBJECTS, _OBJECTS)
def test_whatever_was_there_a_patch_makes_the_value_of_it(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    assert patched(before, after) == by_protobuf(after)
    assert patched(before, {**before, **after}) == by_protobuf({**before, **after})


@pytest.mark.parametrize(
    ("after", "before"), [(True, 1), (0, False), ([1], [True]), ({}, {"a": 1}), ([1], [1, 2])]
)
def test_what_python_holds_for_equal_is_not_left_as_it_was(after: object, before: object) -> None:
    assert patched({"a": before}, {"a": after}) == by_protobuf({"a": after})


@given(_OBJECTS)
def test_fields_that_are_read_one_by_one_are_those_of_the_whole(value: dict[str, Any]) -> None:
    found = structs.lazily(by_protobuf({"spec": value}))["spec"]

    assert dict(found) == value
    assert found.get("missing") is None


def test_what_has_no_place_in_a_struct_is_an_error() -> None:
    with pytest.raises(TypeError, match="cannot write value: bytes"):
        structs.write(struct_pb2.Struct(), {"a": b"x"})
