"""The settings of commands that need the database alone.

Where the store is, and how long it keeps what is over. Source:
docs/operations/retention.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, ClassVar, Final, Literal

from pydantic import BeforeValidator, Field, SecretStr

from reconciler.ports.store.retention import Remains
from reconciler.settings import parsing, reach
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
    """The settings of the store's connection."""

    rules: ClassVar[Mapping[str, str]] = {"PLEXSPHERE_DSN_TLS": "must be verify-full or unverified"}

    dsn: Annotated[SecretStr, BeforeValidator(parsing.dsn)] = Field(
        alias="PLEXSPHERE_DSN",
        description="Postgres; all durable state is there. Never shown, it holds a password.",
    )
    dsn_tls: Literal["verify-full", "unverified"] = Field(
        default="verify-full",
        alias="PLEXSPHERE_DSN_TLS",
        description="The sslmode that a remote DSN must have; `unverified`: any, so that an "
        "attacker on the network may read tokens' digests and signing keys, and answer.",
    )
    default_host: str | None = Field(
        default=None, alias="PGHOST", description="Where the DSN leads that names no host."
    )
    default_sslmode: str | None = Field(
        default=None, alias="PGSSLMODE", description="The sslmode of a DSN that has none."
    )

    def _combined_faults(self) -> list[str]:
        dsn = self.dsn.get_secret_value()
        if self.dsn_tls == "unverified" or reach.is_private(
            dsn, host=self.default_host, mode=self.default_sslmode
        ):
            return super()._combined_faults()
        rule = (
            f"must have sslmode={reach.VERIFIED}, because it names a host that is not this "
            "machine (PLEXSPHERE_DSN_TLS=unverified takes any)"
        )
        return [f"PLEXSPHERE_DSN: {rule}", *super()._combined_faults()]


class RetentionSettings(StoreSettings):
    """The settings of retention; None keeps rows for ever."""

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
