"""What is written directly is, byte for byte, what PyYAML would write."""

from __future__ import annotations

from typing import Any

import yaml as pyyaml
from hypothesis import given, settings
from hypothesis import strategies as st

from function.render.documents import yaml

EXAMPLES = 200

_HARD = "ab/:#-'\"| \n\tyé0.~{}[]&*!%@`,?>\\"
_TEXTS = (
    st.text(alphabet=st.sampled_from(_HARD), max_size=12)
    | st.lists(st.text(alphabet=st.sampled_from("abc :#-'|"), max_size=6), min_size=1).map(
        lambda lines: "\n".join(lines) + "\n"
    )
    | st.sampled_from(["y", "", "null", "1e3", "08", "a\n\n", "a \nb", " a\nb"])
)
_LEAVES = _TEXTS | st.booleans() | st.integers() | st.none() | st.floats(allow_nan=False)
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXTS, inner, max_size=4),
    max_leaves=15,
)
_KEYS = st.text(alphabet=st.sampled_from("abc/ .:'-"), min_size=1, max_size=6)
_COMMON = st.recursive(
    _KEYS | st.sampled_from(["a\nb\n", "a\n\nb", "#!/bin/sh\n  x\n"]) | st.integers(),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=4)
        | st.dictionaries(_KEYS, inner, min_size=1, max_size=4)
    ),
    max_leaves=15,
)


def by_pyyaml(value: dict[str, Any]) -> str:
    return pyyaml.dump(
        value, Dumper=yaml._Dumper, sort_keys=False, width=yaml._UNFOLDED, allow_unicode=True
    )


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.dictionaries(_TEXTS, _VALUES, max_size=4))
def test_any_mapping_is_written_as_pyyaml_writes_it(value: dict[str, Any]) -> None:
    assert yaml.dump(value) == by_pyyaml(value)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.dictionaries(_KEYS, _COMMON, min_size=1, max_size=4))
def test_what_documents_are_made_of_is_written_as_pyyaml_writes_it(value: dict[str, Any]) -> None:
    assert yaml.dump(value) == by_pyyaml(value)


def test_a_text_that_stands_twice_is_pyyamls() -> None:
    shared = yaml.SharedText("text")

    assert yaml.dump({"a": shared, "b": shared}) == 'a: &id001 "text"\nb: *id001\n'
