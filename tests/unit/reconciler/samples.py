"""Sample values of the broker context, valid by construction; tests change single fields."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from function.contract import names
from function.contract.catalog.published import BlueprintVersionSpec, CloudCredentialSpec, CloudSpec
from function.contract.record import Declaration, SubstrateReference
from function.contract.strategy import Phase
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.protected_object import ProtectedObject
from reconciler.domain.aggregate.resource import ProvisionedResource, RecordIdentity, ResourceKey

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
PROJECT = ids.ProjectID(UUID("0197b1a2-7c3d-7e4f-8a5b-6c7d8e9f0a1b"))
NAMESPACE = names.project_namespace(PROJECT)
ID = ids.ProvisionedResourceID(UUID("0197b1a2-0000-7000-8000-000000000001"))
CLUSTER = ids.management_cluster_id("local")
BLUEPRINT_NAME, CREDENTIAL_NAME, CLOUD_NAME = "generic-vm-v1alpha1", "demo-main", "demo"

XR = {
    "apiVersion": names.API_VERSION,
    "kind": names.XR_KIND,
    "name": "web-1",
    "uid": "0197b1a2-1111-7000-8000-000000000001",
}

DECLARATION = Declaration.model_validate(
    {
        "xr": XR,
        "resource": "substrate",
        "blueprint": {"name": BLUEPRINT_NAME, "version": "v1alpha1"},
        "injectionStrategy": "cloud-init-user-data",
        "meshRole": "node",
        "provider": "generic",
        "cloudCredential": CREDENTIAL_NAME,
        "parameters": {"region": "nbg1", "diskSizeGb": 40},
        "labels": {"team": "checkout"},
    }
)

BLUEPRINT = BlueprintVersionSpec.model_validate(
    {
        "slug": "generic-vm",
        "version": "v1alpha1",
        "injectionStrategy": "cloud-init-user-data",
        "meshRole": "node",
        "providerKinds": ["generic"],
        "xr": {"apiVersion": "blueprints.plexsphere.com/v1alpha1", "kind": "XGenericVM"},
        "parameters": [
            {"name": "region", "type": "string", "required": True},
            {"name": "diskSizeGb", "type": "integer", "default": 40},
        ],
    }
)
CREDENTIAL = CloudCredentialSpec.model_validate(
    {
        "cloudRef": {"name": CLOUD_NAME},
        "vault": {"mount": "kv", "path": "acme/demo"},
        "projects": ["shop"],
    }
)
CLOUD = CloudSpec.model_validate({"provider": "generic"})
SUBSTRATE = SubstrateReference(
    api_version="blueprints.plexsphere.com/v1alpha1", kind="XGenericVM", name=names.xr_name(ID)
)


ENROLLED = DECLARATION.model_copy(
    update={
        "resource": "server",
        "blueprint": None,
        "cloud_credential": None,
        "parameters": {},
        "xr": DECLARATION.xr.model_copy(
            update={"api_version": "platform.test/v1", "kind": "Pool", "name": "pool"}
        ),
    }
)
SERVER = SubstrateReference(api_version="cloud.test/v1", kind="Server", name="")
NETWORK = SubstrateReference(api_version="cloud.test/v1", kind="Network", name="net")


def resource(**changes: Any) -> ProvisionedResource:
    """Build an aggregate."""
    fields: dict[str, Any] = {
        "id": ID,
        "resource_id": ids.resource_id(PROJECT, xr="g/k/web-1", resource="substrate"),
        "project_id": PROJECT,
        "blueprint_version_id": ids.blueprint_version_id(BLUEPRINT_NAME),
        "cloud_credential_id": ids.cloud_credential_id(CREDENTIAL_NAME),
        "management_cluster_id": CLUSTER,
        "phase": Phase.PENDING,
        "xr_name": names.xr_name(ID),
        "key": ResourceKey(
            project_id=PROJECT,
            namespace=NAMESPACE,
            group=names.GROUP,
            kind=names.XR_KIND,
            name="web-1",
            resource="substrate",
        ),
        "record": RecordIdentity(name="web-1-abc", uid="record-1"),
        "accepted": DECLARATION,
        "protected": (ProtectedObject(reference=SUBSTRATE),),
        "created_at": NOW,
        "updated_at": NOW,
    }
    return ProvisionedResource(**{**fields, **changes})


def record(**metadata: Any) -> dict[str, Any]:
    """Build a raw record as the function composes it."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.RECORD_KIND,
        "metadata": {
            "name": "web-1-abc",
            "namespace": NAMESPACE,
            "uid": "record-1",
            "generation": 1,
            "finalizers": [names.FINALIZER],
            "ownerReferences": [
                {
                    "apiVersion": XR["apiVersion"],
                    "kind": XR["kind"],
                    "name": XR["name"],
                    "uid": XR["uid"],
                    "controller": True,
                }
            ],
            **metadata,
        },
        "spec": {
            "declaration": DECLARATION.model_dump(mode="json", by_alias=True, exclude_none=True),
            "observed": {"exists": False},
        },
    }
