"""The settings of commands that need the database alone.

Belongs here: where the store is, and how long it keeps what is over. Not here: what only
`broker serve` needs. Source: docs/operations/retention.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Final

from pydantic import BeforeValidator, Field, SecretStr

from reconciler.ports.retention import Remains
from reconciler.settings import parsing
from reconciler.settings.environment import Environment

_RETENTION: Final = "PLEXSPHERE_RETENTION_"
KEEP_MIN: Final = timedelta(hours=25)
"""A nonce must outlive the longest window of its token, 24 h, or a registration could be
replayed; and a consumer that was away for a day still finds its events."""
KEEP_MAX: Final = timedelta(days=3660)

_Keep = Annotated[
    timedelta | None,
    parsing.between_or_never(KEEP_MIN, KEEP_MAX, "must lie between 25h and 87840h, or be never"),
]


class StoreSettings(Environment):
    """Where the store is."""

    dsn: Annotated[SecretStr, BeforeValidator(parsing.dsn)] = Field(
        alias="PLEXSPHERE_DSN",
        description="Postgres; all durable state is there. Never shown, it holds a password.",
    )


class RetentionSettings(StoreSettings):
    """How long what is over is kept; None keeps it for ever."""

    keep_resources: _Keep = Field(
        default=timedelta(hours=2160),
        alias=f"{_RETENTION}RESOURCES",
        description="How long a Deleted resource is kept after its last change, an orphan after "
        "it was gone: 90 days.",
    )
    keep_tokens: _Keep = Field(
        default=timedelta(hours=720),
        alias=f"{_RETENTION}TOKENS",
        description="How long a token is kept after its end, with its node that left: 30 days.",
    )
    keep_events: _Keep = Field(
        default=timedelta(hours=168),
        alias=f"{_RETENTION}EVENTS",
        description="How long a published event can be replayed: 7 days.",
    )

    @property
    def keep(self) -> Mapping[Remains, timedelta | None]:
        """How long each kind is kept after it is over; None for ever."""
        return {
            Remains.EVENTS: self.keep_events,
            Remains.TOKENS: self.keep_tokens,
            Remains.RESOURCES: self.keep_resources,
            Remains.ORPHANS: self.keep_resources,
        }
