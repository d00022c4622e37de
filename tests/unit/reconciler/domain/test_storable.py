"""What no Postgres stores is written as JSON does, and nothing else is changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.domain.storable_text import storable


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("jane", "jane"),
        ("ACME\\jäne@example.org", "ACME\\jäne@example.org"),
        ("ja\0ne", '"ja\\u0000ne"'),
        ("ja\ud800ne", '"ja\\ud800ne"'),
        ('"ja\\u0000ne"', '"\\"ja\\\\u0000ne\\""'),
        ("", ""),
    ],
)
def test_a_text_is_escaped_only_where_it_must_be(text: str, stored: str) -> None:
    assert storable(text) == stored


_TEXTS = st.text(st.sampled_from('a\0\ud800\\u0"'), max_size=8)


@given(_TEXTS, _TEXTS)
def test_no_two_texts_become_one(one: str, two: str) -> None:
    assert (storable(one) == storable(two)) == (one == two)


@given(_TEXTS)
def test_whatever_it_was_it_can_be_stored(text: str) -> None:
    assert "\0" not in storable(text)
    storable(text).encode()
