"""Objects as plain mappings, and the YAML they come from.

Reading and naming them. Everything in `dev` and the tests may import it.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

Object = dict[str, Any]
Source = Path | Mapping[str, Any]


def documents(sources: Iterable[Source]) -> Iterator[Object]:
    """Yield objects from files, from folders (each `.yaml` below, by name), and as given."""
    for source in sources:
        if not isinstance(source, Path):
            yield dict(source)
            continue
        for file in sorted(source.rglob("*.yaml")) if source.is_dir() else [source]:
            with file.open(encoding="utf-8") as text:
                yield from filter(None, yaml.safe_load_all(text))


def title(item: Mapping[str, Any]) -> str:
    """Name an object for people."""
    metadata = item.get("metadata") or {}
    place = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{item.get('kind')} {place}{metadata.get('name')}"
