"""Limits how many replacements may begin at once.

Counting, and the beginning itself, so that no two count the same. Machines whose nodes fail
to come in numbers are not what is wrong: a base URL, a certificate or a mesh pool is, and
new machines would fail as well. Source: docs/decisions/0014.
"""

from __future__ import annotations

import asyncio
from collections import deque
from datetime import datetime, timedelta
from typing import Final

from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.replacement import transitions
from reconciler.ports.store.aggregates import BrokerRepository

AT_ONCE_MAX: Final = 3
"""Machines of one XR under way at once: the rest of a pool goes on working meanwhile."""

BEGUN_MAX: Final = 10
PER: Final = timedelta(minutes=1)
"""Machines begun per minute by this process, whosever they are: with the shortest timeout and
three attempts, a common fault costs as many machines a minute as an operator can look at."""


class ReplacementRateLimit:
    """Lets a small number begin."""

    def __init__(self, repository: BrokerRepository) -> None:
        self._repository = repository
        self._lock = asyncio.Lock()
        self._begun: deque[datetime] = deque(maxlen=BEGUN_MAX)

    async def begin(
        self, resource: ProvisionedResource, now: datetime
    ) -> ProvisionedResource | None:
        """Remember that a machine is recreated; None when it is held back.

        Args:
            resource: The aggregate; none is under way for it.
            now: The time, not before its last change.
        """
        async with self._lock:
            # A clock that was set back must not hold everything back for long.
            recent = [at for at in self._begun if timedelta() <= now - at < PER]
            if len(recent) >= BEGUN_MAX or await self._under_way(resource) >= AT_ONCE_MAX:
                return None
            begun = await self._repository.update(transitions.begun(resource, now))
            self._begun.append(now)
            return begun

    async def _under_way(self, resource: ProvisionedResource) -> int:
        xr = (resource.key.group, resource.key.kind, resource.key.name)
        siblings = await self._repository.list_in_namespace(resource.key.namespace)
        return sum(
            (other.key.group, other.key.kind, other.key.name) == xr
            and other.recreating_since is not None
            and other.deletion_requested_at is None
            for other in siblings
        )
