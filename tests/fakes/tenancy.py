"""Domains, Projects and clusters in memory."""

from __future__ import annotations

import ipaddress
from uuid import UUID

from uuid_utils.compat import uuid7

from function.contract import names
from reconciler.adapters.identity.secret_source import SystemSecretSource
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.errors import InvalidInputError
from reconciler.ports.registration import SecretSource
from reconciler.ports.store.tenancy import ProjectRow
from tests.fakes.memory import DomainRow, MemoryStore

PHASES = {"Pending", "Provisioning", "Ready", "Degraded", "Terminating", "Deleted"}


class InMemoryTenancyRepository:
    """Keeps the promises of `ports.store.tenancy.TenancyRepository`."""

    def __init__(self, store: MemoryStore, secrets: SecretSource | None = None) -> None:
        self.store = store
        self._secrets = secrets or SystemSecretSource(env="prod")

    async def ensure_domain(self, name: str, mesh_cidr: str) -> UUID:
        try:
            wanted = str(ipaddress.ip_network(mesh_cidr))
        except ValueError as error:
            message = "cannot ensure domain: meshCIDR must be a network in CIDR form"
            raise InvalidInputError(message) from error
        row = self.store.domains.setdefault(
            name, DomainRow(id=uuid7(), mesh_cidr=wanted, key=self._secrets.signing_key())
        )
        if row.mesh_cidr != wanted:
            message = "cannot ensure domain: meshCIDR is immutable while the Domain exists"
            raise InvalidInputError(message)
        return row.id

    async def ensure_project(
        self, project_id: ids.ProjectID | None, name: str, domain: str
    ) -> ids.ProjectID:
        if domain not in self.store.domains:
            message = "cannot ensure project: domainRef.name refers to no Domain"
            raise InvalidInputError(message)
        domain_id = self.store.domains[domain].id
        stored = next((item for item in self.store.projects.values() if item[0].name == name), None)
        if stored is None:
            new_id = project_id or ids.ProjectID(uuid7())
            if new_id in self.store.projects:
                message = "cannot ensure project: id belongs to another Project"
                raise InvalidInputError(message)
            row = ProjectRow(id=new_id, name=name, namespace=names.project_namespace(new_id))
            stored = self.store.projects[new_id] = (row, domain_id)
        if project_id not in {None, stored[0].id} or stored[1] != domain_id:
            message = "cannot ensure project: id and domainRef are immutable"
            raise InvalidInputError(message)
        return stored[0].id

    async def find_project(self, name: str) -> ProjectRow | None:
        found = (row for row, _ in self.store.projects.values() if row.name == name)
        return next(found, None)

    async def ensure_cluster(self, slug: str, display_name: str) -> ids.ManagementClusterID:
        cluster_id = ids.management_cluster_id(slug)
        self.store.clusters[cluster_id] = slug
        return cluster_id

    async def assign_project(
        self,
        project_id: ids.ProjectID,
        cluster_id: ids.ManagementClusterID,
        *,
        namespace: str,
        phase: str,
    ) -> None:
        known = project_id in self.store.projects and cluster_id in self.store.clusters
        if not known or phase not in PHASES:
            message = "cannot assign project: a reference or the phase is unknown"
            raise InvalidInputError(message)
        self.store.placements[project_id] = (cluster_id, namespace, phase)
