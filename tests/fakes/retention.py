"""What is over, in memory."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID, uuid4

from reconciler.ports.registration import StoreUnavailableError
from reconciler.ports.store.retention import Remains, RetentionBatch


@dataclass
class InMemoryRetention:
    """Keeps the promises of `ports.store.retention.RetentionStore`.

    Attributes:
        over: For how long each row has been over, by kind and id.
        calls: Kind and first id of each batch.
        busy: Another process is at it.
        fails: How many of the next calls fail.
        emptied: Set by a batch that found something and left nothing that is over.
    """

    over: dict[Remains, dict[UUID, timedelta]] = field(default_factory=dict)
    calls: list[tuple[Remains, UUID | None]] = field(default_factory=list)
    busy: bool = False
    fails: int = 0
    emptied: asyncio.Event = field(default_factory=asyncio.Event)

    def leave(self, remains: Remains, *ages: timedelta) -> None:
        """Leave rows behind that have been over for so long."""
        self.over.setdefault(remains, {}).update({uuid4(): age for age in ages})

    async def remove(
        self, remains: Remains, *, keep: timedelta, after: UUID | None, limit: int
    ) -> RetentionBatch | None:
        """Remove rows of a kind that have been over for longer than `keep`, by id."""
        self.calls.append((remains, after))
        if self.fails:
            self.fails -= 1
            message = f"cannot remove {remains}: the store is unreachable"
            raise StoreUnavailableError(message)
        if self.busy:
            return None
        rows = self.over.setdefault(remains, {})
        old = sorted(key for key, age in rows.items() if age > keep)
        behind = [key for key in old if after is None or key > after][:limit]
        for key in behind:
            del rows[key]
        if behind and len(behind) == len(old):
            self.emptied.set()
        return RetentionBatch(
            removed=len(behind), last=behind[-1] if len(behind) == limit else None
        )
