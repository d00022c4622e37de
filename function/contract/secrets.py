"""The one type that holds a bootstrap token's plaintext.

The redacting wrapper. Whoever must write the plaintext to its destination calls `reveal`,
and the architecture test lists those callers.
"""

from __future__ import annotations

from typing import Final, NoReturn

REDACTED: Final = "[redacted]"


class TokenPlaintext:
    """A bootstrap token that shows itself to nobody but the caller of `reveal`.

    `str`, `repr`, `format`, pickling and JSON give the redaction or fail, so that a
    token which strays into a log line or an error stays unread.

    Source: design, section 5 "Tokens"; seed 003, "Token secrecy and TTL posture".
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the plaintext, for the one place that delivers or verifies it."""
        return self._value

    def __repr__(self) -> str:
        return f"TokenPlaintext({REDACTED})"

    def __str__(self) -> str:
        return REDACTED

    def __format__(self, format_spec: str) -> str:
        return REDACTED

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __reduce__(self) -> NoReturn:
        message = "cannot serialise a token plaintext"
        raise TypeError(message)
