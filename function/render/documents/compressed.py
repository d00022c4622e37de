"""Compresses a cloud-config body into one with the same meaning.

Which parts shrink and how.

Two things make a document large. Files shrink by gzip, carried as text
(`encoding: gz+b64`); one that would grow, as the token's would, stays readable. CA
certificates hardly shrink: they are base64 of what looks random, and base64 of their gzip
is nearly as long. But they stand twice, as a file and as what to trust, so the file is
written certificate by certificate and both places name one text by a YAML alias.
Source: cloud-init's module `write_files`, keys `encoding` and `append`; YAML 1.1, section
7.1; docs/decisions/0008.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from function.render.documents.yaml import SharedText

ENCODING: Final = "gz+b64"

_LEVEL: Final = 9
_HEADER: Final = bytes((0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 2, 255))
"""Gzip header without name and time, of an unknown system: what `gzip.compress` writes
there differs between Python releases. Source: RFC 1952, section 2.3."""


def gzipped(data: bytes) -> bytes:
    """Return data as one gzip member, the same for equal data and one zlib.

    zlib promises no equal bytes across its releases and replacements such as zlib-ng. It
    need not: a bootstrap field is rendered once and then kept from what is observed.

    Source: RFC 1952.
    """
    deflate = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = deflate.compress(data) + deflate.flush()
    return _HEADER + body + struct.pack("<II", zlib.crc32(data), len(data))


def compressed(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a body that writes the same files and trusts the same certificates.

    Args:
        body: A cloud-config; what it has beside `write_files` and `ca_certs` stays as it
            is. It is not changed.
    """
    made = dict(body)
    trusted = tuple(made.get("ca_certs", {}).get("trusted", ()))
    texts = {text: SharedText(text) for text in trusted}
    files: list[dict[str, Any]] = []
    for file in made.get("write_files", ()):
        if trusted and file["content"] == "".join(trusted):
            files.extend(_in_pieces(file, [texts[text] for text in trusted]))
        else:
            files.append(_packed(file))
    if files:
        made["write_files"] = files
    if trusted:
        shared = [texts[text] for text in trusted]
        made["ca_certs"] = {**made["ca_certs"], "trusted": shared}
    return made


def _packed(file: Mapping[str, Any]) -> dict[str, Any]:
    content = file["content"]
    text = base64.b64encode(gzipped(content.encode())).decode("ascii")
    if len(text) + len(f"encoding: {ENCODING}") >= len(content.encode()):
        return dict(file)
    return {**file, "encoding": ENCODING, "content": text}


def _in_pieces(file: Mapping[str, Any], pieces: Sequence[SharedText]) -> list[dict[str, Any]]:
    return [
        {**file, "content": piece} | ({"append": True} if index else {})
        for index, piece in enumerate(pieces)
    ]
