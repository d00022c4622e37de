"""What admission resolves a declaration against, in memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from function.contract.catalog.published import BlueprintVersionSpec, CloudCredentialSpec, CloudSpec
from reconciler.domain.aggregate import ids
from reconciler.ports.cluster.catalog import ProjectView


@dataclass
class InMemoryCatalog:
    """Keeps the promises of `ports.cluster.catalog.Catalog`; what is None was taken away."""

    blueprints: dict[str, BlueprintVersionSpec | None] = field(default_factory=dict)
    credentials: dict[str, CloudCredentialSpec | None] = field(default_factory=dict)
    clouds: dict[str, CloudSpec | None] = field(default_factory=dict)
    projects: dict[ids.ProjectID, ProjectView] = field(default_factory=dict)

    def blueprint(self, name: str) -> BlueprintVersionSpec | None:
        """Return a BlueprintVersion, or None."""
        return self.blueprints.get(name)

    def credential(self, name: str) -> CloudCredentialSpec | None:
        """Return a CloudCredential, or None."""
        return self.credentials.get(name)

    def cloud(self, name: str) -> CloudSpec | None:
        """Return a Cloud, or None."""
        return self.clouds.get(name)

    def project(self, project_id: ids.ProjectID) -> ProjectView | None:
        """Return a Project by id, or None when it is not placed."""
        return self.projects.get(project_id)
