"""The regular expressions that a blueprint may hold a tenant's value to.

A small language that Kubernetes' schemas (RE2), the function and the reconciler (pydantic's
engine, Rust's regex) read alike, and whose cost is bounded: neither engine ever backtracks,
and what a pattern unfolds to is limited beside. The language, and whether a value matches.
Source: docs/decisions/0020.
"""

from __future__ import annotations

import functools
import re
from typing import Annotated, Final

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import SchemaError

PATTERN_MAX: Final = 256
"""Longest pattern, in characters: a grammar of names, not of documents."""

MATCHED_MAX: Final = 512
"""Longest value that is held to a pattern, in characters: all names of clouds are shorter."""

STATES_MAX: Final = 1024
"""Most places that a pattern unfolds to when its counts are written out. The slowest search is
this times `MATCHED_MAX` steps, below half a second; 59,049 places and 4,096 characters took two
minutes."""

_KNOWN_MAX: Final = 1024
"""Patterns that are kept compiled, in a process."""

_TOKEN: Final = re.compile(
    r"(?P<escaped>\\[!-/:-@\[\]^-`{-~])"
    r"|(?P<klass>\[\^?(?:\\[!-/:-@\[\]^-`{-~]|[^\\\[\]])+\])"
    r"|(?P<open>\((?:\?:)?)|(?P<close>\))|(?P<either>\|)"
    r"|(?P<count>\{(?P<least>[0-9]{1,4})(?:,(?P<most>[0-9]{0,4}))?\})|(?P<repeat>[?*+])"
    r"|(?P<char>[^\\\[\](){}|?*+^$])"
)
_SET_OPERATOR: Final = re.compile(r"&&|--|~~|\[:")


def problem(pattern: str) -> str | None:
    """Return the first rule that a pattern breaks, or None where it is one of ours."""
    if len(pattern) > PATTERN_MAX or not pattern.isascii() or not pattern.isprintable():
        return f"must be at most {PATTERN_MAX} printable ASCII characters"
    if len(pattern) < 2 or not (pattern.startswith("^") and pattern.endswith("$")):
        return "must begin with ^ and end with $, so that it matches the whole value"
    if _SET_OPERATOR.search(pattern):
        return "must not contain && -- ~~ [:, which engines read differently in a class"
    found = _Reading().of(pattern[1:-1])
    if found is None and _compiled(pattern) is None:
        return "must be a regular expression that RE2 accepts"
    return found


def matches(pattern: str, value: str) -> bool:
    """Tell whether a value matches; a longer one than `MATCHED_MAX` and a bad pattern never do."""
    adapter = None if len(value) > MATCHED_MAX else _compiled(pattern)
    if adapter is None:
        return False
    try:
        adapter.validate_python(value)
    except ValidationError:
        return False
    return True


@functools.lru_cache(maxsize=_KNOWN_MAX)
def _compiled(pattern: str) -> TypeAdapter[str] | None:
    try:
        return TypeAdapter(Annotated[str, Field(pattern=pattern)])
    except SchemaError:
        return None


class _Reading:
    """One walk through a pattern, its anchors taken off."""

    def __init__(self) -> None:
        self._open = [0]
        """Places of each group that is open, the whole pattern first."""
        self._last: int | None = None
        """Places of what a quantifier would stand on; None where there is nothing."""

    def of(self, body: str) -> str | None:
        at = 0
        while at < len(body):
            found = _TOKEN.match(body, at)
            if found is None:
                return "must use literals, ., [classes], (groups), | and ? * + {n,m} alone"
            wrong = self._take(found)
            if wrong is not None:
                return wrong
            at = found.end()
        self._settle()
        if len(self._open) > 1:
            return "must close each group"
        if self._open[0] > STATES_MAX:
            return f"must unfold to at most {STATES_MAX} characters and classes"
        return None

    def _take(self, found: re.Match[str]) -> str | None:
        match found.lastgroup:
            case "open":
                self._settle()
                self._open.append(0)
            case "close":
                self._settle()
                if len(self._open) == 1:
                    return "must open each group that it closes"
                self._last = max(self._open.pop(), 1)
            case "either":
                self._settle()
                if len(self._open) == 1:
                    return "must hold its alternatives in a group; ^ and $ bind closer than |"
            case "count" | "repeat":
                return self._repeat(found)
            case _:
                self._settle()
                self._last = 1
        return None

    def _repeat(self, found: re.Match[str]) -> str | None:
        if self._last is None:
            return "must have something before each quantifier, and one quantifier on it"
        least, most = int(found["least"] or 1), int(found["most"] or found["least"] or 1)
        if found["count"] and most < least:
            return "must count upwards in {n,m}"
        self._open[-1] += self._last * max(most, 1)
        self._last = None
        return None

    def _settle(self) -> None:
        self._open[-1] += self._last or 0
        self._last = None
