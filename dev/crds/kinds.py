"""The parts of each kind beyond its model: names, columns, list semantics, CEL rules.

One value per kind. A path that a model does not have is an error when the manifests are
made. Source: kinds.md; design §4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from pydantic import BaseModel

from dev.crds import networks, parameters
from dev.crds.rules import ATOMIC, IMMUTABLE, SET, Overlay, rule, rules
from function.contract import record
from function.contract.catalog import published, tenancy

AGE: Final = ("Age", "date", ".metadata.creationTimestamp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of ours.

    Attributes:
        name: CamelCase kind; singular and plural derive from it.
        scope: where its objects live.
        description: what an object of it is.
        spec: the model of what is declared.
        status: the model of what is observed.
        short_name: what people type.
        columns: name, OpenAPI type and JSON path of what `kubectl get` shows.
        overlays: dotted path (`[]` for items; empty for the object) to further keywords.
    """

    name: str
    scope: Literal["Namespaced", "Cluster"]
    description: str
    spec: type[BaseModel]
    status: type[BaseModel]
    short_name: str
    columns: tuple[tuple[str, str, str], ...]
    overlays: Mapping[str, Overlay] = field(default_factory=dict)

    @property
    def plural(self) -> str:
        """The resource's name in URLs."""
        return f"{self.name.lower()}s"


def _condition(condition_type: str) -> str:
    return f'.status.conditions[?(@.type=="{condition_type}")].status'


_TIMEOUT: Final = rule(
    "duration(self) >= duration('1m') && duration(self) <= duration('24h')",
    "must lie between 1m and 24h",
)

RECORD: Final = Kind(
    name="ProvisioningRecord",
    scope="Namespaced",
    description=(
        "One node's provisioning. The function writes its spec, the reconciler its status; "
        "deleting it deregisters the node from the mesh and then deletes its substrate."
    ),
    spec=record.RecordSpec,
    status=record.RecordStatus,
    short_name="prec",
    columns=(
        ("Phase", "string", ".status.phase"),
        ("XR", "string", ".spec.declaration.xr.name"),
        ("Substrate", "string", ".status.substrate"),
        ("Mesh IP", "string", ".status.node.meshIP"),
        AGE,
    ),
    overlays={
        # The record's key is group, kind, name and resource; an XRD may publish a new version.
        "spec.declaration.xr.apiVersion": rule(
            "self.split('/')[0] == oldSelf.split('/')[0]", "its group is immutable"
        ),
        "spec.declaration.xr.kind": IMMUTABLE,
        "spec.declaration.xr.name": IMMUTABLE,
        "spec.declaration.resource": IMMUTABLE,
        "spec.declaration": rule(
            "has(self.blueprint) == has(oldSelf.blueprint)", "blueprint: is immutable"
        ),
        "spec.declaration.blueprint.name": IMMUTABLE,
        # Of a map that is merged, an apply that takes the last entry away leaves null.
        "spec.declaration.labels": ATOMIC,
        "spec.declaration.parameters": ATOMIC,
    },
)

BLUEPRINT: Final = Kind(
    name="BlueprintVersion",
    scope="Cluster",
    description="One published version of a blueprint: the XR that it composes and its parameters.",
    spec=published.BlueprintVersionSpec,
    status=published.ConditionedStatus,
    short_name="bpv",
    columns=(
        ("Slug", "string", ".spec.slug"),
        ("Version", "string", ".spec.version"),
        ("Strategy", "string", ".spec.injectionStrategy"),
        ("Role", "string", ".spec.meshRole"),
        ("Accepted", "string", _condition("Accepted")),
        AGE,
    ),
    overlays={
        "spec": parameters.SPEC,
        "spec.slug": IMMUTABLE,
        "spec.version": IMMUTABLE,
        "spec.xr": IMMUTABLE,
        "spec.xr.scope": rule(
            "self == 'Namespaced'", "Cluster is refused: a namespaced XR cannot compose it"
        ),
        "spec.injectionStrategy": IMMUTABLE,
        "spec.meshRole": IMMUTABLE,
        "spec.providerKinds": SET,
        "spec.providerConfig": rules(
            ("!(has(self.name) && has(self.fieldPath))", "name and fieldPath exclude each other"),
            (
                "!has(self.apiVersion) || self.kind == 'ProviderConfig'",
                "apiVersion requires kind ProviderConfig, which the broker creates",
            ),
            ("!has(self.secretKey) || has(self.apiVersion)", "secretKey needs an apiVersion"),
        ),
        "spec.providerConfig.apiVersion": rule(
            "self.contains('/')", "must name the provider's API group"
        ),
        # What `function.compose.substrate` would refuse to write.
        "spec.providerConfig.fieldPath": {
            "pattern": r"^spec(\.[A-Za-z][A-Za-z0-9_-]*)+$",
            **rule(
                "!self.matches('^spec[.](cloudTags|crossplane|parameters|userData)([.]|$)')",
                "must not be a field that the broker or Crossplane writes",
            ),
        },
        "spec.registration.timeout": _TIMEOUT,
        "spec.provisioningTimeout": _TIMEOUT,
        "spec.terminalConditions": IMMUTABLE,
        "spec.parameters": {
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
        "spec.parameters[]": parameters.PARAMETER,
        "spec.parameters[].name": parameters.UNRESERVED,
        "spec.parameters[].pattern": parameters.PATTERN,
        "spec.constants": {
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
        "spec.constants[].name": parameters.UNRESERVED,
        "spec.constants[].value": parameters.CONSTANT_VALUE,
    },
)

CLOUD: Final = Kind(
    name="Cloud",
    scope="Cluster",
    description="A place where substrate can be made; it holds nothing secret.",
    spec=published.CloudSpec,
    status=published.ConditionedStatus,
    short_name="pcloud",
    columns=(("Provider", "string", ".spec.provider"), AGE),
    overlays={"spec.provider": IMMUTABLE, "spec.endpoint": {"maxProperties": 64}},
)

CREDENTIAL: Final = Kind(
    name="CloudCredential",
    scope="Cluster",
    description="Where a cloud's credential is kept and which Projects may use it.",
    spec=published.CloudCredentialSpec,
    status=published.ConditionedStatus,
    short_name="pcred",
    columns=(("Cloud", "string", ".spec.cloudRef.name"), AGE),
    overlays={
        "spec.cloudRef": IMMUTABLE,
        # One spelling of each place, so that no two share a Secret's name. The models take what
        # was stored before: an API server lets a value stand that does not change.
        "spec.vault.mount": rule(
            "!self.contains('/')",
            "must not hold a slash: write the rest before the path, the Secret keeps its name",
        ),
        "spec.vault.path": rule(
            "!self.startsWith('/') && !self.endsWith('/') && !self.contains('//')",
            "must neither begin nor end with a slash, nor hold two in a row",
        ),
        "spec.projects": SET,
    },
)

DOMAIN: Final = Kind(
    name="Domain",
    scope="Cluster",
    description="A mesh: the address range that its nodes live in.",
    spec=tenancy.DomainSpec,
    status=published.ConditionedStatus,
    short_name="pdom",
    columns=(
        ("Mesh CIDR", "string", ".spec.meshCIDR"),
        ("Region", "string", ".spec.region"),
        AGE,
    ),
    overlays={
        "spec.meshCIDR": {
            "format": "cidr",
            "x-kubernetes-validations": [
                {"rule": "self == oldSelf", "message": "is immutable"},
                *networks.RULES,
            ],
        }
    },
)

PROJECT: Final = Kind(
    name="Project",
    scope="Cluster",
    description="A tenant's Project in a Domain; its nodes live in a namespace of its own.",
    spec=tenancy.ProjectSpec,
    status=tenancy.ProjectStatus,
    short_name="pproj",
    columns=(
        ("Domain", "string", ".spec.domainRef.name"),
        ("Namespace", "string", ".status.namespace"),
        ("Cluster", "string", ".status.managementCluster"),
        ("Phase", "string", ".status.namespacePhase"),
        AGE,
    ),
    overlays={
        "": rule(
            "!has(self.spec.id) || !has(self.status) || !has(self.status.id)"
            " || self.spec.id == self.status.id",
            "spec.id: must be the id in status.id once that was minted",
        ),
        "spec": rule(
            "!has(oldSelf.id) || (has(self.id) && self.id == oldSelf.id)", "id: is immutable"
        ),
        "spec.domainRef": IMMUTABLE,
        "status": rule(
            "!has(oldSelf.id) || (has(self.id) && self.id == oldSelf.id)", "id: is immutable"
        ),
    },
)

KINDS: Final = (RECORD, BLUEPRINT, CLOUD, CREDENTIAL, DOMAIN, PROJECT)
