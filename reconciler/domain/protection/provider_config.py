"""The ProviderConfig of a credential: the seeds' generic one, or a real provider's own.

Names and the plain manifest. Real providers agree on `spec.credentials`, and on nothing
else; the Cloud's `endpoint` gives the rest. Source: seed 000 "What render/ produces";
kinds.md; contracts §6 item 35.
"""

from __future__ import annotations

from typing import Any, Final

from function.contract import names
from function.contract.catalog.published import (
    BlueprintVersionSpec,
    CloudCredentialSpec,
    CloudSpec,
    ProviderConfigTarget,
)
from function.contract.strategy import CloudProvider

VERSION: Final = "v1"
KIND: Final = "ProviderConfig"
ANNOTATION_CREDENTIAL: Final = f"{names.GROUP}/cloud-credential"

SECRET_KEY: Final = "credentials"  # noqa: S105 - a key's name
"""Where a provider finds its credential, as the providers' own examples have it."""

_CREDENTIALS: Final = "credentials"


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


def api_version(target: ProviderConfigTarget | None, provider: CloudProvider) -> str:
    """Return the apiVersion of the ProviderConfig that a blueprint needs."""
    if target is not None and target.api_version is not None:
        return target.api_version
    return f"{provider.value}.crossplane.io/{VERSION}"


def taken(name: str, holder: str | None) -> str:
    """Say whose a ProviderConfig is that a declaration needs, and what helps.

    Args:
        name: The ProviderConfig's.
        holder: The credential that holds it; None: nobody here made it.
    """
    if holder is None:
        return f"{KIND} {name!r} was not created by the reconciler; delete it to have it created"
    return f"{KIND} {name!r} belongs to CloudCredential {holder!r}; use that one instead"


def manifest(
    *, name: str, namespace: str, credential_name: str, credential: CloudCredentialSpec,
    cloud: CloudSpec, target: ProviderConfigTarget | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Render the ProviderConfig, held until nobody uses it.

    Args:
        name: What the Composition refers to, see `name`.
        namespace: The Project's.
        credential_name: Whose it is.
        credential: Where its Secret's name comes from.
        cloud: What is no secret of it.
        target: What the blueprint says; without an apiVersion it is the seeds' generic one.
    """
    secret = names.cloud_credentials_secret_name(
        mount=credential.vault.mount, path=credential.vault.path
    )
    real = target is not None and target.api_version is not None
    return {
        "apiVersion": api_version(target, cloud.provider),
        "kind": KIND,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {names.LABEL_HOLD: "true"},
            "annotations": {ANNOTATION_CREDENTIAL: credential_name},
        },
        "spec": _real(target, namespace, secret, cloud) if real else _seed(secret, cloud),
    }


def _seed(secret: str, cloud: CloudSpec) -> dict[str, Any]:
    return {"endpoint": cloud.endpoint, _CREDENTIALS: {"secretRef": {"name": secret}}}


def _real(
    target: ProviderConfigTarget | None, namespace: str, secret: str, cloud: CloudSpec
) -> dict[str, Any]:
    key = SECRET_KEY if target is None or target.secret_key is None else target.secret_key
    reference = {"name": secret, "namespace": namespace, "key": key}
    return {**cloud.endpoint, _CREDENTIALS: {"source": "Secret", "secretRef": reference}}
