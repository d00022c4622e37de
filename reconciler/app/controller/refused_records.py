"""Enqueues refused records again when what they may wait for changes.

Which records these are, and how often all of them are asked at once. A cold start hears of
every Project, and each may be what all of them wait for: however many changes come, a
second of them is one pass. Source: design §5.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from reconciler.app.queue.keys import RecordKey

PAUSE_S: Final = 1.0
"""From one pass to the next; the first change after that is passed on at once."""

CHUNK: Final = 500
"""Records that are asked without letting anybody else run: about a millisecond."""


class RefusedRecords:
    """Keeps them, and passes changes on.

    Memory is one entry per record.

    Args:
        ask: Asks for a record to be looked at soon.
    """

    def __init__(self, ask: Callable[[RecordKey], None]) -> None:
        self._ask = ask
        self._keys: dict[RecordKey, None] = {}
        self._pausing = False
        self._changed = False

    def add(self, key: RecordKey) -> None:
        """Note that a record is not admitted."""
        self._keys[key] = None

    def discard(self, key: RecordKey) -> None:
        """Note that a record is admitted, or gone."""
        self._keys.pop(key, None)

    def ask_again(self) -> None:
        """Hear of a change that any of them may wait for; needs a running loop.

        Idempotency: what changes within PAUSE_S of a pass is one more pass, at its end.
        """
        if self._pausing:
            self._changed = True
            return
        self._pausing = True
        self._changed = False
        self._pass_on(tuple(self._keys))
        asyncio.get_running_loop().call_later(PAUSE_S, self._pause_over)

    def _pause_over(self) -> None:
        self._pausing = False
        if self._changed:
            self.ask_again()

    def _pass_on(self, keys: Sequence[RecordKey], start: int = 0) -> None:
        for key in keys[start : start + CHUNK]:
            if key in self._keys:
                self._ask(key)
        if start + CHUNK < len(keys):
            asyncio.get_running_loop().call_soon(self._pass_on, keys, start + CHUNK)
