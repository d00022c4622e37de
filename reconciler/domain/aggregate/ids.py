"""Typed ids of the broker context and the ids derived from names.

One type per kind of id, never a bare UUID across a function boundary.
"""

from __future__ import annotations

from typing import Final, NewType
from uuid import UUID, uuid5

ProvisionedResourceID = NewType("ProvisionedResourceID", UUID)
ProjectID = NewType("ProjectID", UUID)
ResourceID = NewType("ResourceID", UUID)
BlueprintVersionID = NewType("BlueprintVersionID", UUID)
CloudCredentialID = NewType("CloudCredentialID", UUID)
BootstrapTokenID = NewType("BootstrapTokenID", UUID)
ManagementClusterID = NewType("ManagementClusterID", UUID)
NodeID = NewType("NodeID", UUID)

NAMESPACE: Final = UUID("7f0a4cde-1f5e-5d2b-9d1e-6a1f7e0c5b3a")
"""The UUIDv5 namespace of ids that stand for named objects (design §4)."""


def blueprint_version_id(name: str) -> BlueprintVersionID:
    """Return the id that stands for a BlueprintVersion object."""
    return BlueprintVersionID(uuid5(NAMESPACE, f"BlueprintVersion/{name}"))


def cloud_credential_id(name: str) -> CloudCredentialID:
    """Return the id that stands for a CloudCredential object."""
    return CloudCredentialID(uuid5(NAMESPACE, f"CloudCredential/{name}"))


def management_cluster_id(slug: str) -> ManagementClusterID:
    """Return the id that stands for a ManagementCluster object."""
    return ManagementClusterID(uuid5(NAMESPACE, f"ManagementCluster/{slug}"))


def resource_id(project: ProjectID, *, xr: str, resource: str) -> ResourceID:
    """Return the id that stands for one composed resource of one XR of a Project.

    Args:
        project: The Project it belongs to.
        xr: Group, kind and name of the XR, joined by slashes.
        resource: The composed resource's name in the XR.
    """
    return ResourceID(uuid5(NAMESPACE, f"Resource/{project}/{xr}/{resource}"))
