"""The hold on a Project's namespace, and the count of records in it.

Belongs here: when it is put, counted anew and let go. Not here: the calls (`ports.cluster`). The
hold stands before the first row is stored and goes after the last is Deleted. The count is for
people: while many records come at once it is not written for each, and the driver asks soon
for what is uncounted.
Source: design §2 "What holds it" 3.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from reconciler.ports.census import Census
from reconciler.ports.cluster import ManagementCluster

FRESH_S: Final = 2.0
"""How long a hold that was just put is not asked about: one namespace is one hot object."""


class NamespaceHold:
    """Keeps the hold of namespaces equal to their use.

    Memory is one entry per namespace that ever had a record.

    Attributes:
        uncounted: Namespaces that may have other rows than they say. A term that ends forgets
            them; the next one counts each with its Project.
    """

    def __init__(self, census: Census, cluster: ManagementCluster) -> None:
        self._census = census
        self._cluster = cluster
        self.uncounted: set[str] = set()
        self._coming: Counter[str] = Counter()
        self._fresh_until: dict[str, float] = {}
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @asynccontextmanager
    async def one_more(self, namespace: str) -> AsyncIterator[None]:
        """Hold a namespace while a row is stored in it; count it afterwards.

        Whatever becomes of the row, hold and count agree with what is stored soon.

        Raises:
            StaleAggregateError: The namespace was written while it was to be held.

        Idempotency: one that was held within FRESH_S and not let go since is left alone.
        """
        self._coming[namespace] += 1
        try:
            if not self._fresh(namespace):
                async with self._turns[namespace]:
                    if not self._fresh(namespace):
                        await self._hold(namespace, await self._expected(namespace))
            yield
        finally:
            self._coming[namespace] -= 1
            self.uncounted.add(namespace)

    async def settle(self, namespace: str) -> None:
        """Make hold and count agree with what is stored.

        Raises:
            StaleAggregateError: The namespace was written meanwhile; it stays uncounted.

        Idempotency: recomputed from the rows each time; equal ones write nothing.
        """
        async with self._turns[namespace]:
            # First: of a row that is stored while it is counted, one does not know.
            self.uncounted.discard(namespace)
            try:
                await self._agree(namespace)
            except BaseException:
                self.uncounted.add(namespace)
                raise

    async def _agree(self, namespace: str) -> None:
        count = await self._expected(namespace)
        if count:
            await self._hold(namespace, count)
            return
        self._fresh_until.pop(namespace, None)

        async def needed() -> bool:
            return await self._expected(namespace) > 0

        await self._cluster.hold_namespace(namespace, records=0, needed=needed)

    async def _expected(self, namespace: str) -> int:
        """Return how many rows there are, at least one while any is being stored."""
        coming = self._coming[namespace] > 0
        return await self._census.count_in_namespace(namespace) or int(coming)

    async def _hold(self, namespace: str, records: int) -> None:
        await self._cluster.hold_namespace(namespace, records=records)
        self._fresh_until[namespace] = asyncio.get_running_loop().time() + FRESH_S

    def _fresh(self, namespace: str) -> bool:
        return asyncio.get_running_loop().time() < self._fresh_until.get(namespace, 0.0)
