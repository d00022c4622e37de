"""The port of tenancy: Domains, Projects, clusters, and who is placed where.

What a Project's reconcile and the sync of its kinds call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from reconciler.domain.aggregate import ids


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectRow:
    """A Project as it is stored."""

    id: ids.ProjectID
    name: str
    namespace: str


class TenancyRepository(Protocol):
    """Domains, Projects, clusters and who is placed where."""

    async def ensure_domain(self, name: str, mesh_cidr: str) -> UUID:
        """Return a Domain's id; its first call mints id and signing key.

        Raises:
            InvalidInputError: The Domain exists with another range; nodes live in it.

        Idempotency: a second call mints nothing.
        """
        ...

    async def ensure_project(
        self, project_id: ids.ProjectID | None, name: str, domain: str
    ) -> ids.ProjectID:
        """Return a Project's id; its first call stores the given one or mints one.

        Raises:
            InvalidInputError: No such Domain; or the Project, its id or its name exists
                with another id, name or Domain.

        Idempotency: a second call mints nothing.
        """
        ...

    async def find_project(self, name: str) -> ProjectRow | None:
        """Return a Project by name, or None."""
        ...

    async def ensure_cluster(self, slug: str, display_name: str) -> ids.ManagementClusterID:
        """Return a cluster's id, which its slug determines; store it the first time."""
        ...

    async def assign_project(
        self,
        project_id: ids.ProjectID,
        cluster_id: ids.ManagementClusterID,
        *,
        namespace: str,
        phase: str,
    ) -> None:
        """Store where a Project lives and its namespace's phase.

        Raises:
            InvalidInputError: No such Project or cluster, or an unknown phase.

        Idempotency: the last call stands.
        """
        ...
