"""The ExternalSecret that brings a credential into a Project's namespace.

Its plain manifest, whose it is, and the refusal where its name is taken. Source: kinds.md
`CloudCredential`; contracts §6 item 37; External Secrets API `external-secrets.io/v1`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from function.contract import names
from function.contract.catalog.published import SecretStoreRef, VaultPath

API_VERSION: Final = "external-secrets.io/v1"
KIND: Final = "ExternalSecret"

REFRESH: Final = "1h"
"""A rotated credential arrives within the hour; oftener would cost the store one read per
Project and minute."""

LABEL_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
MANAGED_BY: Final = "plexsphere-provisioning-broker"
"""Marks the ExternalSecrets that are ours to change and to delete; others are only held."""

_OURS: Final = {LABEL_MANAGED_BY: MANAGED_BY}


def manifest(*, namespace: str, vault: VaultPath, store: SecretStoreRef) -> dict[str, Any]:
    """Render it, held from birth; it and its Secret have the same name.

    `Owner`: a Secret of that name which somebody else made is a conflict that External
    Secrets reports, and not overwritten. `Retain`: a credential that vanishes from the store
    must not vanish here while nodes are to be taken down with it.

    DECISION: the template has labels of its own and not the hold. Without a template
    External Secrets copies the labels of the ExternalSecret, and with the hold among them its
    create is refused: it may not update Projects, which is what putting a hold on takes. The
    reconciler labels the Secret instead; External Secrets drops labels of its own field
    manager only.
    """
    name = names.cloud_credentials_secret_name(mount=vault.mount, path=vault.path)
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {**_OURS, names.LABEL_HOLD: "true"},
        },
        "spec": {
            "refreshInterval": REFRESH,
            "secretStoreRef": {"kind": store.kind, "name": store.name},
            "target": {
                "name": name,
                "creationPolicy": "Owner",
                "deletionPolicy": "Retain",
                "template": {"mergePolicy": "Merge", "metadata": {"labels": dict(_OURS)}},
            },
            # With the mount in front it is found whether or not the store names its mount.
            "dataFrom": [{"extract": {"key": f"{vault.mount}/{vault.path}"}}],
        },
    }


def is_ours(labels: Mapping[str, Any]) -> bool:
    """Tell by its labels whether an ExternalSecret was rendered here."""
    return bool(labels.get(LABEL_MANAGED_BY) == MANAGED_BY)


def taken(name: str, credential: str) -> str:
    """Say that the name of a credential's ExternalSecret is somebody else's, and what helps."""
    return (
        f"{KIND} {name!r} of CloudCredential {credential!r} was not created by the reconciler: it "
        f"has no label {LABEL_MANAGED_BY}={MANAGED_BY}; delete it, or remove spec.secretStoreRef "
        "and provide the Secret yourself"
    )
