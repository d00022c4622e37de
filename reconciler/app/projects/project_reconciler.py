"""One reconcile of one Project: its id, its namespace, its status.

The minimal path that gives substrate a place.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from pydantic import ValidationError

from function.contract import names
from function.contract.catalog.tenancy import ProjectSpec
from reconciler.domain import tenancy
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.errors import InvalidInputError
from reconciler.ports.clock import Clock
from reconciler.ports.cluster.projects import ProjectGateway
from reconciler.ports.store.tenancy import TenancyRepository

REFUSED_S = 15.0
"""How soon a refused Project is judged again; its own changes come at once."""

NOT_READY_S = 2.0
"""How soon a namespace that terminates is looked at again."""


class ProjectReconciler:
    """Keeps the Projects of one management cluster.

    `settle` makes a namespace's hold and count agree with its aggregates.
    """

    def __init__(
        self,
        gateway: ProjectGateway,
        repository: TenancyRepository,
        clock: Clock,
        *,
        cluster: str,
        settle: Callable[[str], Awaitable[None]],
    ) -> None:
        self._settle = settle
        self._gateway = gateway
        self._repository = repository
        self._clock = clock
        self._cluster = cluster

    async def run(self, raw: dict[str, Any]) -> float | None:
        """Do one Project.

        Returns:
            Seconds after which to come back, or None to wait for a change.

        A spec that is unreadable or names no Domain is said in its status.

        Idempotency: an unchanged Project causes no write.
        """
        metadata = raw["metadata"]
        if "deletionTimestamp" in metadata:
            await self._settle_known(raw)
            return None
        try:
            return await self._place(raw)
        except InvalidInputError as error:
            rendered = tenancy.refused(
                raw.get("status") or {},
                message=str(error),
                generation=int(metadata.get("generation", 0)),
                now=self._clock.now(),
            )
            await self._write(raw, rendered)
            await self._settle_known(raw)
            return REFUSED_S

    async def _settle_known(self, raw: dict[str, Any]) -> None:
        """Count what is in the namespace that it was given before."""
        status = raw.get("status") or {}
        namespace = str(status.get("namespace", ""))
        # Whoever may write a Project's status must not reach any other object by it.
        identity = names.project_id(namespace)
        if identity is not None and str(identity) == status.get("id"):
            await self._settle(names.project_namespace(identity))

    async def _place(self, raw: dict[str, Any]) -> float | None:
        metadata = raw["metadata"]
        spec = _spec(raw)
        domain = self._gateway.domain(spec.domain_ref.name)
        if domain is None:
            name = metadata["name"]
            wanted = spec.domain_ref.name
            message = f"cannot place project {name!r}: spec.domainRef: Domain {wanted!r} not found"
            raise InvalidInputError(message)
        await self._repository.ensure_domain(spec.domain_ref.name, domain.mesh_cidr)
        project_id = await self._repository.ensure_project(
            None if spec.id is None else ids.ProjectID(UUID(spec.id)),
            metadata["name"],
            spec.domain_ref.name,
        )
        manifest = tenancy.namespace_manifest(metadata["name"], project_id)
        ready = await self._gateway.ensure_namespace(manifest)
        cluster_id = await self._repository.ensure_cluster(self._cluster, self._cluster)
        await self._repository.assign_project(
            project_id,
            cluster_id,
            namespace=names.project_namespace(project_id),
            phase="Ready" if ready else "Terminating",
        )
        previous = raw.get("status") or {}
        rendered = tenancy.status(
            previous,
            project_id=project_id,
            cluster=self._cluster,
            ready=ready,
            generation=int(metadata.get("generation", 0)),
            now=self._clock.now(),
        )
        # Before anybody hears that it is ready: our rights in it come with its hold.
        await self._settle(names.project_namespace(project_id))
        await self._write(raw, rendered)
        return None if ready else NOT_READY_S

    async def _write(self, raw: dict[str, Any], rendered: dict[str, Any]) -> None:
        if rendered != (raw.get("status") or {}):
            await self._gateway.write_project_status(raw, rendered)


def _spec(raw: dict[str, Any]) -> ProjectSpec:
    try:
        return ProjectSpec.model_validate(raw.get("spec") or {})
    except ValidationError as error:
        name = raw["metadata"]["name"]
        message = f"cannot read project {name!r}: its spec has {error.error_count()} invalid fields"
        raise InvalidInputError(message) from error
