"""Converts between a ProvisionedResource and its row.

The column order and the JSON of two columns. A stored row goes through the aggregate's
constructor, so one that drifted is refused here.
"""

from __future__ import annotations

from typing import Any, LiteralString
from uuid import UUID

import asyncpg

from function.contract import record
from function.contract.record import Declaration, Enrolment, SubstrateReference
from function.contract.strategy import Phase
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.children import Child
from reconciler.domain.aggregate.protected_object import ProtectedObject
from reconciler.domain.aggregate.resource import ProvisionedResource, RecordIdentity, ResourceKey

COLUMNS: LiteralString = (
    "id, resource_id, project_id, blueprint_version_id, cloud_credential_id, "
    "management_cluster_id, status, xr_name, namespace, xr_group, xr_kind, owner_name, "
    "resource, record_name, record_uid, accepted, protected, created_at, updated_at, "
    "bootstrap_token_id, generation, version, deletion_requested_at, force_released_at, "
    "enrolling_since, recreations, recreating_since, children, rendered_with, "
    "provisioning_since, retries"
)
"""Every column, in the order of `values`."""


def values(resource: ProvisionedResource) -> tuple[Any, ...]:
    """Return an aggregate's column values in the order of `COLUMNS`."""
    key = resource.key
    return (
        resource.id,
        resource.resource_id,
        resource.project_id,
        resource.blueprint_version_id,
        resource.cloud_credential_id,
        resource.management_cluster_id,
        resource.phase.value,
        resource.xr_name,
        key.namespace,
        key.group,
        key.kind,
        key.name,
        key.resource,
        resource.record.name,
        resource.record.uid,
        record.wire(resource.accepted),
        protected(resource),
        resource.created_at,
        resource.updated_at,
        resource.bootstrap_token_id,
        resource.generation,
        resource.version,
        resource.deletion_requested_at,
        resource.force_released_at,
        resource.enrolling_since,
        resource.recreations,
        resource.recreating_since,
        children(resource),
        rendered_with(resource),
        resource.provisioning_since,
        resource.retries,
    )


def protected(resource: ProvisionedResource) -> list[dict[str, Any]]:
    """Return the protected objects as their column holds them."""
    return [
        {
            "reference": record.wire(item.reference),
            "uid": item.uid,
            "seen": item.seen,
            "released": item.released,
            "sibling": item.sibling,
        }
        for item in resource.protected
    ]


def children(resource: ProvisionedResource) -> list[dict[str, Any]]:
    """Return the children as their column holds them."""
    return [
        {"reference": record.wire(item.reference), "uid": item.uid} for item in resource.children
    ]


def rendered_with(resource: ProvisionedResource) -> dict[str, Any] | None:
    """Return the document's knobs as their column holds them."""
    return None if resource.rendered_with is None else record.wire(resource.rendered_with)


def hydrate(row: asyncpg.Record) -> ProvisionedResource:
    """Return a row's aggregate.

    Raises:
        InvalidInputError: The row breaks an invariant of the aggregate.
    """
    project_id = ids.ProjectID(_uuid(row["project_id"]))
    token, knobs = row["bootstrap_token_id"], row["rendered_with"]
    return ProvisionedResource(
        id=ids.ProvisionedResourceID(_uuid(row["id"])),
        resource_id=ids.ResourceID(_uuid(row["resource_id"])),
        project_id=project_id,
        blueprint_version_id=ids.BlueprintVersionID(_uuid(row["blueprint_version_id"])),
        cloud_credential_id=ids.CloudCredentialID(_uuid(row["cloud_credential_id"])),
        management_cluster_id=ids.ManagementClusterID(_uuid(row["management_cluster_id"])),
        phase=Phase(row["status"]),
        xr_name=row["xr_name"],
        key=ResourceKey(
            project_id=project_id,
            namespace=row["namespace"],
            group=row["xr_group"],
            kind=row["xr_kind"],
            name=row["owner_name"],
            resource=row["resource"],
        ),
        record=RecordIdentity(name=row["record_name"], uid=row["record_uid"]),
        accepted=Declaration.model_validate(row["accepted"]),
        protected=tuple(_protected(item) for item in row["protected"]),
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        bootstrap_token_id=None if token is None else ids.BootstrapTokenID(_uuid(token)),
        generation=row["generation"],
        version=row["version"],
        deletion_requested_at=row["deletion_requested_at"],
        force_released_at=row["force_released_at"],
        provisioning_since=row["provisioning_since"],
        enrolling_since=row["enrolling_since"],
        retries=row["retries"],
        recreations=row["recreations"],
        recreating_since=row["recreating_since"],
        children=tuple(_child(item) for item in row["children"]),
        rendered_with=None if knobs is None else Enrolment.model_validate(knobs),
    )


def _child(item: dict[str, Any]) -> Child:
    reference = SubstrateReference.model_validate(item["reference"])
    return Child(reference=reference, uid=item["uid"])


def _protected(item: dict[str, Any]) -> ProtectedObject:
    reference = SubstrateReference.model_validate(item["reference"])
    return ProtectedObject(
        reference=reference,
        uid=item["uid"],
        seen=item["seen"],
        released=item["released"],
        sibling=item["sibling"],
    )


def _uuid(value: UUID) -> UUID:
    # asyncpg's own UUID subclass compares equal, but pickles and prints as its own type.
    return UUID(int=value.int)
