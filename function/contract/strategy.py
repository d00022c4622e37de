"""The closed sets of a blueprint: how a token travels, what role a node has, which cloud.

Enumerations whose values are stored and shown verbatim.
"""

from __future__ import annotations

from enum import StrEnum, unique


@unique
class InjectionStrategy(StrEnum):
    """The place where a blueprint expects the enrolment material.

    Source: seed 003, "field map".
    """

    CLOUD_INIT_USER_DATA = "cloud-init-user-data"
    HELM_VALUES = "helm-values"
    PROVIDER_SECRET = "provider-secret"  # noqa: S105 - the seeds' word for a strategy


@unique
class MeshRole(StrEnum):
    """Whether the substrate becomes a node; `standalone`: no token, no bootstrap."""

    NODE = "node"
    STANDALONE = "standalone"


@unique
class CloudProvider(StrEnum):
    """The provider discriminator of a Cloud."""

    AWS = "aws"
    AZURE = "azure"
    GCP = "gcp"
    HETZNER = "hetzner"
    OPENSTACK = "openstack"
    GENERIC = "generic"


@unique
class ParameterType(StrEnum):
    """The JSON types that a blueprint's parameter may have."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    STRING = "string"


@unique
class Phase(StrEnum):
    """The lifecycle phase of a resource; status, SQL and events show the values.

    Source: seed 000, "Status state machine"; seed 001, "Deletion state machine".
    """

    PENDING = "Pending"
    PROVISIONING = "Provisioning"
    ENROLLING = "Enrolling"
    READY = "Ready"
    FAILED = "Failed"
    DEREGISTERING = "Deregistering"
    DEPROVISIONING = "Deprovisioning"
    DELETED = "Deleted"


@unique
class SubstrateState(StrEnum):
    """Whether the function must compose the substrate."""

    PRESENT = "Present"
    ABSENT = "Absent"


@unique
class BootstrapState(StrEnum):
    """The life of a bootstrap token, as the record's status shows it.

    Source: kinds.md, "What the function composes".
    """

    NONE = "None"
    ISSUED = "Issued"
    CONSUMED = "Consumed"
    EXPIRED = "Expired"
    REVOKED = "Revoked"


@unique
class DocumentForm(StrEnum):
    """The form of the rendered user-data document.

    `plexd` is what published plexd understands (`plexd join`, environment file,
    service); `seed` is seed 003's literal three-step form.
    """

    PLEXD = "plexd"
    SEED = "seed"
