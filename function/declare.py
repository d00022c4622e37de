"""The input `Declare`: a ProvisionedResource becomes a declaration.

Belongs here: the input's model, resolving blueprint, credential, cloud, parameters and
labels, and the refusals. Not here: what is composed of it (`function.compose`). Pure.
Whether the Project may use the credential is the reconciler's answer: the function does
not know Projects. Source: design §3; issue "Bad input".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from function.compose import joint, pipeline, reading
from function.compose.call import Answer, Lookup, Outcome, Request, Requirement
from function.compose.facts import Facts, Refusal
from function.compose.inputs import API_VERSION_SAYS, KIND_SAYS, InputEnrolment, Strict
from function.compose.raw import Raw, Shared, mapping, metadata
from function.contract import names, parameters
from function.contract.catalog import BlueprintVersionSpec, CloudCredentialSpec, CloudSpec
from function.contract.conditions import Reason
from function.contract.errors import ContractError
from function.contract.record import (
    BlueprintReference,
    Declaration,
    Enrolment,
    XRReference,
)
from function.contract.shape import NameRef, Shape
from function.contract.strategy import CloudProvider

KIND: Final = "Declare"

_BLUEPRINT: Final = "blueprint"
_CREDENTIAL: Final = "credential"
_CLOUD: Final = "cloud"


class DeclareInput(Strict):
    """The step's input."""

    api_version: Literal["broker.fn.plexsphere.com/v1alpha1"] = Field(description=API_VERSION_SAYS)
    kind: Literal["Declare"] = Field(description=KIND_SAYS)
    metadata: dict[str, Any] = Field(default_factory=dict)
    enrolment: InputEnrolment = InputEnrolment()


class _Spec(Shape):
    """What a ProvisionedResource's author writes; parameters and labels are checked later."""

    blueprint_ref: NameRef
    cloud_credential_ref: NameRef
    parameters: dict[str, Any] | None = None
    labels: dict[str, Any] | None = None
    retry: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Objects:
    """What the declaration refers to, as far as it was looked up."""

    blueprint: Lookup
    credential: Lookup
    cloud: Lookup
    preview: bool


class _RefusedError(Exception):
    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal
        super().__init__(str(refusal.error))


def answer(request: Request) -> Answer:
    """Answer one call with the input `Declare`.

    Raises:
        ContractError: The step's input is unreadable.
    """
    outcome = declare(request)
    return joint.single(request.xr, outcome, names.RESOURCE_RECORD, names.RESOURCE_SUBSTRATE)


def declare(request: Request) -> Outcome:
    """Compose what a ProvisionedResource declares.

    Raises:
        ContractError: The step's input is unreadable.
    """
    enrolment = reading.shared(request.step, _enrolment)
    record = reading.record(
        request.resources.get(names.RESOURCE_RECORD), request.lookup(pipeline.REQUIRE_RECORD)
    )
    substrate = request.resources.get(names.RESOURCE_SUBSTRATE)
    objects = _Objects(
        blueprint=request.lookup(_BLUEPRINT),
        credential=request.lookup(_CREDENTIAL),
        cloud=request.lookup(_CLOUD),
        preview=request.preview and record is None and substrate is None,
    )
    xr = reading.shared(request.xr, reading.xr)
    declared = _declared(request.xr, objects)
    accepted = None if record is None else record.status.accepted
    if isinstance(declared, Declaration):
        declared = _unchanged(declared, accepted)
    facts = Facts(
        xr=xr,
        resource=names.RESOURCE_SUBSTRATE,
        declared=declared,
        blueprint=_at_hand(objects, accepted),
        record=record,
        substrate=substrate,
        sought=request.lookup(pipeline.REQUIRE_SUBSTRATE),
        token=reading.token(request.required.get(pipeline.REQUIRE_TOKEN)),
        enrolment=enrolment,
        preview=objects.preview,
    )
    return pipeline.compose(facts, _requirements(request.xr, objects))


def _enrolment(step: Raw) -> Enrolment:
    knobs = reading.parsed(DeclareInput, step, "input").enrolment
    return Enrolment(**knobs.model_dump(exclude_none=True))


def _requirements(xr: Raw, objects: _Objects) -> dict[str, Requirement]:
    """Return the whole accumulated set: the cloud is known once the credential is."""
    spec = mapping(xr.get("spec"))
    wanted = {
        _BLUEPRINT: ("BlueprintVersion", spec.get("blueprintRef")),
        _CREDENTIAL: ("CloudCredential", spec.get("cloudCredentialRef")),
    }
    if objects.credential.raw is not None:
        credential = mapping(objects.credential.raw.get("spec"))
        wanted[_CLOUD] = ("Cloud", credential.get("cloudRef"))
    found: dict[str, Requirement] = {}
    for requirement, (kind, reference) in wanted.items():
        name = reading.name_of(reference)
        if name is not None:
            found[requirement] = Requirement(api_version=names.API_VERSION, kind=kind, name=name)
    return found


def _declared(raw: Raw, objects: _Objects) -> Declaration | Refusal:
    found = (objects.blueprint.raw, objects.credential.raw, objects.cloud.raw)
    shared = [one for one in found if isinstance(one, Shared)]
    try:
        if len(shared) == len(found) and not objects.preview:
            return reading.shared(raw, _settled, *shared)
        return _resolved(raw, objects)
    except _RefusedError as refused:
        return refused.refusal
    except ContractError as error:
        return Refusal(error=error)


def _settled(raw: Raw, *found: Raw) -> Declaration:
    """Return what is declared where everything that it refers to is there."""
    blueprint, credential, cloud = (Lookup(looked=True, raw=one) for one in found)
    return _resolved(
        raw, _Objects(blueprint=blueprint, credential=credential, cloud=cloud, preview=False)
    )


def _resolved(raw: Raw, objects: _Objects) -> Declaration:
    xr = reading.shared(raw, reading.xr)
    if xr.project_id is None:
        raise ContractError(
            field="metadata.namespace", rule="must be a Project's, plexsphere-project-<uuid>"
        )
    spec = reading.parsed(_Spec, mapping(raw.get("spec")), "spec")
    labels = parameters.labels(spec.labels or {})
    blueprint = _blueprint(objects)
    resolved = parameters.resolve(spec.parameters or {}, blueprint.parameters)
    identity = {
        "api_version": xr.api_version,
        "kind": xr.kind,
        "name": xr.name,
        "uid": xr.uid,
    }
    return Declaration(
        xr=reading.parsed(XRReference, identity, "metadata"),
        resource=names.RESOURCE_SUBSTRATE,
        blueprint=BlueprintReference(name=spec.blueprint_ref.name, version=blueprint.version),
        injection_strategy=blueprint.injection_strategy,
        mesh_role=blueprint.mesh_role,
        provider=_provider(objects, blueprint),
        cloud_credential=spec.cloud_credential_ref.name,
        parameters=resolved,
        labels=labels,
        retry=spec.retry,
    )


def _blueprint(objects: _Objects) -> BlueprintVersionSpec:
    field = "spec.blueprintRef"
    raw = _found(objects.blueprint, field, Reason.BLUEPRINT_NOT_FOUND, "BlueprintVersion")
    blueprint = reading.shared(raw, _blueprint_spec)
    if blueprint.xr.scope == "Cluster":
        raise ContractError(
            field=field,
            rule="names a blueprint of cluster scope, which a namespaced XR cannot compose",
            reason=Reason.UNSUPPORTED_BLUEPRINT,
        )
    return blueprint


def _blueprint_spec(raw: Raw) -> BlueprintVersionSpec:
    return reading.parsed(
        BlueprintVersionSpec,
        mapping(raw.get("spec")),
        "BlueprintVersion.spec",
        Reason.UNSUPPORTED_BLUEPRINT,
    )


def _credential_spec(raw: Raw) -> CloudCredentialSpec:
    return reading.parsed(CloudCredentialSpec, mapping(raw.get("spec")), "CloudCredential.spec")


def _cloud_spec(raw: Raw) -> CloudSpec:
    return reading.parsed(CloudSpec, mapping(raw.get("spec")), "Cloud.spec")


def _provider(objects: _Objects, blueprint: BlueprintVersionSpec) -> CloudProvider:
    if objects.preview and (objects.credential.raw is None or objects.cloud.raw is None):
        return blueprint.provider_kinds[0]
    field = "spec.cloudCredentialRef"
    raw = _found(objects.credential, field, Reason.CREDENTIAL_NOT_FOUND, "CloudCredential")
    reading.shared(raw, _credential_spec)
    raw = _found(objects.cloud, "CloudCredential.spec.cloudRef", Reason.CLOUD_NOT_FOUND, "Cloud")
    cloud = reading.shared(raw, _cloud_spec)
    if cloud.provider not in blueprint.provider_kinds:
        raise ContractError(
            field=field,
            rule=f"leads to provider {cloud.provider}, which this blueprint does not support",
            reason=Reason.UNSUPPORTED_BLUEPRINT,
        )
    return cloud.provider


def _unchanged(declared: Declaration, accepted: Declaration | None) -> Declaration | Refusal:
    """Refuse a declaration that is another node under the accepted one's name."""
    if accepted is None:
        return declared
    rules = {
        "spec.blueprintRef": (
            accepted.blueprint is None
            or declared.blueprint is None
            or accepted.blueprint.name == declared.blueprint.name
        )
        and accepted.injection_strategy is declared.injection_strategy
        and accepted.mesh_role is declared.mesh_role,
        "spec.cloudCredentialRef": accepted.cloud_credential == declared.cloud_credential,
    }
    for field, same in rules.items():
        if not same:
            rule = "must stay what was accepted"
            return Refusal(error=ContractError(field=field, rule=rule, reason=Reason.IMMUTABLE))
    return declared


def _at_hand(objects: _Objects, accepted: Declaration | None) -> BlueprintVersionSpec | None:
    """Return the blueprint if it is readable and the one that was accepted."""
    if accepted is not None and accepted.blueprint is not None:
        name = metadata(objects.blueprint.raw or {}).get("name")
        if name != accepted.blueprint.name:
            return None
    try:
        return _blueprint(objects)
    except (_RefusedError, ContractError):
        return None


def _found(lookup: Lookup, field: str, reason: str, kind: str) -> Raw:
    if lookup.raw is not None:
        return lookup.raw
    if lookup.looked:
        error = ContractError(field=field, rule=f"names no {kind} that is there", reason=reason)
        raise _RefusedError(Refusal(error=error, waiting=True))
    error = ContractError(field=field, rule=f"the {kind} is being looked up", reason=reason)
    raise _RefusedError(Refusal(error=error, pending=True))
