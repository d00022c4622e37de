"""Labels as cloud tags.

Belongs here: the encoding of a declared label for a provider. Not here: which labels are
declared. One deterministic encoding that every provider accepts; provider-specific rules
and the report of what was changed are a later step.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from function.contract.strategy import CloudProvider

_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST: Final = 63
"""The shortest limit among the providers (GCP and Hetzner label values)."""


def cloud_tags(provider: CloudProvider, labels: Mapping[str, str]) -> dict[str, str]:
    """Return labels as tags that are legal on every provider, in key order.

    Characters outside `[A-Za-z0-9_-]` become `_`, keys and values are cut at 63
    characters, and of labels that end up with one key the first in sorted order stays.

    Args:
        provider: Ignored for now: the encoding is the common denominator.
        labels: What was declared.
    """
    del provider
    tags: dict[str, str] = {}
    for key in sorted(labels):
        tags.setdefault(_encoded(key), _encoded(labels[key]))
    return tags


def _encoded(text: str) -> str:
    return _ILLEGAL.sub("_", text)[:_LONGEST]
