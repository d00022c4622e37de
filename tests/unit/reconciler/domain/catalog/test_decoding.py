"""Files that two readers could take for different things are refused."""

from __future__ import annotations

import pytest

from reconciler.catalog import decoding


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a mapping"),
        (b"- a\n", "is not a mapping"),
        (b"a: 1\na: 2\n", "holds a duplicate key in line 2"),
        (b"a: {b: 1, b: 2}\n", "holds a duplicate key in line 1"),
        (b"1: a\n", "holds a key that is not a string in line 1"),
        (b"yes: a\n", "holds a key that is not a string in line 1"),
        (b"a: &x 1\nb: *x\n", "holds an unsupported alias in line 2"),
        (b"a: !!python/name:os.system x\n", "holds an unsupported explicit tag in line 1"),
        (b"a: 1\n---\nb: 2\n", "holds a second document in line 2"),
        (b"a: [\n", "is not valid YAML in line 2"),
        (b"a: \x00\n", "is not valid YAML"),
        (b"\xff\xfe\xff", "is not UTF-8"),
        (b"a: " + b"[" * 65 + b"]" * 65, "is nested deeper than 64 levels"),
        (b"[" * 100_000, "is nested deeper than 64 levels"),
        (b"a: " + b"x" * decoding.FILE_MAX_BYTES, "is larger than 1048576 bytes"),
    ],
)
def test_a_dubious_yaml_file_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(decoding.DecodeError) as refused:
        decoding.from_yaml(content)

    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[]", "is not a mapping"),
        (b'{"a": 1, "a": 2}', "holds an object with a duplicate key"),
        (b'{"a": NaN}', "holds NaN, which is not valid JSON"),
        (b'{"a": 1', "is not valid JSON in line 1"),
        (b'{"a": ' + b"[" * 65 + b"]" * 65 + b"}", "is nested deeper than 64 levels"),
        (b"[" * 100_000, "is nested deeper than 64 levels"),
        (b'{"a": ' + b"9" * 5000 + b"}", "is not valid JSON"),
    ],
)
def test_a_dubious_json_file_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(decoding.DecodeError) as refused:
        decoding.from_json(content)

    assert str(refused.value) == message


def test_brackets_in_text_are_no_depth() -> None:
    assert decoding.from_json(b'{"a": "' + b"[" * 500 + b'"}') == {"a": "[" * 500}


def test_a_date_is_text() -> None:
    assert decoding.from_yaml(b"a: 2024-01-01\n") == {"a": "2024-01-01"}
