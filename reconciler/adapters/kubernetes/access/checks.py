"""Preconditions of provisioning on a management cluster."""

from __future__ import annotations

from collections.abc import Sequence

from function.contract.record import SubstrateReference
from reconciler.adapters.kubernetes.access import policies
from reconciler.adapters.kubernetes.access.rights import Rights
from reconciler.adapters.kubernetes.transport import served_versions
from reconciler.adapters.kubernetes.transport.client import KubernetesClient


class Checks:
    """Policies, definitions and rights of one API server."""

    def __init__(self, client: KubernetesClient) -> None:
        self._client = client
        self._rights = Rights(client)

    async def hold_policies_problem(self) -> str | None:
        """Name the first admission policy that is not in force as it must be, and why."""
        return await policies.problem(self._client)

    async def definition_problem(self, reference: SubstrateReference) -> str | None:
        """Say why a kind cannot be composed here, or None when it can."""
        return await served_versions.definition_problem(self._client, reference)

    async def missing_rights(
        self, *, api_version: str, kind: str, verbs: Sequence[str], namespace: str = ""
    ) -> tuple[str, ...]:
        """Return which verbs we lack on a kind, in all namespaces or in one."""
        return await self._rights.missing(
            api_version=api_version, kind=kind, verbs=verbs, namespace=namespace
        )
