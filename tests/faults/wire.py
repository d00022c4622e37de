"""Side effects where they are real: mutating HTTP requests and commits, and what befalls them.

Seeing each effect of one process on an API server and on Postgres, in order, and killing
the process before or after one, failing it or losing its answer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum, unique
from typing import Any, Final

import asyncpg

from reconciler.adapters.kubernetes.transport.client import KubernetesError
from tests.simulation.evidence import made
from tests.simulation.schedule import Kind

_READS: Final = frozenset({"GET", "HEAD"})
_REVIEWS: Final = "/apis/authorization.k8s.io/"
"""Questions in the shape of a POST; nothing is stored."""

_CHANGES: Final = re.compile(
    r"\b(INSERT INTO|UPDATE|DELETE FROM)\s+plexsphere\.(\w+)"
    r"|\bplexsphere\.(register_node|take_out_node)\s*\("
)


@unique
class Mode(StrEnum):
    """What befalls one effect.

    Members:
        KILL_BEFORE: The process dies before it; nothing happens.
        KILL_AFTER: The process dies right after it.
        FAIL: It is refused once; nothing happens.
        LOSE: It happens, and its answer is lost (faults 12 and 25).
        REPEAT: The step that it is part of is done twice.
        EVER: It is refused from then on, until it is mended.
    """

    KILL_BEFORE = "kill-before"
    KILL_AFTER = "kill-after"
    FAIL = "fail"
    LOSE = "lose"
    REPEAT = "repeat"
    EVER = "ever"


_SIMULATED: Final = {
    Mode.KILL_BEFORE: Kind.KILL_BEFORE,
    Mode.KILL_AFTER: Kind.KILL_AFTER,
    Mode.FAIL: Kind.REFUSED,
    Mode.LOSE: Kind.REPLY_LOST,
}
"""What the simulation calls them."""


class KilledError(BaseException):
    """The process is gone; nothing of it may handle this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One side effect of a phase of a life.

    Attributes:
        label: Method and kind, or what a transaction changed.
        nth: Which of those with this label, counted from one.
    """

    label: str
    nth: int = 1

    def __str__(self) -> str:
        return self.label if self.nth == 1 else f"{self.label} ({self.nth})"


def effects(trail: Sequence[str]) -> list[Effect]:
    """Return the effects of a trail in their order."""
    seen: Counter[str] = Counter()
    found = []
    for label in trail:
        seen[label] += 1
        found.append(Effect(label=label, nth=seen[label]))
    return found


@dataclass(slots=True)
class Wire:
    """The effects of one phase of a life, in order, and the one that something befalls.

    Attributes:
        trail: The labels of those that were asked for since the phase began.
        attempts: How often the effect that fails for ever was tried.
        struck: Whether it has come to the chosen effect.
        meddle: Called with method and path before each request that changes something; may
            change what it is about, or raise what the API server would answer.
    """

    trail: list[str] = field(default_factory=list)
    attempts: int = 0
    struck: bool = False
    meddle: Callable[[str, str], Awaitable[None]] | None = None
    _mode: Mode | None = None
    _effect: Effect | None = None
    _repeat_due: int = 0

    def begin(self, mode: Mode | None = None, effect: Effect | None = None) -> None:
        """Begin a phase in which something befalls one effect; without any, nothing does."""
        self.trail.clear()
        self.attempts, self.struck, self._repeat_due = 0, False, 0
        self._mode, self._effect = mode, effect

    def mend(self) -> None:
        """Let what failed for ever work again."""
        self._mode = None

    async def effect(
        self,
        label: str,
        act: Callable[[], Awaitable[Any]],
        *,
        refusal: Exception,
        silence: Exception,
    ) -> Any:
        """Do an effect, or what befalls it.

        Args:
            label: Method and kind, or what a transaction changed.
            act: Does it.
            refusal: Raised instead of doing it.
            silence: Raised after it was done.
        """
        self.trail.append(label)
        mode = self._befalls(label)
        if mode in _SIMULATED:
            made(_SIMULATED[mode])
        if mode is Mode.KILL_BEFORE:
            raise KilledError
        if mode in (Mode.FAIL, Mode.EVER):
            raise refusal
        done = await act()
        if mode is Mode.KILL_AFTER:
            raise KilledError
        if mode is Mode.LOSE:
            raise silence
        return done

    @property
    def befell(self) -> bool:
        """Whether it befell the chosen effect; a step is done twice only after its first time."""
        return self.struck and not self._repeat_due

    def repeats(self, before: int) -> bool:
        """Tell, once, whether the effect to be repeated is among those since `before`."""
        due = before < self._repeat_due
        self._repeat_due = 0 if due else self._repeat_due
        return due

    def _befalls(self, label: str) -> Mode | None:
        chosen = self._effect
        if chosen is None or label != chosen.label:
            return None
        if self._mode is Mode.EVER:
            self.struck = True
            self.attempts += 1
            return Mode.EVER
        if self.struck or self.trail.count(label) != chosen.nth:
            return None
        self.struck = True
        if self._mode is Mode.REPEAT:
            self._repeat_due = len(self.trail)
        return self._mode


class WiredClient:
    """A `KubernetesClient` whose writes are effects."""

    def __init__(self, inner: Any, wire: Wire) -> None:
        self._inner = inner
        self._wire = wire

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def request(self, method: str, path: str, **options: Any) -> Any:
        """Send a request; see `KubernetesClient.request`."""

        async def act() -> Any:
            return await self._inner.request(method, path, **options)

        if method in _READS or path.startswith(_REVIEWS):
            return await act()
        label = f"{method} {_kind(path, creates=method == 'POST')}"
        if self._wire.meddle is not None:
            await self._wire.meddle(method, path)
        refusal = KubernetesError(attempted=label, status=403, reason="Forbidden", detail="a test")
        return await self._wire.effect(label, act, refusal=refusal, silence=TimeoutError())


class WiredPool:
    """An `asyncpg.Pool` whose commits are effects."""

    def __init__(self, inner: Any, wire: Wire) -> None:
        self._inner = inner
        self._wire = wire

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @asynccontextmanager
    async def acquire(self, **options: Any) -> AsyncIterator[Any]:
        """Lend a connection whose commits are effects."""
        async with self._inner.acquire(**options) as connection:
            yield _WiredConnection(connection, self._wire)

    async def execute(self, statement: str, *arguments: Any, **options: Any) -> Any:
        """Execute a statement; a change is a commit of its own."""
        return await _one(self._inner.execute, self._wire, statement, *arguments, **options)

    async def fetch(self, statement: str, *arguments: Any, **options: Any) -> Any:
        """Fetch all rows."""
        return await _one(self._inner.fetch, self._wire, statement, *arguments, **options)

    async def fetchrow(self, statement: str, *arguments: Any, **options: Any) -> Any:
        """Fetch one row."""
        return await _one(self._inner.fetchrow, self._wire, statement, *arguments, **options)

    async def fetchval(self, statement: str, *arguments: Any, **options: Any) -> Any:
        """Fetch one value."""
        return await _one(self._inner.fetchval, self._wire, statement, *arguments, **options)


class _WiredConnection:
    """A connection that knows what its open transaction has changed."""

    def __init__(self, inner: Any, wire: Wire) -> None:
        self._inner = inner
        self._wire = wire
        self._changed: list[str] | None = None

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if name not in {"execute", "executemany", "fetch", "fetchrow", "fetchval"}:
            return method

        async def call(statement: str, *arguments: Any, **options: Any) -> Any:
            if self._changed is None:
                return await _one(method, self._wire, statement, *arguments, **options)
            self._changed += _changes(statement)
            return await method(statement, *arguments, **options)

        return call

    @asynccontextmanager
    async def transaction(self, **options: Any) -> AsyncIterator[None]:
        """Open a transaction; its end is an effect if it changed anything."""
        if self._changed is not None:
            async with self._inner.transaction(**options):
                yield
            return
        self._changed = []
        transaction = self._inner.transaction(**options)
        await transaction.start()
        try:
            yield
            if self._changed:
                await self._wire.effect(
                    _commit(self._changed), transaction.commit,
                    refusal=_cut_off(), silence=_cut_off(),
                )  # fmt: skip
            else:
                await transaction.commit()
        finally:
            self._changed = None
            if self._inner.is_in_transaction():
                await transaction.rollback()


class Repeating:
    """A port that does the call with the chosen effect twice, and answers with the second."""

    def __init__(self, port: Any, wire: Wire) -> None:
        self._port = port
        self._wire = wire

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)

        async def call(*arguments: Any, **options: Any) -> Any:
            before = len(self._wire.trail)
            result = await method(*arguments, **options)
            if self._wire.repeats(before):
                return await method(*arguments, **options)
            return result

        return call


async def _one(
    method: Callable[..., Awaitable[Any]],
    wire: Wire,
    statement: str,
    *arguments: Any,
    **options: Any,
) -> Any:
    """Run one statement outside a transaction."""
    changed = _changes(statement)
    if not changed:
        return await method(statement, *arguments, **options)

    async def act() -> Any:
        return await method(statement, *arguments, **options)

    return await wire.effect(_commit(changed), act, refusal=_cut_off(), silence=_cut_off())


def _changes(statement: str) -> list[str]:
    """Name the tables and functions of a statement that changes anything."""
    return [match[2] or match[3] for match in _CHANGES.finditer(statement)]


def _commit(changed: list[str]) -> str:
    return f"COMMIT {' '.join(dict.fromkeys(changed))}"


def _cut_off() -> Exception:
    error: Exception = asyncpg.ConnectionDoesNotExistError("connection was closed")
    return error


def _kind(path: str, *, creates: bool) -> str:
    """Return the plural in a path, with a subresource if there is one."""
    parts = path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    if len(parts) > 2 and parts[0] == "namespaces":
        parts = parts[2:]
    return parts[0] if creates else "/".join((parts[0], *parts[2:]))
