"""Names, labels and annotations that both processes derive, and their inverse checks.

Pure derivations from ids and names. Every name is legal in Kubernetes for any input,
deterministic, and free of secrets.
"""

from __future__ import annotations

import functools
import hashlib
import re
from typing import Final
from uuid import UUID

GROUP: Final = "provisioning.plexsphere.com"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
INPUT_GROUP: Final = "broker.fn.plexsphere.com"
INPUT_API_VERSION: Final = f"{INPUT_GROUP}/v1alpha1"
BLUEPRINTS_GROUP: Final = "blueprints.plexsphere.com"

RECORD_KIND: Final = "ProvisioningRecord"
XR_KIND: Final = "ProvisionedResource"

FINALIZER: Final = f"{GROUP}/teardown"
LABEL_HOLD: Final = f"{GROUP}/hold"
LABEL_RECORD: Final = f"{GROUP}/record"
LABEL_XR: Final = f"{GROUP}/xr"
ANNOTATION_RELEASED: Final = f"{GROUP}/released"
ANNOTATION_GENERATION: Final = f"{GROUP}/bootstrap-generation"
ANNOTATION_PROVIDER_CONFIG: Final = f"{GROUP}/provider-config-path"
ANNOTATION_BOOTSTRAP_PATHS: Final = f"{GROUP}/bootstrap-paths"
ANNOTATION_RELEASING: Final = f"{GROUP}/releasing"
ANNOTATION_RECORDS: Final = f"{GROUP}/records"
ANNOTATION_FORCE_RELEASE: Final = f"{GROUP}/force-release"
CONTEXT_PREVIEW: Final = f"{GROUP}/preview"
PAUSED: Final = "crossplane.io/paused"
CROSSPLANE_FINALIZER: Final = "composite.apiextensions.crossplane.io"
CROSSPLANE_COMPOSITE: Final = "crossplane.io/composite"

TOKEN_SECRET_TYPE: Final = f"{GROUP}/bootstrap-token"
TOKEN_SECRET_KEY: Final = "token"  # noqa: S105 - a key's name
TOKEN_SECRET_GENERATION_KEY: Final = "generation"  # noqa: S105 - a key's name

RESOURCE_RECORD: Final = "record"
RESOURCE_SUBSTRATE: Final = "substrate"

LABEL_MAX: Final = 63
"""Longest label value and DNS-1123 label, in characters (Kubernetes, "Names")."""

_NAMESPACES_MAX: Final = 1024
"""Namespaces whose Projects are remembered: an XR names its own in every call."""

_RECORDS_MAX: Final = 4096
"""Records whose names are remembered, some 300 bytes each: every call asks for one three times."""

_NAMESPACE_PREFIX: Final = "plexsphere-project-"
_XR_PREFIX: Final = "pr-"
_HASH_LENGTH: Final = 10
"""40 bits: collisions are only possible inside one namespace of a few thousand records."""
_CREDENTIALS: Final = re.compile(r"cloud-credentials-[0-9a-f]{16}")
_NOT_LABEL: Final = re.compile(r"[^a-z0-9-]+")


def xr_name(provisioned_resource_id: UUID) -> str:
    """Name the substrate object of an aggregate: `pr-<uuid>`, also its resource handle.

    Source: seed 000, "The derived XR name".
    """
    return f"{_XR_PREFIX}{provisioned_resource_id}"


def provisioned_resource_id(name: str) -> UUID | None:
    """Return the aggregate's id in a substrate's name, or None if it is no such name."""
    return _uuid(name.removeprefix(_XR_PREFIX)) if name.startswith(_XR_PREFIX) else None


def project_namespace(project_id: UUID) -> str:
    """Name the namespace of a Project (seed 002): `plexsphere-project-<uuid>`."""
    return f"{_NAMESPACE_PREFIX}{project_id}"


@functools.lru_cache(maxsize=_NAMESPACES_MAX)
def project_id(namespace: str) -> UUID | None:
    """Return the Project's id in a namespace's name, or None if it is no such namespace."""
    if not namespace.startswith(_NAMESPACE_PREFIX):
        return None
    return _uuid(namespace.removeprefix(_NAMESPACE_PREFIX))


@functools.lru_cache(maxsize=_RECORDS_MAX)
def record_name(*, group: str, kind: str, name: str, resource: str) -> str:
    """Name the record of one composed resource of one XR.

    Deterministic from the key and not from the uid, so that an XR applied again finds
    its record. At most 63 characters, so that it fits a label value.
    """
    digest = hashlib.sha256("\n".join((group, kind, name, resource)).encode()).hexdigest()
    head = _NOT_LABEL.sub("-", name.lower())[: LABEL_MAX - _HASH_LENGTH - 1].strip("-")
    return f"{head or 'record'}-{digest[:_HASH_LENGTH]}"


def token_secret_name(record: str, generation: int) -> str:
    """Name the Secret that carries the token of one generation of one record."""
    return f"{record}-g{generation}"


def cloud_credentials_secret_name(*, mount: str, path: str) -> str:
    """Name the Secret that External Secrets makes of OpenBao coordinates.

    A hash of the coordinates and never of the value (seed 000, "What render/ produces"). The
    definition of CloudCredential takes a mount without a slash and a path without an empty part,
    so that of `mount/path` there is one reading; case counts, as OpenBao's does. What was stored
    before that may share a name with what names the same place, and keeps it.
    """
    return f"cloud-credentials-{hashlib.sha256(f'{mount}/{path}'.encode()).hexdigest()[:16]}"


def is_cloud_credentials_secret(name: str) -> bool:
    """Tell whether a Secret's name is one that `cloud_credentials_secret_name` gives."""
    return _CREDENTIALS.fullmatch(name) is not None


def label_value(text: str) -> str:
    """Return a legal label value for a name: itself, or a hashed head when too long."""
    if len(text) <= LABEL_MAX:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:_HASH_LENGTH]
    return f"{text[: LABEL_MAX - _HASH_LENGTH - 1].strip('-.')}-{digest}"


def group_of(api_version: str) -> str:
    """Return the API group of an apiVersion; the core group is the empty string."""
    group, slash, _ = api_version.partition("/")
    return group if slash else ""


def _uuid(text: str) -> UUID | None:
    try:
        value = UUID(text)
    except ValueError:
        return None
    return value if str(value) == text else None
