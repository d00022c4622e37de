"""From a ProvisionedResource and what it refers to, to a declaration or a refusal.

Resolving blueprint, credential, cloud, parameters and labels. Pure. Whether the Project may
use the credential is the reconciler's answer: the function does not know Projects. Source:
design §3; issue "Bad input".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from function.contract import names
from function.contract.catalog import parameters
from function.contract.catalog.published import BlueprintVersionSpec, CloudCredentialSpec, CloudSpec
from function.contract.conditions import Reason
from function.contract.errors import ContractError
from function.contract.labels import checked_labels
from function.contract.record import BlueprintReference, Declaration, XRReference
from function.contract.shape import NameRef, Shape
from function.contract.strategy import CloudProvider
from function.model import parsing
from function.model.call import Lookup
from function.model.facts import Refusal
from function.model.objects import Raw, Shared, mapping, metadata


class _Spec(Shape):
    """The spec of a ProvisionedResource; parameters and labels are checked later."""

    blueprint_ref: NameRef
    cloud_credential_ref: NameRef
    parameters: dict[str, Any] | None = None
    labels: dict[str, Any] | None = None
    retry: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredObjects:
    """The objects that the declaration refers to, as far as they were looked up."""

    blueprint: Lookup
    credential: Lookup
    cloud: Lookup
    preview: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The accepted state of a declaration that is declared again.

    Attributes:
        accepted: The declaration as it was accepted; None while none was.
        exists: Whether its machine is there.
    """

    accepted: Declaration | None = None
    exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Declared:
    """A declaration whose parameters are not resolved yet."""

    declaration: Declaration
    parameters: Mapping[str, Any]
    blueprint: BlueprintVersionSpec


class _RefusedError(Exception):
    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal
        super().__init__(str(refusal.error))


def declared(raw: Raw, objects: DeclaredObjects, standing: Standing) -> Declaration | Refusal:
    """Return what a ProvisionedResource declares, or why it cannot be resolved.

    Args:
        raw: The ProvisionedResource.
        objects: What it refers to.
        standing: What was accepted of it before, which it stays but for what is edited.
    """
    found = (objects.blueprint.raw, objects.credential.raw, objects.cloud.raw)
    shared = [one for one in found if isinstance(one, Shared)]
    try:
        if len(shared) == len(found) and not objects.preview:
            read = parsing.shared(raw, _settled, *shared)
        else:
            read = _read(raw, objects)
        return _completed(read, standing)
    except _RefusedError as refused:
        return refused.refusal
    except ContractError as error:
        return Refusal(error=error)


def _settled(raw: Raw, *found: Raw) -> _Declared:
    """Return what is declared where everything that it refers to is there."""
    blueprint, credential, cloud = (Lookup(looked=True, raw=one) for one in found)
    return _read(
        raw, DeclaredObjects(blueprint=blueprint, credential=credential, cloud=cloud, preview=False)
    )


def _read(raw: Raw, objects: DeclaredObjects) -> _Declared:
    xr = parsing.shared(raw, parsing.xr)
    if xr.project_id is None:
        raise ContractError(
            field="metadata.namespace",
            rule="must be a Project's namespace, plexsphere-project-<uuid>",
        )
    spec = parsing.parsed(_Spec, mapping(raw.get("spec")), "spec")
    labels = checked_labels(spec.labels or {})
    blueprint = _blueprint(objects, spec.blueprint_ref.name)
    identity = {
        "api_version": xr.api_version,
        "kind": xr.kind,
        "name": xr.name,
        "uid": xr.uid,
    }
    declaration = Declaration(
        xr=parsing.parsed(XRReference, identity, "metadata"),
        resource=names.RESOURCE_SUBSTRATE,
        blueprint=BlueprintReference(name=spec.blueprint_ref.name, version=blueprint.version),
        injection_strategy=blueprint.injection_strategy,
        mesh_role=blueprint.mesh_role,
        provider=_provider(objects, blueprint, spec.cloud_credential_ref.name),
        cloud_credential=spec.cloud_credential_ref.name,
        labels=labels,
        retry=spec.retry,
        registration=blueprint.registration,
    )
    return _Declared(declaration=declaration, parameters=spec.parameters or {}, blueprint=blueprint)


def _completed(read: _Declared, standing: Standing) -> Declaration:
    """Resolve the parameters: those of what was accepted stand."""
    given, accepted = tuple(sorted(read.parameters)), standing.accepted
    if accepted is None:
        values = parameters.resolve(read.parameters, read.blueprint)
        return read.declaration.model_copy(update={"parameters": values, "given": given})
    _same_node(read.declaration, accepted)
    values = parameters.edited(
        read.parameters,
        read.blueprint,
        parameters.Accepted(values=accepted.parameters, given=accepted.given),
    )
    changed = parameters.changes(accepted.parameters, values)
    if standing.exists:
        parameters.assert_mutable(changed, read.blueprint)
    # A row of an older version says nothing of what was given, and is not written for that alone.
    untold = accepted.given is None and not changed
    kept = {"blueprint": accepted.blueprint, "registration": accepted.registration}
    resolved = {"parameters": values, "given": None if untold else given}
    return read.declaration.model_copy(update={**kept, **resolved})


def _same_node(declared: Declaration, accepted: Declaration) -> None:
    """Refuse a declaration that is another node under the accepted one's name."""
    rules = {
        "spec.blueprintRef": (
            accepted.blueprint is not None
            and declared.blueprint is not None
            and accepted.blueprint.name == declared.blueprint.name
        )
        and accepted.injection_strategy is declared.injection_strategy
        and accepted.mesh_role is declared.mesh_role,
        "spec.cloudCredentialRef": accepted.cloud_credential == declared.cloud_credential,
    }
    for field, same in rules.items():
        if not same:
            rule = "is immutable; restore the accepted value"
            raise ContractError(field=field, rule=rule, reason=Reason.IMMUTABLE)


def _blueprint(objects: DeclaredObjects, name: str | None) -> BlueprintVersionSpec:
    field = "spec.blueprintRef"
    sought = f"BlueprintVersion {name!r}"
    raw = _found(objects.blueprint, field, Reason.BLUEPRINT_NOT_FOUND, sought)
    blueprint = parsing.shared(raw, _blueprint_spec)
    if blueprint.xr.scope == "Cluster":
        raise ContractError(
            field=field,
            rule="names a cluster-scoped blueprint, which a namespaced XR cannot compose",
            reason=Reason.UNSUPPORTED_BLUEPRINT,
        )
    return blueprint


def _blueprint_spec(raw: Raw) -> BlueprintVersionSpec:
    return parsing.parsed(
        BlueprintVersionSpec,
        mapping(raw.get("spec")),
        "BlueprintVersion.spec",
        Reason.UNSUPPORTED_BLUEPRINT,
    )


def _credential_spec(raw: Raw) -> CloudCredentialSpec:
    return parsing.parsed(CloudCredentialSpec, mapping(raw.get("spec")), "CloudCredential.spec")


def _cloud_spec(raw: Raw) -> CloudSpec:
    return parsing.parsed(CloudSpec, mapping(raw.get("spec")), "Cloud.spec")


def _provider(
    objects: DeclaredObjects, blueprint: BlueprintVersionSpec, name: str
) -> CloudProvider:
    if objects.preview and (objects.credential.raw is None or objects.cloud.raw is None):
        return blueprint.provider_kinds[0]
    field = "spec.cloudCredentialRef"
    sought = f"CloudCredential {name!r}"
    raw = _found(objects.credential, field, Reason.CREDENTIAL_NOT_FOUND, sought)
    credential = parsing.shared(raw, _credential_spec)
    sought = f"Cloud {credential.cloud_ref.name!r}"
    raw = _found(objects.cloud, "CloudCredential.spec.cloudRef", Reason.CLOUD_NOT_FOUND, sought)
    cloud = parsing.shared(raw, _cloud_spec)
    if cloud.provider not in blueprint.provider_kinds:
        raise ContractError(
            field=field,
            rule=f"is of provider {cloud.provider}, which the blueprint does not support",
            reason=Reason.UNSUPPORTED_BLUEPRINT,
        )
    return cloud.provider


def at_hand(objects: DeclaredObjects, accepted: Declaration | None) -> BlueprintVersionSpec | None:
    """Return the blueprint if it is readable and the one that was accepted."""
    known = None if accepted is None or accepted.blueprint is None else accepted.blueprint.name
    if known is not None and metadata(objects.blueprint.raw or {}).get("name") != known:
        return None
    try:
        return _blueprint(objects, known)
    except (_RefusedError, ContractError):
        return None


def _found(lookup: Lookup, field: str, reason: str, sought: str) -> Raw:
    if lookup.raw is not None:
        return lookup.raw
    if lookup.looked:
        error = ContractError(field=field, rule=f"{sought} not found", reason=reason)
        raise _RefusedError(Refusal(error=error, waiting=True))
    error = ContractError(
        field=field, rule=f"waiting for Crossplane to look up {sought}", reason=reason
    )
    raise _RefusedError(Refusal(error=error, pending=True))
