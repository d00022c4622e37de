"""What a provider says is told on as one line, without tokens and user data."""

from __future__ import annotations

import base64
import gzip

import pytest

from function.contract import redaction
from tests.unit.function import given

DOCUMENT = f"#cloud-config\nruncmd: [plexd, {given.TOKEN}]\n" * 8
_PACKED = gzip.compress(DOCUMENT.encode())
FORMS = {
    "text": DOCUMENT,
    "base64": base64.b64encode(DOCUMENT.encode()).decode(),
    "gzip": base64.b64encode(_PACKED).decode(),
    "gzip in lines": base64.encodebytes(_PACKED).decode(),
    "gzip from its middle": base64.b64encode(_PACKED).decode()[40:],
    "script": f"#!/bin/sh\nplexd {given.TOKEN}",
    "mime": f"Content-Type: multipart/mixed\n\n{given.TOKEN}",
}


@pytest.mark.parametrize("form", FORMS)
def test_user_data_is_left_out_in_any_form(form: str) -> None:
    said = redaction.provider_message(
        f'cannot create: userData "{FORMS[form]}" too long', longest=512
    )

    assert said.startswith('cannot create: userData "[redacted]')
    assert given.TOKEN not in said
    body = FORMS[form].replace("\n", "")
    assert not any(body[at : at + 24] in said for at in range(0, max(1, len(body) - 24), 8))


def test_a_plain_sentence_is_told_as_it_is() -> None:
    said = "api error InvalidAMIID.NotFound: The image id '[ami-0123456789abcdef0]' does not exist"

    assert redaction.provider_message(said, longest=512) == said


def test_it_is_one_line_of_bounded_length() -> None:
    assert redaction.provider_message("one\n\ttwo " * 400, longest=12) == "one two one"
