"""The life of a resource's bootstrap tokens: what to do next, and what to show.

Theory of operation: of a resource's generations one state speaks for all; with what is known of
its substrate and its node it is a `Situation` of closed sets, and `decide` is a table read
from the top whose first row that fits gives the action, so it is total. Three laws hold: no
token is minted while a substrate may carry an earlier one, nor for a resource that is
going; a node that is there needs none; a spent token is never made good again.

The decision. Source: design §5 "Tokens"; docs/decisions/0004.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum, unique
from typing import Final

from function.contract.strategy import BootstrapState
from reconciler.domain.identity.token import TTL_MAX

MINT_PAUSE: Final = timedelta(seconds=30)
"""Least time between two generations (design §5: burst 1, then one per 30 s), by the
database's clock and from when the last was issued, so that it survives a restart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One token of a resource, without its text.

    Attributes:
        number: 1 is the first.
        state: By the database's clock.
        consumed_at: When a node registered with it, or None.
    """

    number: int
    state: BootstrapState
    issued_at: datetime
    consumed_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLife:
    """A resource's tokens at one moment.

    Attributes:
        generations: The newest first; empty before the first.
        now: The database's clock.
    """

    generations: tuple[Generation, ...]
    now: datetime

    @property
    def state(self) -> BootstrapState:
        """The state that speaks for all.

        A Secret that was lost leaves an older generation valid, also where only the newest was
        revoked. Where a node came with the older one, which revoked the newer in the same
        transaction, the token was consumed.
        """
        if not self.generations:
            return BootstrapState.NONE
        newest, *older = self.generations
        if newest.state is not BootstrapState.REVOKED:
            return newest.state
        if any(one.state is BootstrapState.ISSUED for one in older):
            return BootstrapState.ISSUED
        late = any(
            one.consumed_at is not None and one.consumed_at >= newest.issued_at for one in older
        )
        return BootstrapState.CONSUMED if late else BootstrapState.REVOKED

    @property
    def rested(self) -> bool:
        """Whether another generation may be minted by now."""
        return not self.generations or self.now - self.generations[0].issued_at >= MINT_PAUSE

    @property
    def renewable(self) -> bool:
        """Whether a window that closed may still be opened again: the newest is below its cap."""
        return bool(self.generations) and self.now - self.generations[0].issued_at < TTL_MAX

    def extended(self) -> TokenLife:
        """Return the tokens after the windows that closed were opened again."""
        opened = tuple(
            replace(one, state=BootstrapState.ISSUED)
            if one.state is BootstrapState.EXPIRED and self.now - one.issued_at < TTL_MAX
            else one
            for one in self.generations
        )
        return replace(self, generations=opened)

    @property
    def drops_secrets(self) -> bool:
        """Whether the Secrets of all generations must go: nobody may register with any."""
        return self.state in _SPENT


_SPENT: Final = frozenset({BootstrapState.CONSUMED, BootstrapState.REVOKED})


@unique
class TokenAction(StrEnum):
    """The reconciler's action on the token."""

    NOTHING = "nothing"
    MINT = "mint"
    EXHAUSTED = "exhausted"
    AWAIT_NAMESPACE = "await-namespace"
    AWAIT_POLICIES = "await-policies"
    AWAIT_PAUSE = "await-pause"
    RENEW = "renew"
    STALL = "stall"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLifeFacts:
    """The facts that decide, as closed sets.

    Attributes:
        state: What speaks for all generations.
        delivered: The newest generation's Secret is there.
        substrate: There is a substrate, or may be one.
        registered: The node is in the mesh.
        going: The resource's deletion was requested.
        open: The Project's namespace is Ready, so that something may be given out in it.
        policies: The admission policies that hold what is protected are in force.
        rested: The pause after the last generation is over.
        renewable: A window that closed may be opened again: the token is not a day old.
        exhausted: There is no further generation: the last one that may be was issued.
    """

    state: BootstrapState
    delivered: bool
    substrate: bool
    registered: bool = False
    going: bool = False
    open: bool = True
    policies: bool = True
    rested: bool = True
    renewable: bool = False
    exhausted: bool = False


_STRANDED: Final = frozenset({BootstrapState.EXPIRED, BootstrapState.REVOKED})
"""What a machine cannot register with; unless its window is opened again, only a new one helps."""

_TABLE: Final[tuple[tuple[TokenAction, Callable[[TokenLifeFacts], bool]], ...]] = (
    (TokenAction.NOTHING, lambda s: s.going or s.registered),
    (TokenAction.RENEW, lambda s: s.substrate and s.state is BootstrapState.ISSUED),
    (
        TokenAction.RENEW,
        lambda s: s.substrate and s.state is BootstrapState.EXPIRED and s.renewable,
    ),
    (TokenAction.STALL, lambda s: s.substrate and s.state in _STRANDED),
    (TokenAction.NOTHING, lambda s: s.substrate),
    (TokenAction.NOTHING, lambda s: s.state is BootstrapState.ISSUED and s.delivered),
    (TokenAction.EXHAUSTED, lambda s: s.exhausted),
    (TokenAction.AWAIT_NAMESPACE, lambda s: not s.open),
    (TokenAction.AWAIT_POLICIES, lambda s: not s.policies),
    (TokenAction.AWAIT_PAUSE, lambda s: not s.rested),
    (TokenAction.MINT, lambda s: True),  # noqa: ARG005 - the row that always fits
)


def decide(situation: TokenLifeFacts) -> TokenAction:
    """Return what to do. Total: every situation has an action."""
    return next(action for action, fits in _TABLE if fits(situation))
