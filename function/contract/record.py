"""The ProvisioningRecord: the only object the two processes exchange.

Its spec (the function writes it) and its status (the reconciler writes it). Source: design
§2, kinds.md "What the function composes".
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from function.contract.conditions import Condition
from function.contract.limits import ParameterNames, ParameterValue
from function.contract.registration import Registration
from function.contract.shape import LabelText, Later, ObjectName, Sha256, Shape, UrlText, WireText
from function.contract.strategy import (
    BootstrapState,
    CloudProvider,
    DocumentForm,
    InjectionStrategy,
    MeshRole,
    Phase,
    SubstrateState,
)

PROTECTED_MAX = 16
"""Most objects that one record protects, the substrate among them."""
LABELS_MAX = 64
"""Most labels of one object (contracts §3.6)."""


class XRReference(Shape):
    """The composite resource a record belongs to."""

    api_version: WireText = Field(description="Group and version of the XR.")
    kind: WireText = Field(description="Kind of the XR.")
    name: WireText = Field(description="Name of the XR, in the record's namespace.")
    uid: WireText = Field(description="Uid of the XR; it changes when the XR is recreated.")


class BlueprintReference(Shape):
    """The blueprint version a declaration resolved to."""

    name: ObjectName
    version: WireText = Field(description="The blueprint's version, for example v1alpha1.")


class Declaration(Shape):
    """The user's declaration, resolved: defaults applied, provider looked up."""

    xr: XRReference = Field(description="The XR that declared it.")
    resource: WireText = Field(description="Which composed resource of that XR.")
    blueprint: BlueprintReference | None = Field(default=None, description="Declare only.")
    injection_strategy: InjectionStrategy
    mesh_role: MeshRole
    provider: CloudProvider = Field(description="Provider family of the credential's cloud.")
    cloud_credential: ObjectName | None = Field(default=None, description="The CloudCredential.")
    parameters: Annotated[dict[str, ParameterValue], Field(max_length=64)] = Field(
        default_factory=dict, description="Parameters by name, defaults and constants applied."
    )
    given: ParameterNames | None = None
    labels: Annotated[dict[str, LabelText], Field(max_length=LABELS_MAX)] = Field(
        default_factory=dict, description="Labels that become cloud tags."
    )
    retry: Annotated[int, Field(ge=0, le=2**31 - 1, description="Increment it to start over.")] = 0
    registration: Registration | None = None


class SubstrateReference(Shape):
    """One protected object, in the record's namespace; without a name: status.xrName."""

    api_version: WireText = Field(description="Group and version of the object.")
    kind: WireText = Field(description="Kind of the object.")
    name: Later = Field(description="Name of the object; empty: status.xrName.")


class ObservedSubstrate(Shape):
    """The seeds' ObservedXR facts, as the function saw them, and the rendered generation."""

    exists: bool = Field(default=False, description="Whether the substrate was there.")
    ready: bool = Field(default=False, description="Whether its Ready condition was True.")
    failed: bool = Field(default=False, description="Whether it reported a terminal failure.")
    reason: Annotated[str, Field(max_length=1024)] = Field(default="", description="Why it failed.")
    bootstrap_generation: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="Generation of the token that was rendered into it."
    )
    uid: WireText | None = Field(default=None, description="Its uid; changes when recreated.")


class RecordSpec(Shape):
    """The function's half of the record."""

    declaration: Declaration = Field(description="What the user declared, resolved.")
    substrate: Annotated[tuple[SubstrateReference, ...], Field(max_length=PROTECTED_MAX)] = Field(
        default=(), description="The objects that outlive the node, the substrate first."
    )
    observed: ObservedSubstrate = Field(
        default=ObservedSubstrate(), description="The substrate as the function saw it."
    )
    drain: bool = Field(default=False, description="The function asks for an ordered teardown.")
    released: bool = Field(default=False, description="The function has seen substrate Absent.")


class Enrolment(Shape):
    """The knobs an enrolment document needs; non-secret."""

    base_url: UrlText | None = Field(
        default=None, alias="baseURL", description="Absolute URL that nodes register at."
    )
    plexd_download_url: UrlText | None = Field(
        default=None,
        alias="plexdDownloadURL",
        description="Absolute URL of the agent; may hold {arch}.",
    )
    plexd_sha256: Annotated[dict[str, Sha256], Field(max_length=8)] = Field(
        default_factory=dict,
        alias="plexdSHA256",
        description="SHA-256 of the agent in lower-case hex, by architecture.",
    )
    plexd_image: Annotated[str, Field(max_length=512)] | None = Field(
        default=None, description="Image of the agent, by tag or digest."
    )
    ca_bundle: Annotated[str, Field(max_length=65536)] | None = Field(
        default=None, description="PEM certificates that nodes trust for the base URL."
    )
    document_form: DocumentForm = DocumentForm.PLEXD


class SecretRef(Shape):
    """A Secret in the record's namespace."""

    name: ObjectName


class Bootstrap(Shape):
    """The reference to the token of the current generation, never the token itself."""

    secret_ref: SecretRef | None = None
    generation: Annotated[int, Field(ge=0)] = Field(
        default=0, description="Counts the tokens of this record; 0 before the first."
    )
    state: BootstrapState = BootstrapState.NONE


class ProviderConfigReference(Shape):
    """The ProviderConfig made for the record's credential."""

    kind: WireText = Field(default="ProviderConfig", description="Kind of the ProviderConfig.")
    name: WireText = Field(description="Name of the ProviderConfig.")


class Node(Shape):
    """The node that registered."""

    id: WireText = Field(description="The node's id.")
    mesh_ip: Annotated[str, Field(max_length=45)] = Field(
        alias="meshIP", description="Its address in the mesh."
    )
    registered_at: Annotated[str, Field(json_schema_extra={"format": "date-time"})] = Field(
        description="When it registered, RFC 3339 in UTC."
    )


class RecordStatus(Shape):
    """The reconciler's half of the record."""

    phase: Phase | None = Field(
        default=None, description="Lifecycle phase; absent until the declaration is accepted."
    )
    provisioned_resource_id: WireText | None = Field(
        default=None, alias="provisionedResourceID", description="The aggregate's UUIDv7."
    )
    xr_name: Later | None = Field(
        default=None, description="Name of the substrate, pr-<uuid>; also the node's handle."
    )
    accepted: Declaration | None = Field(
        default=None, description="The declaration as accepted; the function composes from it."
    )
    substrate: SubstrateState | None = None
    provider_config_ref: ProviderConfigReference | None = None
    enrolment: Enrolment | None = Field(
        default=None, description="What an enrolment document needs; nothing secret."
    )
    bootstrap: Bootstrap = Field(
        default=Bootstrap(), description="Where the token of the current generation is."
    )
    node: Node | None = Field(default=None, description="The node; absent until it registered.")
    conditions: tuple[Condition, ...] = Field(
        default=(), description="Latest observations, one per type."
    )


def wire(model: Shape) -> dict[str, Any]:
    """Return a model as the manifest holds it: camelCase, absent optionals left out.

    Deterministic: fields in the model's order, values as JSON types.
    """
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)
