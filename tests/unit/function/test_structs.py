"""Values as a Struct, written anew or copied from a model."""

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


def written(value: dict[str, Any], model: dict[str, Any]) -> struct_pb2.Struct:
    made = struct_pb2.Struct()
    structs.write(made, value, structs.Model(by_protobuf(model), model))
    return made


@given(_OBJECTS, _OBJECTS)
def test_whatever_the_model_the_value_is_written(
    value: dict[str, Any], model: dict[str, Any]
) -> None:
    made = written(value, {**value, **model})

    assert made == by_protobuf(value)
    assert fn.plain(made) == value


@pytest.mark.parametrize(("value", "model"), [(True, 1), (0, False), ([1], [True]), ({}, {"a": 1})])
def test_what_python_holds_for_equal_is_not_copied(value: object, model: object) -> None:
    assert written({"a": value}, {"a": model}) == by_protobuf({"a": value})


def test_what_has_no_place_in_a_struct_is_an_error() -> None:
    with pytest.raises(TypeError, match="cannot write value: bytes"):
        structs.write(struct_pb2.Struct(), {"a": b"x"}, structs.NO_MODEL)
