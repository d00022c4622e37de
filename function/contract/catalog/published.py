"""The kinds that platform teams publish: Cloud, CloudCredential, BlueprintVersion.

The shapes of their specs. Source: kinds.md, "What people write".
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from function.contract.catalog.parameter import Constant, Parameter
from function.contract.catalog.terminal import USUAL, TerminalConditions
from function.contract.conditions import Condition
from function.contract.registration import Registration, Timeout, length_of
from function.contract.shape import NameRef, ObjectName, Shape
from function.contract.strategy import CloudProvider, InjectionStrategy, MeshRole

Slug = Annotated[
    str,
    Field(
        min_length=1,
        max_length=63,
        pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$",
        description="Kebab-case name that all versions of a blueprint share.",
    ),
]
ApiVersion = Annotated[
    str,
    Field(
        max_length=253,
        pattern=r"^([a-z0-9.-]+/)?v[0-9]+((alpha|beta)[0-9]+)?$",
        description="Group and version, for example blueprints.plexsphere.com/v1alpha1.",
    ),
]
Kind = Annotated[
    str,
    Field(max_length=63, pattern=r"^[A-Z][A-Za-z0-9]*$", description="CamelCase kind."),
]


PARAMETERS_MAX = 64
"""Most parameters and constants of one blueprint: what a record holds of one declaration."""


class CloudSpec(Shape):
    """A place where substrate can be made."""

    provider: CloudProvider = Field(description="Which provider family serves this cloud.")
    endpoint: dict[str, Any] = Field(
        default_factory=dict,
        description="Non-secret, free-form; inlined into the ProviderConfig's spec.endpoint.",
    )


class VaultPath(Shape):
    """OpenBao KV-v2 coordinates of a credential; its value never enters this system."""

    mount: Annotated[str, Field(min_length=1, max_length=256)] = Field(
        description="Mount point of the KV-v2 engine, for example kv; of kv/team, kv."
    )
    path: Annotated[str, Field(min_length=1, max_length=1024)] = Field(
        description="Path of the secret below the mount, for example acme/hetzner; case counts."
    )


class SecretStoreRef(Shape):
    """The External Secrets store that an ExternalSecret is rendered for."""

    kind: Literal["SecretStore", "ClusterSecretStore"] = Field(
        default="ClusterSecretStore", description="Kind of the store."
    )
    name: ObjectName


class CloudCredentialSpec(Shape):
    """A credential of a cloud and the Projects that may use it."""

    cloud_ref: NameRef = Field(description="The Cloud this credential opens.")
    vault: VaultPath = Field(description="Where OpenBao keeps the credential; never its value.")
    secret_store_ref: SecretStoreRef | None = Field(
        default=None,
        description="Renders an ExternalSecret. Absent: the Secret must exist.",
    )
    projects: Annotated[tuple[ObjectName, ...], Field(max_length=10_000)] = Field(
        default=(), description="Names of the Projects that may use it."
    )


class CompositeType(Shape):
    """The blueprint's own XR, which the function composes."""

    api_version: ApiVersion
    kind: Kind
    scope: Literal["Namespaced", "Cluster"] = Field(
        default="Namespaced", description="Cluster is refused: a namespaced XR cannot compose it."
    )


class ProviderConfigTarget(Shape):
    """The ProviderConfig that a blueprint's Composition refers to, and its provider."""

    api_version: ApiVersion | None = Field(
        default=None,
        description="The ProviderConfig's, for example aws.m.upbound.io/v1beta1. Absent: "
        "<provider>.crossplane.io/v1, with the credential as a whole Secret.",
    )
    secret_key: Annotated[str, Field(max_length=253, pattern=r"^[-._a-zA-Z0-9]+$")] | None = Field(
        default=None,
        description="Key of the credential's Secret that the provider reads; only with an "
        "apiVersion. Absent: credentials.",
    )
    kind: Literal["ProviderConfig", "ClusterProviderConfig"] = Field(
        default="ProviderConfig", description="Kind that its Composition refers to."
    )
    name: ObjectName | None = Field(
        default=None, description="The fixed name its Composition refers to."
    )
    field_path: Annotated[str, Field(max_length=256)] | None = Field(
        default=None,
        description="Field path of the XR that takes the name instead, below spec.",
    )


class BlueprintVersionSpec(Shape):
    """One published, immutable version of a blueprint."""

    slug: Slug
    version: Annotated[str, Field(max_length=63, pattern=r"^v[0-9]+((alpha|beta)[0-9]+)?$")] = (
        Field(description="Version in Kubernetes style, for example v1alpha1.")
    )
    injection_strategy: InjectionStrategy = Field(
        description="Where the blueprint expects the enrolment material; immutable."
    )
    mesh_role: MeshRole = Field(
        default=MeshRole.NODE,
        description="Whether the substrate becomes a node; standalone: no token, no bootstrap; "
        "immutable.",
    )
    provider_kinds: Annotated[tuple[CloudProvider, ...], Field(min_length=1, max_length=6)] = Field(
        description="Provider families whose credentials may be used with it."
    )
    xr: CompositeType = Field(description="The blueprint's own XR; immutable.")
    provider_config: ProviderConfigTarget | None = Field(
        default=None, description="Absent: a ProviderConfig named after the provider."
    )
    parameters: Annotated[tuple[Parameter, ...], Field(max_length=PARAMETERS_MAX)] = Field(
        default=(), description="What a declaration may set, by name; immutable."
    )
    constants: Annotated[tuple[Constant, ...], Field(max_length=32)] = Field(
        default=(),
        description="Values that the platform sets below spec.parameters of the XR and that a "
        "declaration must not set; immutable.",
    )
    registration: Registration | None = Field(
        default=None,
        description="Policy for a node that does not register in time. Absent: Keep, after the "
        "reconciler's timeout; immutable.",
    )
    terminal_conditions: TerminalConditions = Field(
        default=USUAL,
        description="Conditions of the blueprint's XR, any of which is a terminal failure.",
    )
    provisioning_timeout: Timeout | None = Field(
        default=None,
        description="How long the substrate may take before its record stalls, 1m to 24h, for "
        "example 30m. Absent: the reconciler's setting.",
    )

    @property
    def provisioning_limit(self) -> timedelta | None:
        """How long the substrate may take; None: as the reconciler is set."""
        given = self.provisioning_timeout
        return None if given is None else length_of(given)

    @model_validator(mode="after")
    def _parameters_are_consistent(self) -> BlueprintVersionSpec:
        names = [each.name for each in self.parameters]
        names += [each.name for each in self.constants]
        if len(names) != len(set(names)):
            message = "parameters and constants: names must be unique"
            raise ValueError(message)
        if len(names) > PARAMETERS_MAX:
            message = f"parameters and constants: must be at most {PARAMETERS_MAX} together"
            raise ValueError(message)
        return self


class ConditionedStatus(Shape):
    """A status that is only conditions."""

    conditions: tuple[Condition, ...] = Field(
        default=(), description="Latest observations, one per type."
    )
