"""Labels as tags: legal by the clouds' own words, the same in any order, nothing lost."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping

import pytest
from hypothesis import example, settings
from hypothesis import given as each
from hypothesis import strategies as st

from function.contract.strategy import CloudProvider
from function.render.tags import encoding, tag_notes
from function.render.tags.tag_notes import NoteKind

AWS, AZURE, GCP = CloudProvider.AWS, CloudProvider.AZURE, CloudProvider.GCP
HETZNER, NOVA, GENERIC = CloudProvider.HETZNER, CloudProvider.OPENSTACK, CloudProvider.GENERIC


def _utf16(text: str) -> int:
    return len(text.encode("utf-16-be")) // 2


def _classes(text: str) -> set[str]:
    return {unicodedata.category(character)[0] for character in text}


def legal_on_aws(made: Mapping[str, str]) -> bool:
    # AWS General Reference, "Tag naming limits and requirements"; the pattern of its APIs is
    # [\p{L}\p{Z}\p{N}_.:/=+\-@]*, 128 and 256 long; `aws:` is reserved in any case.
    def text(given: str, longest: int) -> bool:
        rest = re.sub(r"[_.:/=+\-@]", "", given)
        return (
            _utf16(given) <= longest
            and _classes(rest) <= set("LZN")
            and not given.lower().startswith("aws:")
        )

    return len(made) <= 50 and all(
        bool(key) and text(key, 128) and text(value, 256) for key, value in made.items()
    )


def legal_on_azure(made: Mapping[str, str]) -> bool:
    # Azure Resource Manager, "Use tags to organize your Azure resources", section
    # "Limitations": 50 tags; names of 512 characters without <>%&\?/, values of 256; a virtual
    # machine 2,048 in all; names differ by more than case. Control characters are refused by
    # the API (InvalidTagNameCharacters); the reserved prefixes are in contracts §5.
    def name(key: str) -> bool:
        return (
            bool(key.strip())
            and _utf16(key) <= 512
            and not re.search(r"[<>%&\\?/\x00-\x1f\x7f]", key)
            and not re.match(r"azure|microsoft|windows", key, re.IGNORECASE)
        )

    return (
        len(made) <= 50
        and len({key.casefold() for key in made}) == len(made)
        and all(name(key) and _utf16(value) <= 256 for key, value in made.items())
        and sum(_utf16(key) + _utf16(value) for key, value in made.items()) <= 2048
    )


def legal_on_gcp(made: Mapping[str, str]) -> bool:
    # Google Cloud, "Requirements for labels"; the Bigtable Admin API writes them as
    # [\p{Ll}\p{Lo}][\p{Ll}\p{Lo}\p{N}_-]{0,62}, both under 128 bytes, at most 64.
    def text(given: str) -> bool:
        return (
            len(given) <= 63
            and len(given.encode()) < 128
            and all(
                character in "_-"
                or unicodedata.category(character) in {"Ll", "Lo", "Nd", "Nl", "No"}
                for character in given
            )
        )

    return len(made) <= 64 and all(
        text(key)
        and text(value)
        and unicodedata.category(key[0]) in {"Ll", "Lo"}
        and not key.startswith(("goog-", "google-"))
        for key, value in made.items()
    )


def legal_on_hetzner(made: Mapping[str, str]) -> bool:
    # Hetzner Cloud API reference, "Labels", as hcloud-python's LabelValidator has it.
    key = re.compile(
        r"([a-zA-Z0-9]([\-_.a-zA-Z0-9]{0,253}[a-zA-Z0-9])?/)?"
        r"[a-zA-Z0-9]([\-_.a-zA-Z0-9]{0,61}[a-zA-Z0-9])?"
    )
    value = re.compile(r"([a-zA-Z0-9]([\-_.a-zA-Z0-9]{0,61}[a-zA-Z0-9])?)?")
    return all(
        key.fullmatch(name)
        and value.fullmatch(text)
        and not name.lower().startswith("hetzner.cloud/")
        for name, text in made.items()
    )


def legal_on_nova(made: Mapping[str, str]) -> bool:
    # Nova, api/validation/parameter_types.py, `metadata`; spec "Restrict valid characters for
    # metadata keys" for MySQL, which compares caselessly; quota `metadata_items` of 128.
    key = re.compile(r"[a-zA-Z0-9-_:. ]{1,255}")
    return (
        len(made) <= 128
        and len({name.lower() for name in made}) == len(made)
        and all(
            key.fullmatch(name) and len(text) <= 255 and max(text, default=" ") <= "\uffff"
            for name, text in made.items()
        )
    )


def legal_everywhere(made: Mapping[str, str]) -> bool:
    others = (legal_on_aws, legal_on_azure, legal_on_gcp, legal_on_hetzner, legal_on_nova)
    return all(legal(made) for legal in others)


LEGAL: dict[CloudProvider, Callable[[Mapping[str, str]], bool]] = {
    AWS: legal_on_aws,
    AZURE: legal_on_azure,
    GCP: legal_on_gcp,
    HETZNER: legal_on_hetzner,
    NOVA: legal_on_nova,
    GENERIC: legal_everywhere,
}

RESERVED = ["aws:", "AWS:", "Azure", "windows", "goog-", "google-", "crossplane-", "hetzner.cloud/"]
ODD = "aAzZ09 -_.:/@=+<>%\\é日\U00010400\u0301\u212b\u1e9b\x00\n"
ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
LIKELY = st.text(ODD, max_size=8)
TEXT = st.one_of(
    ANY,
    LIKELY,
    st.builds(lambda text, times: text * times, LIKELY, st.integers(8, 100)),
    st.builds(lambda head, tail: head + tail, st.sampled_from(RESERVED), LIKELY),
)
FEW = st.dictionaries(TEXT, TEXT, max_size=5)
MANY = st.builds(
    lambda count, key, value: {f"{key}{number}": value for number in range(count)},
    st.integers(40, 140),
    LIKELY,
    TEXT,
)
LABELS = st.one_of(FEW, MANY)
PROVIDER = st.sampled_from(CloudProvider)
UNTIMED = settings(deadline=None)
"""A busy machine is no fault of an encoding."""


@pytest.mark.parametrize("provider", list(CloudProvider))
@UNTIMED
@each(LABELS)
@example({})
@example({"": "x", "/": "", "//a": " ", "a/": "\u2028", "\u0345": "\u0130"})
@example({"x" * 600: "y" * 600, "日" * 300: "\U00010400" * 300})
def test_any_labels_make_a_legal_map(provider: CloudProvider, labels: dict[str, str]) -> None:
    made = encoding.encode(provider, labels)

    assert LEGAL[provider](made.tags)
    assert list(made.tags) == sorted(made.tags)
    assert not any(key.lower().startswith("crossplane-") for key in made.tags)


@UNTIMED
@each(PROVIDER, FEW, st.permutations(range(5)))
def test_the_labels_order_does_not_matter(
    provider: CloudProvider, labels: dict[str, str], order: list[int]
) -> None:
    items = list(labels.items())
    turned = dict(items[index] for index in order if index < len(items))

    assert encoding.encode(provider, turned) == encoding.encode(provider, labels)


@UNTIMED
@each(PROVIDER, LABELS)
@example(GCP, {"A\u030a": "\u212b", "\u0130": "\u03a3", "\u1fbc": "\u01c5"})
@example(AWS, {"A\u030a": "\u212b", "\u0958": "\u1100\u1161", "\u1fbc": "\u01c5"})
def test_encoding_what_was_encoded_changes_nothing(
    provider: CloudProvider, labels: dict[str, str]
) -> None:
    made = encoding.encode(provider, labels).tags

    again = encoding.encode(provider, made)

    assert again.tags == made
    assert again.notes == ()


@UNTIMED
@each(PROVIDER, LABELS)
def test_every_label_is_a_tag_as_it_is_or_in_a_note(
    provider: CloudProvider, labels: dict[str, str]
) -> None:
    made = encoding.encode(provider, labels)

    missing = {key for key, value in labels.items() if made.tags.get(key) != value}
    assert [note.label for note in made.notes] == [
        tag_notes.shown(key) for key in sorted(labels) if key in missing
    ]


@UNTIMED
@each(PROVIDER, LABELS)
def test_the_report_is_short_and_says_how_many(
    provider: CloudProvider, labels: dict[str, str]
) -> None:
    notes = encoding.encode(provider, labels).notes

    report = tag_notes.report(notes)

    assert (report is None) == (notes == ())
    if report is not None:
        counts = re.findall(r"(?:^|; )(\d+) labels? (?:is|are) (?:left out|altered)", report)
        assert sum(map(int, counts)) == len(notes)
        assert len(report.encode()) <= tag_notes.REPORT_MAX_BYTES
        assert report.isprintable()


@pytest.mark.parametrize(
    ("provider", "label", "tag"),
    [
        (AWS, ("platform/env", "prod"), ("platform/env", "prod")),
        (AWS, ("plexsphere:Owner", "a b@c=d"), ("plexsphere:Owner", "a b@c=d")),
        (AWS, ("größe", "日本"), ("größe", "日本")),
        (AWS, ("a,b", "x;y"), ("a_b", "x_y")),
        (AWS, ("AWS:team", "aws:x"), ("x-AWS:team", "x-aws:x")),
        (AWS, ("crossplane-name", "x"), ("x-crossplane-name", "x")),
        (AWS, ("e\u0301", " v "), ("\u00e9", "v")),
        (AWS, ("k" * 129, "v" * 257), ("k" * 128, "v" * 256)),
        (AWS, ("\U00010400" * 65, ""), ("\U00010400" * 64, "")),
        (AZURE, ("platform/env", "a/b"), ("platform_env", "a/b")),
        (AZURE, ("Azure-x", "größe"), ("x-Azure-x", "gr__e")),
        (GCP, ("Team", "Check Out"), ("team", "check_out")),
        (GCP, ("platform/env", "v1.2"), ("platform_env", "v1_2")),
        (GCP, ("7x", "-7-"), ("x-7x", "-7-")),
        (GCP, ("google-x", "GRÖSSE"), ("x-google-x", "grösse")),
        (GCP, ("日" * 63, ""), ("日" * 42, "")),
        (HETZNER, ("platform/env", "Prod.1"), ("platform/env", "Prod.1")),
        (HETZNER, ("a.b/c/d", "x:y"), ("a.b/c_d", "x_y")),
        (HETZNER, ("hetzner.cloud/x", "-x-"), ("x-hetzner.cloud/x", "x")),
        (HETZNER, ("p" * 256 + "/" + "n" * 64, ""), ("p" * 255 + "/" + "n" * 63, "")),
        (HETZNER, ("k" * 62 + "..k", "v" * 62 + "--v"), ("k" * 62, "v" * 62)),
        (HETZNER, ("/env", "x"), ("env", "x")),
        (HETZNER, ("env/", "x"), ("env", "x")),
        (NOVA, ("plexsphere:env", "a/b ü 日"), ("plexsphere:env", "a/b ü 日")),
        (NOVA, ("platform/env", "\U0001f600\n"), ("platform_env", "__")),
        (GENERIC, ("platform/env", "prod"), ("platform_env", "prod")),
        (GENERIC, ("9" * 70, "ß"), ("x-" + "9" * 61, "")),
        (GENERIC, ("demo-boot", "never"), ("demo-boot", "never")),
    ],
)
def test_a_label_becomes_a_tag_as_faithful_as_the_cloud_allows(
    provider: CloudProvider, label: tuple[str, str], tag: tuple[str, str]
) -> None:
    made = encoding.encode(provider, dict([label]))

    assert made.tags == dict([tag])
    assert [note.kind for note in made.notes] == ([] if label == tag else [NoteKind.ALTERED])


def noted(provider: CloudProvider, labels: Mapping[str, str]) -> list[tuple[str, NoteKind]]:
    return [(note.label, note.kind) for note in encoding.encode(provider, labels).notes]


def test_of_two_labels_with_one_key_the_first_stays_and_the_other_is_told() -> None:
    labels = {"a.b": "second", "a!b": "first", "c": "x"}

    made = encoding.encode(GENERIC, labels)

    assert made.tags == {"a_b": "first", "c": "x"}
    assert noted(GENERIC, labels) == [("a!b", NoteKind.ALTERED), ("a.b", NoteKind.COLLISION)]
    assert made.notes[1].rule == "generic treats it as the same key as 'a!b'"


def test_one_key_with_one_value_is_no_collision() -> None:
    labels = {"a!b": "x", "a_b": "x"}

    assert encoding.encode(GENERIC, labels).tags == {"a_b": "x"}
    assert noted(GENERIC, labels) == [("a!b", NoteKind.ALTERED)]


@pytest.mark.parametrize("provider", [AZURE, NOVA])
def test_keys_that_differ_in_case_collide_where_the_cloud_does_not_see_it(
    provider: CloudProvider,
) -> None:
    labels = {"Env": "a", "env": "b"}

    assert encoding.encode(provider, labels).tags == {"Env": "a"}
    assert noted(provider, labels) == [("env", NoteKind.COLLISION)]
    assert encoding.encode(AWS, labels).tags == labels


def test_a_key_of_which_nothing_is_legal_is_left_out() -> None:
    assert noted(HETZNER, {"日本": "x", "": "y"}) == [
        ("", NoteKind.NO_KEY),
        ("日本", NoteKind.NO_KEY),
    ]


@pytest.mark.parametrize(("provider", "most"), [(AWS, 45), (AZURE, 45), (GCP, 58), (GENERIC, 45)])
def test_beyond_the_count_the_last_in_order_are_left_out(
    provider: CloudProvider, most: int
) -> None:
    labels = {f"label-{number:03}": "x" for number in range(64)}

    made = encoding.encode(provider, labels)

    assert list(made.tags) == sorted(labels)[:most]
    assert noted(provider, labels) == [(key, NoteKind.TOO_MANY) for key in sorted(labels)[most:]]


def test_what_exceeds_azures_total_is_left_out_and_a_smaller_one_goes_in() -> None:
    labels = {f"label-{number}": "x" * 248 for number in range(6)}
    labels |= {"label-5": "x" * 240, "label-6": "x" * 9, "z": "1" * 13}

    made = encoding.encode(AZURE, labels)

    assert noted(AZURE, labels) == [("label-6", NoteKind.TOO_LARGE)]
    assert sum(len(key) + len(value) for key, value in made.tags.items()) == 1536


def test_notes_and_the_report_never_hold_a_value() -> None:
    labels = {f"k!{number}": f"s3cret\x00value {number}" for number in range(70)}

    for provider in CloudProvider:
        notes = encoding.encode(provider, labels).notes

        assert notes
        assert "s3cret" not in f"{notes}{tag_notes.report(notes)}"


def test_the_report_counts_all_and_names_the_first() -> None:
    labels = {f"a!{letter}": "x" for letter in "abcdefg"} | {"a?a": "y", "plain": "x"}

    assert tag_notes.report(encoding.encode(GENERIC, labels).notes) == (
        "1 label is left out of the cloud tags: 'a?a' (Collision); "
        "7 labels are altered in the cloud tags: "
        "'a!a', 'a!b', 'a!c', 'a!d', 'a!e' and 2 more"
    )
    assert tag_notes.report(()) is None


def test_a_list_has_the_providers_field_names_and_the_keys_order() -> None:
    assert encoding.as_list({"b": "2", "a": "1"}, "key", "val") == [
        {"key": "a", "val": "1"},
        {"key": "b", "val": "2"},
    ]
