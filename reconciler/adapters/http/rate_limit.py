"""Limits how often one address, or one Project, may ask.

Token buckets in bounded memory, and whose bucket an address spends from. Of one process:
several replicas together allow a multiple.
"""

from __future__ import annotations

import ipaddress
import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

KEYS_MAX: Final = 10_000
"""Keys remembered at once, about two megabytes; the longest unused is forgotten first."""


IPV6_PREFIX: Final = 64
"""What one customer gets: within it, addresses cost nothing (RFC 6177, RFC 4291 §2.5.4)."""


def address_key(address: str | None) -> str:
    """Return whose budget an address spends: IPv4 its own, IPv6 that of its /64.

    Args:
        address: As the socket names it; None when it has none.
    """
    try:
        parsed = ipaddress.ip_address((address or "").partition("%")[0])
    except ValueError:
        return "unknown"
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.IPv6Network((parsed, IPV6_PREFIX), strict=False))


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled_at_s: float


class TokenBuckets:
    """Implements `ports.registration.Budget` with one bucket per key.

    Args:
        per_second: How fast a bucket refills; also its size, so a burst is one second's.
        monotonic: A clock in seconds that never goes back.
        at_once: What a bucket holds at least.
    """

    def __init__(
        self, *, per_second: float, monotonic: Callable[[], float], at_once: int = 1
    ) -> None:
        self._per_second = per_second
        self._size = max(float(at_once), per_second)
        self._monotonic = monotonic
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, key: str) -> int | None:
        """Spend one from a key's budget; whole seconds to wait when there is none."""
        now_s = self._monotonic()
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = _Bucket(tokens=self._size, filled_at_s=now_s)
            self._buckets[key] = bucket
            if len(self._buckets) > KEYS_MAX:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(key)
        earned = (now_s - bucket.filled_at_s) * self._per_second
        bucket.tokens = min(self._size, bucket.tokens + earned)
        bucket.filled_at_s = now_s
        if bucket.tokens >= 1:
            bucket.tokens -= 1
            return None
        return max(1, math.ceil((1 - bucket.tokens) / self._per_second))

    def give_back(self, key: str) -> None:
        """Return what was taken for nothing; a bucket that was forgotten is full."""
        bucket = self._buckets.get(key)
        if bucket is not None:
            bucket.tokens = min(self._size, bucket.tokens + 1)
