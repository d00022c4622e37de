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
_SEPARATORS: Final = "_-"
_LONGEST: Final = 63
"""The shortest limit among the providers, in characters (GCP and Hetzner labels)."""


def cloud_tags(provider: CloudProvider, labels: Mapping[str, str]) -> dict[str, str]:
    """Return labels as tags that are legal on every provider, in the labels' key order.

    Characters outside `[A-Za-z0-9_-]` become `_` and letters lower case; separators at the
    ends go; what is longer than 63 characters is cut. A key that does not begin with a
    letter gets an `x` before it, a value may be empty. Of labels that end up with one key
    the first in sorted order stays.

    Args:
        provider: Ignored for now: the encoding is the common denominator.
        labels: What was declared.
    Source: the providers' rules for labels: GCP's keys begin with a lower-case letter and
        hold no upper case, Hetzner's keys and values begin and end with a letter or digit.
    """
    del provider
    tags: dict[str, str] = {}
    for key in sorted(labels):
        tags.setdefault(_key(key), _encoded(labels[key]))
    return tags


def _key(text: str) -> str:
    key = _encoded(text)
    return key if key[:1].isalpha() else _encoded(f"x{key}")


def _encoded(text: str) -> str:
    plain = _ILLEGAL.sub("_", text).lower()
    return plain.lstrip(_SEPARATORS)[:_LONGEST].rstrip(_SEPARATORS)
