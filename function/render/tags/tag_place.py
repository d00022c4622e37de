"""The field of a third-party resource that takes cloud tags.

The three forms that providers have, and merging beside tags that are there already, which
stay.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from function.contract.errors import ContractError
from function.render.fields import fieldpath
from function.render.tags import encoding

_PAIRS: Final = re.compile(r"(?P<path>.+)\[(?P<key>[A-Za-z]+),(?P<value>[A-Za-z]+)\]")
_TEXTS: Final = "[]"


@dataclass(frozen=True, slots=True, kw_only=True)
class TagPlace:
    """A place for tags.

    Attributes:
        path: The map or the list.
        pair: Of a list of objects: what an item calls its key and its value.
        texts: A list of texts, `key=value` each.
    """

    path: fieldpath.Path
    pair: tuple[str, str] | None = None
    texts: bool = False


def parse(field: str, text: str) -> TagPlace:
    """Return the place that a text says.

    `spec.a.tags` is a map, `spec.a.tag[key,value]` a list of objects with these fields,
    `spec.a.tags[]` a list of texts.

    Raises:
        ContractError: The path is none.
    """
    pairs = _PAIRS.fullmatch(text)
    if pairs is not None:
        path = fieldpath.parse(field, pairs["path"])
        return TagPlace(path=path, pair=(pairs["key"], pairs["value"]))
    if text.endswith(_TEXTS):
        return TagPlace(path=fieldpath.parse(field, text.removesuffix(_TEXTS)), texts=True)
    return TagPlace(path=fieldpath.parse(field, text))


def put(manifest: dict[str, Any], place: TagPlace, encoded: Mapping[str, str]) -> None:
    """Add tags to a manifest; a key that is there already keeps its value.

    Idempotency: adding the same tags again changes nothing.

    Raises:
        ContractError: Something else stands at the place.
    """
    if not encoded:
        return
    there = fieldpath.read(manifest, place.path)
    wanted: type = list if place.pair is not None or place.texts else dict
    if there is not None and not isinstance(there, wanted):
        form = "list" if wanted is list else "map"
        raise ContractError(field=fieldpath.show(place.path), rule=f"must be a {form} of tags")
    fieldpath.write(manifest, place.path, _merged(place, there or wanted(), encoded))


def _merged(place: TagPlace, there: Any, encoded: Mapping[str, str]) -> Any:
    if place.pair is not None:
        key, value = place.pair
        keys = [item.get(key) for item in there if isinstance(item, Mapping)]
        fresh = {name: text for name, text in encoded.items() if name not in keys}
        return [*there, *encoding.as_list(fresh, key, value)]
    if place.texts:
        held = {str(item).partition("=")[0] for item in there}
        return [*there, *(f"{k}={v}" for k, v in sorted(encoded.items()) if k not in held)]
    return {**encoded, **there}
