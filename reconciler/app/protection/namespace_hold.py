"""The hold on a Project's namespace, and the count of records in it.

When it is put, counted again and let go. The hold stands before the first row is stored and
goes after the last is Deleted. The count is for people: while many records come at once it
is not written for each, and the controller asks soon for what is uncounted. Source: design §2
"What holds it" 3.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager, suppress
from typing import Final

from reconciler.domain.aggregate.errors import GoingError, NamespaceNotReadyError
from reconciler.ports.cluster.management_cluster import ManagementCluster
from reconciler.ports.store.census import Census

FRESH_S: Final = 2.0
"""How long a hold that was just put is not asked about: one namespace is one hot object."""


class NamespaceHold:
    """Keeps the hold of namespaces equal to their use.

    Memory is one entry per namespace that ever had a record.

    Attributes:
        leaving: Names the records of a namespace whose teardown is not over; what is left to do
            for one takes our rights there, which go with the hold (docs/decisions/0019).
        uncounted: Namespaces that may have other rows than they say. A term that ends forgets
            them; the next one counts each with its Project.
    """

    def __init__(self, census: Census, cluster: ManagementCluster) -> None:
        self._census = census
        self._cluster = cluster
        self.leaving: Callable[[str], Collection[str]] = lambda _namespace: ()
        self.uncounted: set[str] = set()
        self._coming: Counter[str] = Counter()
        self._fresh_until: dict[str, float] = {}
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @asynccontextmanager
    async def one_more(self, namespace: str) -> AsyncIterator[None]:
        """Hold a namespace while a row is stored in it; count it afterwards.

        Whatever becomes of the row, hold and count agree with what is stored soon.

        Raises:
            NamespaceNotReadyError: The namespace is being deleted.
            StaleAggregateError: The namespace was written while it was to be held.

        Idempotency: one that was held within FRESH_S and not let go since is left alone.
        """
        self._coming[namespace] += 1
        try:
            if not self._fresh(namespace):
                async with self._turns[namespace]:
                    if not self._fresh(namespace):
                        await self._take(namespace)
            yield
        finally:
            self._coming[namespace] -= 1
            self.uncounted.add(namespace)

    async def _take(self, namespace: str) -> None:
        try:
            await self._hold(namespace, await self._expected(namespace))
        except GoingError as error:
            message = f"metadata.namespace: {error}"
            raise NamespaceNotReadyError(message) from error

    async def settle(self, namespace: str, *, last: str = "") -> None:
        """Make hold and count agree with what is stored.

        Nothing is released while a record there is still leaving; it stays uncounted.

        Args:
            namespace: Which.
            last: The record that asks, once nothing is left to do for it there.

        Raises:
            StaleAggregateError: The namespace was written meanwhile; it stays uncounted.

        Idempotency: recomputed from the rows each time; equal ones write nothing.
        """
        async with self._turns[namespace]:
            # First: of a row that is stored while it is counted, one does not know.
            self.uncounted.discard(namespace)
            try:
                await self._agree(namespace, last)
            except BaseException:
                self.uncounted.add(namespace)
                raise

    async def _agree(self, namespace: str, last: str) -> None:
        count = await self._expected(namespace)
        if count:
            # One that goes and was never held takes nothing in, and lets nothing more be said.
            with suppress(GoingError):
                await self._hold(namespace, count)
            return
        if set(self.leaving(namespace)) - {last}:
            self.uncounted.add(namespace)
            return
        self._fresh_until.pop(namespace, None)

        async def needed() -> bool:
            return await self._expected(namespace) > 0

        await self._cluster.namespaces.hold_namespace(namespace, records=0, needed=needed)

    async def _expected(self, namespace: str) -> int:
        """Return how many rows there are, at least one while any is being stored."""
        coming = self._coming[namespace] > 0
        return await self._census.count_in_namespace(namespace) or int(coming)

    async def _hold(self, namespace: str, records: int) -> None:
        await self._cluster.namespaces.hold_namespace(namespace, records=records)
        self._fresh_until[namespace] = asyncio.get_running_loop().time() + FRESH_S

    def _fresh(self, namespace: str) -> bool:
        return asyncio.get_running_loop().time() < self._fresh_until.get(namespace, 0.0)
