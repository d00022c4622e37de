"""The fleet's ports, as far as a Project's minimal path needs them.

What `app.projects.project_reconciler` calls on a management cluster.
"""

from __future__ import annotations

from typing import Any, Protocol

from function.contract.catalog.tenancy import DomainSpec


class ProjectGateway(Protocol):
    """Effects of a Project on its management cluster."""

    def domain(self, name: str) -> DomainSpec | None:
        """Return a Domain from the local view, or None when it is absent or unreadable."""
        ...

    async def ensure_namespace(self, manifest: dict[str, Any]) -> bool:
        """Create a namespace if it is absent.

        Returns:
            Whether it is ready: it exists and does not terminate.

        Idempotency: an existing one is left as it is.
        """
        ...

    async def write_project_status(self, project: dict[str, Any], status: dict[str, Any]) -> None:
        """Replace a Project's status.

        Raises:
            StaleAggregateError: Somebody wrote to it since it was read, it is gone, or another
                one has its name.
        """
        ...
