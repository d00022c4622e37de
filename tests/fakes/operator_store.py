"""An operators' store without a Project."""

from __future__ import annotations

from uuid import UUID

from reconciler.domain.broker import ids
from reconciler.ports.operator import (
    Assignment,
    Named,
    NodeDeregistration,
    TokenMetadata,
    TokenRevocation,
)


class EmptyOperatorStore:
    """Implements `ports.operator.OperatorStore` for a store in which there is nothing."""

    async def assignment(self, project: ids.ProjectID) -> Assignment | None:
        """Return None."""
        return None

    async def tokens(
        self, project: ids.ProjectID, *, after: ids.BootstrapTokenID | None, limit: int
    ) -> tuple[TokenMetadata, ...]:
        """Return nothing."""
        return ()

    async def token(
        self, project: ids.ProjectID, token: ids.BootstrapTokenID
    ) -> TokenMetadata | None:
        """Return None."""
        return None

    async def named(self, project: ids.ProjectID, wanted: UUID) -> Named | None:
        """Return None."""
        return None

    async def deregister(
        self, project: ids.ProjectID, node: ids.NodeID, *, by: str, reason: str
    ) -> NodeDeregistration:
        """Find nothing to take out."""
        return NodeDeregistration.ABSENT

    async def revoke(
        self, project: ids.ProjectID, token: ids.BootstrapTokenID, *, by: str
    ) -> TokenRevocation:
        """Find nothing to revoke."""
        return TokenRevocation.ABSENT
