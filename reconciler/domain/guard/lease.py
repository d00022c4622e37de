"""The pace of a lease: how long its holder may act, and how often it renews.

The arithmetic of one term, over times that are given. Source: docs/decisions/0015.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

TTL_DEFAULT: Final = timedelta(seconds=8)
"""With a second of polling and one sweep, somebody else drives within fifteen seconds."""
TTL_MIN: Final = timedelta(seconds=4)
"""Below it, one slow answer of a busy store ends a term."""
TTL_MAX: Final = timedelta(seconds=60)
_ASK_MAX: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The times of a lease, each a part of how long it lasts in the store.

    Attributes:
        ttl: How long a lease lasts after it was taken or renewed, by the store's clock.
    """

    ttl: timedelta

    @property
    def renewed_every(self) -> timedelta:
        """How often a holder renews: two of them may fail before it must stop."""
        return self.ttl / 4

    @property
    def held_for(self) -> timedelta:
        """How long a holder acts after it asked, by its own clock; a quarter is the margin.

        It counts from before the question was sent, the store from when it wrote the answer.
        """
        return self.ttl * 3 / 4

    @property
    def asked_every(self) -> timedelta:
        """How often who stands by looks whether the time of the holder is over."""
        return min(_ASK_MAX, self.ttl / 8)
