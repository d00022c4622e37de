"""Documents are read as cloud-init reads them, and faults never quote content."""

from __future__ import annotations

import base64
import gzip

import pytest
import yaml

from dev.cloud import decoding, document
from dev.cloud.document import Document, DocumentError

SECRET = "psb_prod_aaaa_node_bbbb"


def parse(**keys: object) -> Document:
    return document.parse("#cloud-config\n" + yaml.safe_dump(keys, sort_keys=False))


@pytest.mark.parametrize(
    ("encoding", "content"),
    [
        ("", b"caf\xc3\xa9"),
        ("text/plain", b"caf\xc3\xa9"),
        ("b64", base64.b64encode(b"caf\xc3\xa9")),
        ("base64", base64.encodebytes(b"caf\xc3\xa9")),
        ("gz", gzip.compress(b"caf\xc3\xa9", mtime=0)),
        ("gzip", gzip.compress(b"caf\xc3\xa9", mtime=0)),
        ("gz+b64", base64.b64encode(gzip.compress(b"caf\xc3\xa9", mtime=0))),
        ("gzip+base64", base64.b64encode(gzip.compress(b"caf\xc3\xa9", mtime=0))),
        (" GZip+B64 ", base64.b64encode(gzip.compress(b"caf\xc3\xa9", mtime=0))),
    ],
)
def test_content_is_decoded_in_every_encoding(encoding: str, content: bytes) -> None:
    parsed = parse(write_files=[{"path": "/f", "content": content, "encoding": encoding}])

    assert parsed.faults == ()
    assert parsed.files[0].content == b"caf\xc3\xa9"


@pytest.mark.parametrize(
    ("permissions", "mode"),
    [
        ("0600", 0o600),
        ("755", 0o755),
        ("0o640", 0o640),
        (0o600, 0o600),
        (None, 0o644),
        ("rw", 0o644),
        (True, 0o644),
        (-1, 0o644),
        ("17777", 0o644),
    ],
)
def test_permissions_are_octal_text_or_a_number(permissions: object, mode: int) -> None:
    parsed = parse(write_files=[{"path": "/f", "permissions": permissions}])

    assert parsed.files[0].mode == mode


def test_a_file_has_cloud_inits_defaults() -> None:
    file = parse(write_files=[{"path": "/f"}]).files[0]

    assert (file.content, file.owner, file.append, file.deferred) == (
        b"",
        "root:root",
        False,
        False,
    )


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ({"content": SECRET}, "write_files[0]: path must be an absolute path"),
        ({"path": "etc/x", "content": SECRET}, "write_files[0]: path must be an absolute path"),
        ({"path": "/f", "content": [SECRET]}, "write_files[0]: content must be text or binary"),
        (
            {"path": "/f", "content": f"{SECRET}!", "encoding": "b64"},
            "write_files[0]: it is not base64",
        ),
        (
            {"path": "/f", "content": SECRET, "encoding": "gz"},
            "write_files[0]: it is not gzip data",
        ),
        (SECRET, "write_files[0]: must be a mapping"),
    ],
)
def test_a_faulty_file_is_skipped_and_its_content_not_quoted(entry: object, fault: str) -> None:
    parsed = parse(write_files=[entry, {"path": "/good"}])

    assert parsed.faults == (fault,)
    assert [file.path for file in parsed.files] == ["/good"]


@pytest.mark.parametrize("key", ["ca_certs", "ca-certs"])
def test_both_spellings_of_ca_certs_are_known(key: str) -> None:
    parsed = parse(**{key: {"trusted": ["one", "two"], "remove-defaults": True}})

    assert parsed.ca_certs is not None
    assert parsed.ca_certs.trusted == ("one", "two")
    assert parsed.ca_certs.remove_defaults


def test_without_ca_certs_the_trust_store_is_left_alone() -> None:
    assert parse(runcmd=["true"]).ca_certs is None


def test_commands_are_shell_text_or_programs_with_arguments() -> None:
    parsed = parse(runcmd=["echo $HOME", ["echo", "$HOME", 3], None, {"no": SECRET}])

    assert parsed.commands == ("echo $HOME", ("echo", "$HOME", "3"))
    assert parsed.faults == ("runcmd[3]: must be a string or a list",)


PLAIN = b"#cloud-config\nruncmd: [one]\n"


@pytest.mark.parametrize(
    "packed",
    [
        PLAIN,
        gzip.compress(PLAIN, mtime=0),
        base64.b64encode(gzip.compress(PLAIN, mtime=0)),
        base64.b64encode(PLAIN),
    ],
    ids=["plain", "gzip", "base64 of gzip", "base64"],
)
def test_a_whole_document_may_be_packed(packed: bytes) -> None:
    assert document.parse(packed).commands == ("one",)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"#!/bin/sh\necho " + SECRET.encode(),
        b"#cloud-config\n- " + SECRET.encode(),
        b"#cloud-config\nkey: [" + SECRET.encode(),
        gzip.compress(SECRET.encode() * 9)[:-9],
        b"#cloud-config\n\xff" + SECRET.encode(),
    ],
    ids=["empty", "script", "list", "no yaml", "cut gzip", "no utf-8"],
)
def test_a_document_that_cannot_be_executed_is_refused_without_quoting_it(data: bytes) -> None:
    with pytest.raises(DocumentError) as refused:
        document.parse(data)

    assert str(refused.value).startswith("cannot read document: ")
    assert SECRET not in str(refused.value)
    assert refused.value.__cause__ is None


def test_an_empty_body_does_nothing() -> None:
    parsed = document.parse("#cloud-config\n")

    assert parsed == Document(files=(), ca_certs=None, commands=(), faults=())


def test_a_gzip_bomb_is_refused() -> None:
    bomb = gzip.compress(b"\0" * (decoding.MAX_DECODED_BYTES + 1))

    with pytest.raises(DocumentError, match="unpacks to more than"):
        document.parse(bomb)
