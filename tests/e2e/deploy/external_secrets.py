"""External Secrets without its controller: its kind, and what its controller would do.

A CRD with the fields of the real one that we use (External Secrets v0.19.2,
`external-secrets.io/v1`), with its enums, limits and defaults, and the Secret that the
controller makes. Contract and end-to-end tests import it.
"""

from __future__ import annotations

from typing import Any, Final

from reconciler.domain.protection import external_secret

Object = dict[str, Any]

PLURAL: Final = "externalsecrets"
GROUP, _, VERSION = external_secret.API_VERSION.partition("/")

ACCOUNT: Final = "system:serviceaccount:external-secrets:external-secrets"
OWNED: Final = "reconcile.external-secrets.io/managed"
"""The label that the controller gives the Secrets it makes."""

_NAME: Final = {
    "type": "string",
    "minLength": 1,
    "maxLength": 253,
    "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
}
_STRINGS: Final = {"type": "object", "additionalProperties": {"type": "string"}}


def _choice(*values: str, default: str) -> Object:
    return {"type": "string", "enum": list(values), "default": default}


def _object(**properties: Object) -> Object:
    return {"type": "object", "properties": properties}


def definition() -> Object:
    """Return the CRD."""
    metadata = _object(labels=_STRINGS, annotations=_STRINGS)
    template = _object(
        engineVersion=_choice("v2", default="v2"),
        mergePolicy=_choice("Replace", "Merge", default="Replace"),
        metadata=metadata,
        type={"type": "string"},
    )
    target = _object(
        name=_NAME,
        creationPolicy=_choice("Owner", "Orphan", "Merge", "None", default="Owner"),
        deletionPolicy=_choice("Delete", "Merge", "Retain", default="Retain"),
        template=template,
    )
    extract = _object(
        key={"type": "string"},
        conversionStrategy=_choice("Default", "Unicode", default="Default"),
        decodingStrategy=_choice("Auto", "Base64", "Base64URL", "None", default="None"),
        metadataPolicy=_choice("None", "Fetch", default="None"),
    )
    store = {"type": "string", "enum": ["SecretStore", "ClusterSecretStore"]}
    spec = _object(
        refreshInterval={"type": "string", "default": "1h"},
        secretStoreRef=_object(kind=store, name=_NAME),
        target=target,
        dataFrom={
            "type": "array",
            "items": _object(extract={**extract, "required": ["key"]}),
        },
    )
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _object(spec=spec)},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": external_secret.KIND, "plural": PLURAL},
            "versions": [version],
        },
    }


def path(namespace: str, name: str = "") -> str:
    """Return the path of the kind's collection, or of one object."""
    collection = f"/apis/{external_secret.API_VERSION}/namespaces/{namespace}/{PLURAL}"
    return f"{collection}/{name}" if name else collection


def secret_of(found: Object) -> Object:
    """Return the Secret that the controller makes of an ExternalSecret.

    Its labels are the template's; without a template they are the ExternalSecret's own.
    """
    template = found["spec"]["target"].get("template")
    source = found if template is None else template
    owner = {
        "apiVersion": found["apiVersion"],
        "kind": found["kind"],
        "name": found["metadata"]["name"],
        "uid": found["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": found["spec"]["target"]["name"],
            "labels": {**source["metadata"].get("labels", {}), OWNED: "true"},
            "ownerReferences": [owner],
        },
        "stringData": {"token": "sample"},
    }
