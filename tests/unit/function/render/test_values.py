"""Dump and sites: the small renderers."""

from __future__ import annotations

import pytest
import yaml as pyyaml
from hypothesis import example
from hypothesis import given as each
from hypothesis import strategies as st

from function.render.documents import yaml
from function.render.fields import inject

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@each(TEXT, TEXT)
@example("", "\x85")
@example("\u2028", "a\u2029\n")
@example("\ufeff", "\tx\n")
def test_what_is_dumped_reads_the_same(key: str, value: str) -> None:
    assert pyyaml.safe_load(yaml.dump({key: value})) == {key: value}


MISTAKABLE = (
    *("y", "n", "No", "on", "OFF", "true", "null", "~", "NaN", ".inf"),
    *("08", "0600", "1e3", "1_000", "0x1f", "1:20", "2026-01-01"),
    *("=", "<<", "", " x", "- x", "a: b", "a #b", "@x", "%x", "!x"),
)


@pytest.mark.parametrize("value", MISTAKABLE)
def test_a_string_that_a_reader_could_mistake_is_quoted(value: str) -> None:
    assert yaml.dump({"k": value}) == f"k: '{value}'\n"


def test_text_of_several_lines_is_a_block() -> None:
    assert yaml.dump({"k": "a\nb\n"}) == "k: |\n  a\n  b\n"


def test_repeated_values_are_written_out() -> None:
    shared = ["x"]

    assert "*" not in yaml.dump({"a": shared, "b": shared})


def test_shared_text_stands_once_and_reads_as_often_as_it_was_dumped() -> None:
    text = yaml.SharedText("one\ntwo: 'x'\n")

    dumped = yaml.dump({"a": text, "b": [text, "one"]})

    assert dumped.count("two") == 1
    assert pyyaml.safe_load(dumped) == {"a": text, "b": [text, "one"]}


def test_keys_keep_their_order() -> None:
    assert yaml.dump({"b": "x", "a": "z"}) == "b: x\na: z\n"


def test_the_sticky_paths_are_the_seeds_five() -> None:
    assert {".".join(path) for path in inject.STICKY} == {
        "spec.userData",
        "spec.parameters.helmValues.bootstrapToken",
        "spec.parameters.helmValues.apiUrl",
        "spec.parameters.helmValues.plexdImage",
        "spec.parameters.providerSecret.bootstrapToken",
    }


def test_reading_back_takes_what_is_there_and_no_empty_strings() -> None:
    substrate = {
        "spec": {
            "userData": "",
            "parameters": {"helmValues": {"bootstrapToken": "t", "apiUrl": 7}, "region": "x"},
        }
    }

    found = inject.observed(substrate)

    assert found == {("spec", "parameters", "helmValues", "bootstrapToken"): "t"}


@pytest.mark.parametrize("odd", [{}, {"spec": None}, {"spec": {"parameters": "x"}}])
def test_reading_back_from_an_odd_object_finds_nothing(odd: dict[str, object]) -> None:
    assert inject.observed(odd) == {}
