"""The ProviderConfig of a credential, as the seeds describe it.

Belongs here: names and the plain manifest. Not here: provider families' own shapes, and
creating or deleting it. Source: seed 000 "What render/ produces"; kinds.md.
"""

from __future__ import annotations

from typing import Any, Final

from function.contract import names
from function.contract.catalog import BlueprintVersionSpec, CloudCredentialSpec, CloudSpec

VERSION: Final = "v1"
ANNOTATION_CREDENTIAL: Final = f"{names.GROUP}/cloud-credential"


def name(blueprint: BlueprintVersionSpec, cloud: CloudSpec, credential: str) -> str:
    """Name the ProviderConfig that a blueprint's Composition will refer to.

    The fixed name a blueprint states, else the credential's own where the XR takes it,
    else the provider's (seed 000).
    """
    target = blueprint.provider_config
    if target is not None and target.name is not None:
        return target.name
    if target is not None and target.field_path is not None:
        return credential
    return cloud.provider.value


def manifest(
    *, name: str, namespace: str, credential_name: str, credential: CloudCredentialSpec,
    cloud: CloudSpec,
) -> dict[str, Any]:  # fmt: skip
    """Render the seed's generic ProviderConfig, held until nobody uses it."""
    secret = names.cloud_credentials_secret_name(
        mount=credential.vault.mount, path=credential.vault.path
    )
    return {
        "apiVersion": f"{cloud.provider.value}.crossplane.io/{VERSION}",
        "kind": "ProviderConfig",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {names.LABEL_HOLD: "true"},
            "annotations": {ANNOTATION_CREDENTIAL: credential_name},
        },
        "spec": {
            "endpoint": cloud.endpoint,
            "credentials": {"secretRef": {"name": secret}},
        },
    }
