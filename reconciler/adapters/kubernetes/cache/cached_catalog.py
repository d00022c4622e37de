"""The catalogue, answered from the caches of one management cluster.

Reading cached objects into the contract's shapes. An object that has not the contract's
shape counts as absent and is named in the log once per version.
"""

from __future__ import annotations

import logging
from typing import TypeVar
from uuid import UUID

from pydantic import ValidationError

from function.contract.catalog.published import BlueprintVersionSpec, CloudCredentialSpec, CloudSpec
from function.contract.catalog.tenancy import ProjectStatus
from function.contract.shape import Shape
from reconciler.adapters.kubernetes.cache.object_cache import ObjectCache
from reconciler.adapters.kubernetes.transport.client import Object
from reconciler.domain.aggregate import ids
from reconciler.ports.cluster.catalog import ProjectView

_log = logging.getLogger(__name__)
_Spec = TypeVar("_Spec", bound=Shape)


class CachedCatalog:
    """`ports.cluster.management_cluster.Catalog` over list-and-watch caches."""

    def __init__(
        self,
        *,
        blueprints: ObjectCache,
        credentials: ObjectCache,
        clouds: ObjectCache,
        projects: ObjectCache,
    ) -> None:
        self._blueprints = blueprints
        self._credentials = credentials
        self._clouds = clouds
        self._projects = projects
        self._names: dict[ids.ProjectID, str] = {}

    def blueprint(self, name: str) -> BlueprintVersionSpec | None:
        """Return a BlueprintVersion, or None when it is absent or unreadable."""
        return _spec(self._blueprints, name, BlueprintVersionSpec)

    def credential(self, name: str) -> CloudCredentialSpec | None:
        """Return a CloudCredential, or None."""
        return _spec(self._credentials, name, CloudCredentialSpec)

    def cloud(self, name: str) -> CloudSpec | None:
        """Return a Cloud, or None."""
        return _spec(self._clouds, name, CloudSpec)

    def project(self, project_id: ids.ProjectID) -> ProjectView | None:
        """Return a Project by id, or None when it is not placed."""
        known = self._names.get(project_id)
        found = None if known is None else self._placed(known, project_id)
        if found is not None:
            return found
        for _, name in list(self._projects.items()):
            found = self._placed(name, project_id)
            if found is not None:
                # A Project keeps its name, so that all are read once and not for each record.
                self._names[project_id] = name
                return found
        return None

    def _placed(self, name: str, project_id: ids.ProjectID) -> ProjectView | None:
        raw = self._projects.get(("", name))
        if raw is None:
            return None
        try:
            status = ProjectStatus.model_validate(raw.get("status") or {})
        except ValidationError as error:
            _log_unreadable(raw, error)
            return None
        if status.id is None or not status.namespace or UUID(status.id) != project_id:
            return None
        return ProjectView(
            id=project_id,
            name=name,
            namespace=status.namespace,
            namespace_ready=status.namespace_phase == "Ready",
        )


def _spec(cache: ObjectCache, name: str, shape: type[_Spec]) -> _Spec | None:
    raw = cache.get(("", name))
    if raw is None:
        return None
    try:
        return shape.model_validate(raw.get("spec") or {})
    except ValidationError as error:
        _log_unreadable(raw, error)
        return None


def _log_unreadable(raw: Object, error: ValidationError) -> None:
    _log.warning(
        "object_unreadable kind=%s name=%s faults=%d",
        raw.get("kind"),
        raw["metadata"]["name"],
        error.error_count(),
    )
