"""Redacts tokens from messages of third parties.

Taking tokens and user data out of texts of providers and of the record. A provider may
quote the user data that it refuses: as it is, as base64, or packed, where no token can be
found any more.
"""

from __future__ import annotations

import re
from typing import Final

from function.contract.secrets import REDACTED

_TOKEN: Final = re.compile(
    r"psb_[A-Za-z0-9_]+"
    # The same beginning in base64, at each of its three alignments.
    r"|(?:cHNiX|BzYl|wc2Jf)[A-Za-z0-9+/=\r\n]{8,}"
)
"""What a bootstrap token looks like; base64 goes to the end of its run."""


_BEGINNINGS: Final = ("psb_", "cHNiX", "BzYl", "wc2Jf")

_DOCUMENT: Final = re.compile(
    r"#cloud-config|I2Nsb3VkLWNvbmZpZ|H4sI|#!\s?/|IyEv|Content-Type: multipart"
)
"""How user data begins: a document or a script, as it is or as base64, or gzip as base64."""

_RUN: Final = re.compile(r"[A-Za-z0-9+/_=]{60,}")
"""Nothing that people read is a word of sixty letters; something encoded is."""


def redacted(text: str) -> str:
    """Return a text without anything that looks like a bootstrap token. Idempotent."""
    # Four plain searches cost a tenth of the pattern's, and nearly no text holds any.
    if not any(beginning in text for beginning in _BEGINNINGS):
        return text
    return _TOKEN.sub(REDACTED, text)


def provider_message(text: str, *, longest: int) -> str:
    """Return what a provider says as one bounded line without tokens and user data.

    From where user data begins nothing is told: what is packed hides its token.

    Args:
        text: Its words.
        longest: Characters that are told at most.
    """
    found = _DOCUMENT.search(text)
    said = text if found is None else text[: found.start()] + REDACTED
    line = " ".join(_RUN.sub(REDACTED, redacted(said)).split())
    return line[:longest].rstrip()
