"""Dump, tags, limits and sites: the small renderers."""

from __future__ import annotations

import base64
import re

import pytest
import yaml as pyyaml
from hypothesis import example
from hypothesis import given as each
from hypothesis import strategies as st

from function.contract.errors import ContractError
from function.contract.strategy import CloudProvider
from function.render import budget, inject, tags, yaml

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


def test_keys_keep_their_order() -> None:
    assert yaml.dump({"b": "x", "a": "z"}) == "b: x\na: z\n"


KEY = re.compile(r"[a-z]([a-z0-9_-]{0,61}[a-z0-9])?")
VALUE = re.compile(r"([a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?)?")


@pytest.mark.parametrize(
    ("label", "tag"),
    [
        (("team", "checkout"), ("team", "checkout")),
        (("platform/env", "prod"), ("platform_env", "prod")),
        (("Team", "Check Out"), ("team", "check_out")),
        (("7x", "7"), ("x7x", "7")),
        (("-", "-a-"), ("x", "a")),
        (("k" * 62 + "--k", "v" * 62 + "--v"), ("k" * 62, "v" * 62)),
        (("9" * 70, "ß"), ("x" + "9" * 62, "")),
        (("demo-boot", "never"), ("demo-boot", "never")),
        (("demo-create", "fail"), ("demo-create", "fail")),
        (("demo-delete", "hang"), ("demo-delete", "hang")),
    ],
)
def test_a_label_becomes_a_legal_tag(label: tuple[str, str], tag: tuple[str, str]) -> None:
    assert tags.cloud_tags(CloudProvider.GCP, dict([label])) == dict([tag])


LABEL = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)


@each(st.dictionaries(LABEL, LABEL, max_size=8))
def test_tags_are_legal_and_do_not_depend_on_order(labels: dict[str, str]) -> None:
    made = tags.cloud_tags(CloudProvider.HETZNER, labels)
    turned = tags.cloud_tags(CloudProvider.HETZNER, dict(reversed(labels.items())))

    assert list(made.items()) == list(turned.items())
    assert all(KEY.fullmatch(key) for key in made)
    assert all(VALUE.fullmatch(value) for value in made.values())


def test_the_first_of_colliding_labels_stays() -> None:
    made = tags.cloud_tags(CloudProvider.AWS, {"a.b": "second", "a!b": "first", "c": "x y"})

    assert made == {"a_b": "first", "c": "x_y"}


@pytest.mark.parametrize("provider", list(CloudProvider))
def test_each_cloud_takes_its_limit_and_not_a_byte_more(provider: CloudProvider) -> None:
    limit = budget.LIMITS_BYTES[provider]

    budget.check(provider, "x" * limit)
    with pytest.raises(ContractError) as caught:
        budget.check(provider, "x" * (limit + 1))

    assert caught.value.reason == "UserDataTooLarge"
    assert str(limit) in str(caught.value)


def test_novas_limit_is_one_of_base64() -> None:
    limit = budget.LIMITS_BYTES[CloudProvider.OPENSTACK]

    assert len(base64.b64encode(b"x" * limit)) <= 65_535
    assert len(base64.b64encode(b"x" * (limit + 1))) > 65_535


def test_limits_count_bytes_not_characters() -> None:
    with pytest.raises(ContractError):
        budget.check(CloudProvider.AWS, "ä" * 10_000)


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
