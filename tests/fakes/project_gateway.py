"""Domains, Projects and their namespaces on a management cluster, in memory."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from function.contract.catalog.tenancy import DomainSpec
from reconciler.domain.aggregate.errors import StaleAggregateError

Raw = dict[str, Any]


@dataclass
class InMemoryProjectGateway:
    """Keeps the promises of `ports.cluster.projects.ProjectGateway`.

    Attributes:
        projects: The objects as they are now, by name.
        namespaces: Whether each terminates, by name.
        written: The statuses that were written, oldest first.
    """

    domains: dict[str, DomainSpec] = field(default_factory=dict)
    projects: dict[str, Raw] = field(default_factory=dict)
    namespaces: dict[str, bool] = field(default_factory=dict)
    written: list[Raw] = field(default_factory=list)

    def view(self) -> dict[tuple[str, str], Raw]:
        """Return the Projects as a cache holds them."""
        return {("", name): raw for name, raw in self.projects.items()}

    def domain(self, name: str) -> DomainSpec | None:
        """Return a Domain, or None."""
        return self.domains.get(name)

    async def ensure_namespace(self, manifest: Raw) -> bool:
        """Create a namespace if it is absent; tell whether it is ready."""
        return not self.namespaces.setdefault(manifest["metadata"]["name"], False)

    async def write_project_status(self, project: Raw, status: Raw) -> None:
        """Replace a Project's status, as it was read."""
        name = project["metadata"]["name"]
        live = self.projects.get(name)
        if live is None or _version(live) != _version(project):
            message = f"cannot write status of projects {name!r}: it changed since it was read"
            raise StaleAggregateError(message)
        live["status"] = copy.deepcopy(status)
        live["metadata"]["resourceVersion"] = str(int(_version(live)[1]) + 1)
        self.written.append(live["status"])


def _version(project: Raw) -> tuple[str, str]:
    metadata = project["metadata"]
    return metadata.get("uid", ""), metadata.get("resourceVersion", "1")
