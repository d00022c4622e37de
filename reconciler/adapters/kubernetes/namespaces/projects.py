"""`ports.cluster.projects.ProjectGateway` over one API server.

The calls of the minimal Project path.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from function.contract import names
from function.contract.catalog.tenancy import DomainSpec
from reconciler.adapters.kubernetes.cache.object_cache import ObjectCache
from reconciler.adapters.kubernetes.objects.writes import Effects, MayWrite, anybody
from reconciler.adapters.kubernetes.transport.client import KubernetesClient, Object


class KubernetesProjectGateway:
    """The namespaces and statuses of Projects."""

    def __init__(
        self, client: KubernetesClient, *, domains: ObjectCache, may_write: MayWrite = anybody
    ) -> None:
        self._client = client
        self._effects = Effects(client, may_write)
        self._domains = domains

    def domain(self, name: str) -> DomainSpec | None:
        """Return a Domain from the cache, or None when it is absent or unreadable."""
        raw = self._domains.get(("", name))
        if raw is None:
            return None
        try:
            return DomainSpec.model_validate(raw.get("spec") or {})
        except ValidationError:
            return None

    async def ensure_namespace(self, manifest: dict[str, Any]) -> bool:
        """Create a namespace if it is absent; tell whether it is usable."""
        path = f"/api/v1/namespaces/{manifest['metadata']['name']}"
        found = await self._client.get(path)
        if found is None:
            if await self._effects.create("/api/v1/namespaces", manifest):
                return True
            # Somebody was faster.
            found = await self._client.get(path)
        return found is not None and "deletionTimestamp" not in found["metadata"]

    async def write_project_status(self, project: Object, status: dict[str, Any]) -> None:
        """Replace a Project's status, if nobody wrote to it since it was read."""
        path = f"/apis/{names.API_VERSION}/projects/{project['metadata']['name']}"
        await self._effects.write_status(path, project, status)
