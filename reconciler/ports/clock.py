"""The two impurities that every context takes as arguments: time and new ids.

Ports that belong to no context.
"""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from reconciler.domain.aggregate import ids


class Clock(Protocol):
    """The wall clock."""

    def now(self) -> datetime:
        """Return the time, aware and in UTC."""
        ...


class IDSource(Protocol):
    """The source of new ids."""

    def provisioned_resource_id(self) -> ids.ProvisionedResourceID:
        """Mint a UUIDv7."""
        ...
