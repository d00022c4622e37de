"""The port of the catalogue: what admission resolves a declaration against.

A local view of blueprints, credentials, clouds and Projects.
Source: seed 000 "Ports"; design §5 "Kubernetes".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from function.contract.catalog.published import BlueprintVersionSpec, CloudCredentialSpec, CloudSpec
from reconciler.domain.aggregate import ids


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectView:
    """A Project as admission sees it.

    Attributes:
        id: The Project's id.
        name: Its object's name, which credentials list.
        namespace: Where its substrate lives.
        namespace_ready: Whether that namespace is Ready.
    """

    id: ids.ProjectID
    name: str
    namespace: str
    namespace_ready: bool


class Catalog(Protocol):
    """The catalogue that admission resolves declarations against; a local view of the cluster."""

    def blueprint(self, name: str) -> BlueprintVersionSpec | None:
        """Return a BlueprintVersion, or None when it is absent or unreadable."""
        ...

    def credential(self, name: str) -> CloudCredentialSpec | None:
        """Return a CloudCredential, or None."""
        ...

    def cloud(self, name: str) -> CloudSpec | None:
        """Return a Cloud, or None."""
        ...

    def project(self, project_id: ids.ProjectID) -> ProjectView | None:
        """Return a Project by id, or None when it is not placed."""
        ...
