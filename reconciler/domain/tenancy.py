"""The minimal path of a Project: an id, a namespace, ready or not.

Reading a Project object and rendering its status and namespace.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from function.contract import names
from function.contract.catalog.tenancy import ProjectStatus
from function.contract.conditions import ConditionType, DesiredCondition, Reason
from reconciler.domain.aggregate import ids
from reconciler.domain.record.status import condition

LABEL_PROJECT = f"{names.GROUP}/project"


def namespace_manifest(project: str, project_id: ids.ProjectID) -> dict[str, Any]:
    """Render the namespace of a Project."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": names.project_namespace(project_id),
            "labels": {LABEL_PROJECT: names.label_value(project)},
        },
    }


def status(
    previous: Mapping[str, Any],
    *,
    project_id: ids.ProjectID,
    cluster: str,
    ready: bool,
    generation: int,
    now: datetime,
) -> dict[str, Any]:  # fmt: skip
    """Render a Project's status; equal to the previous one when nothing changed."""
    phase = "Ready" if ready else "Terminating"
    body = ProjectStatus(
        id=str(project_id),
        namespace=names.project_namespace(project_id),
        management_cluster=cluster,
        namespace_phase=phase,
    ).model_dump(mode="json", by_alias=True, exclude_none=True)
    reason = Reason.ADMITTED if ready else Reason.NAMESPACE_NOT_READY
    message = "The namespace is ready." if ready else "The namespace is terminating."
    verdict = DesiredCondition(
        type=ConditionType.READY, status=ready, reason=reason, message=message
    )
    return {**body, "conditions": [condition(previous, verdict, generation=generation, now=now)]}


def refused(
    previous: Mapping[str, Any], *, message: str, generation: int, now: datetime
) -> dict[str, Any]:
    """Render the status of a Project that cannot be placed; what it had stays."""
    verdict = DesiredCondition(
        type=ConditionType.READY, status=False, reason=Reason.INVALID_INPUT, message=message
    )
    return {
        **previous,
        "conditions": [condition(previous, verdict, generation=generation, now=now)],
    }
