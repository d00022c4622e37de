"""Decodes user data: gzip and base64 in the forms that cloud-init accepts.

Pure and bounded. Used for whole documents and for the contents of ``write_files``; ``document``
is the only importer.
"""

from __future__ import annotations

import base64
import binascii
import zlib

# Clouds accept 16 to 64 KiB of user data; anything far beyond is a mistake or a bomb.
MAX_DECODED_BYTES = 8 * 1024 * 1024
_GZIP_MAGIC = b"\x1f\x8b"
# zlib's way to say "expect a gzip header".
_GZIP_WINDOW = 16 + zlib.MAX_WBITS

_ENCODINGS: dict[str, tuple[str, ...]] = {
    "": (),
    "text/plain": (),
    "gz": ("gzip",),
    "gzip": ("gzip",),
    "b64": ("base64",),
    "base64": ("base64",),
    "gz+b64": ("base64", "gzip"),
    "gz+base64": ("base64", "gzip"),
    "gzip+b64": ("base64", "gzip"),
    "gzip+base64": ("base64", "gzip"),
}


class DecodingError(ValueError):
    """Data is not in the encoding it is said to be in; the text never quotes the data."""


def gunzip(data: bytes) -> bytes:
    """Unpacks gzip data.

    Raises:
        DecodingError: not gzip, cut short, or larger than ``MAX_DECODED_BYTES`` unpacked.
    """
    unpacker = zlib.decompressobj(_GZIP_WINDOW)
    try:
        content = unpacker.decompress(data, MAX_DECODED_BYTES)
    except zlib.error:
        message = "it is not gzip data"
        raise DecodingError(message) from None
    if unpacker.unconsumed_tail or not unpacker.eof:
        message = f"its gzip data is cut short or unpacks to more than {MAX_DECODED_BYTES} bytes"
        raise DecodingError(message)
    return content


def unbase64(data: bytes) -> bytes:
    """Decodes base64, white space ignored.

    Raises:
        DecodingError: not base64.
    """
    try:
        return base64.b64decode(b"".join(data.split()), validate=True)
    except binascii.Error:
        message = "it is not base64"
        raise DecodingError(message) from None


def decode(data: bytes, encoding: str) -> bytes:
    """Decodes one file's content; an unknown encoding is plain text, as cloud-init has it.

    Raises:
        DecodingError: the content does not fit the encoding.

    Source: cloud-init, module ``write_files``, key ``encoding``.
    """
    for step in _ENCODINGS.get(encoding.strip().lower(), ()):
        data = gunzip(data) if step == "gzip" else unbase64(data)
    return data


def unwrap(user_data: str | bytes) -> bytes:
    """Answers the document behind user data that may be gzip, or base64 of gzip or of text.

    A Kubernetes string cannot hold raw gzip, so packed documents travel as base64 of it.

    Raises:
        DecodingError: it starts like gzip and is broken.
    """
    data = user_data.encode() if isinstance(user_data, str) else user_data
    if not data.startswith((_GZIP_MAGIC, b"#")):
        try:
            data = unbase64(data)
        except DecodingError:
            return data
    return gunzip(data) if data.startswith(_GZIP_MAGIC) else data
