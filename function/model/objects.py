"""Raw objects, as the API server holds them, and the readings that several modules need.

Total readings that answer something empty where nothing fits. A raw object may hold a token
inside user data, so it is never shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from function.contract import names

Raw = Mapping[str, Any]


class Shared(dict[str, Any]):
    """An object that many calls bring, byte for byte; neither it nor its parts ever change.

    Attributes:
        digest: Of its bytes.
        parsed: What `reading.shared` made of it and of others, by what was asked.
    """

    __slots__ = ("digest", "parsed")

    def __init__(self, raw: Raw, digest: bytes) -> None:
        super().__init__(raw)
        self.digest = digest
        self.parsed: dict[object, tuple[tuple[bytes, ...], Any]] = {}


COUNT: Final = re.compile(r"[0-9]{1,9}")
"""A generation as text."""


def mapping(value: object) -> Raw:
    """Return a value if it is a mapping, else an empty one."""
    # Nearly all are: asking the abstract class costs ten times as much.
    if value.__class__ is dict:
        return cast("Raw", value)
    return value if isinstance(value, Mapping) else {}


def metadata(raw: Raw) -> Raw:
    """Return an object's metadata."""
    return mapping(raw.get("metadata"))


def status(raw: Raw) -> Raw:
    """Return an object's status."""
    return mapping(raw.get("status"))


def terminating(raw: Raw) -> bool:
    """Tell whether an object has a deletion time."""
    return bool(metadata(raw).get("deletionTimestamp"))


def generation(raw: Raw) -> int | None:
    """Return the bootstrap generation stamped on an object, or None."""
    text = mapping(metadata(raw).get("annotations")).get(names.ANNOTATION_GENERATION)
    return int(text) if isinstance(text, str) and COUNT.fullmatch(text) else None
