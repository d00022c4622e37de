"""The wall clock and the source of ids.

The two impurities that everything else takes as arguments.
"""

from __future__ import annotations

from datetime import UTC, datetime

from uuid_utils.compat import uuid7

from reconciler.domain.aggregate import ids


class SystemClock:
    """Implements `ports.store.aggregates.Clock`."""

    def now(self) -> datetime:
        """Return the time, aware and in UTC."""
        return datetime.now(UTC)


class UUIDv7Source:
    """Implements `ports.store.aggregates.IDSource`: ids that sort by the time they were minted."""

    def provisioned_resource_id(self) -> ids.ProvisionedResourceID:
        """Mint an aggregate's id."""
        return ids.ProvisionedResourceID(uuid7())

    def node_id(self) -> ids.NodeID:
        """Mint a node's id."""
        return ids.NodeID(uuid7())
