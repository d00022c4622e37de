"""Text of others as it can be stored: Postgres takes neither U+0000 nor half a surrogate pair.

The escaped form. Names of users come from identity providers and messages from clouds:
neither may keep a deed from being done or audited. Source: Postgres, "Character Types",
"JSON Types"; RFC 8259 §7.
"""

from __future__ import annotations

import json
import re
from typing import Final

_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")


def storable(text: str) -> str:
    """Return a text as it is or, where it cannot be stored, as JSON writes it, in quotes.

    No two texts become one: what begins with a quote is written so, too.
    """
    return json.dumps(text) if text.startswith('"') or _UNSTORABLE.search(text) else text
