"""The input `Declare`: a ProvisionedResource becomes a declaration.

The input's model, what it needs to see, the answer. Pure. Source: design §3.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field

from function.compose import pipeline, substrate_identity
from function.compose.status import merged_conditions
from function.contract import names
from function.contract.record import Enrolment
from function.inputs import declaration, settled
from function.inputs.declaration import DeclaredObjects, Standing
from function.inputs.schema import API_VERSION_SAYS, KIND_SAYS, InputEnrolment, StrictInput
from function.model import parsing
from function.model.call import Answer, ComposedNode, Outcome, Request, Requirement
from function.model.facts import Facts
from function.model.objects import Raw, mapping, terminating

KIND: Final = "Declare"

_BLUEPRINT: Final = "blueprint"
_CREDENTIAL: Final = "credential"
_CLOUD: Final = "cloud"


class DeclareInput(StrictInput):
    """The step's input."""

    api_version: Literal["broker.fn.plexsphere.com/v1alpha1"] = Field(description=API_VERSION_SAYS)
    kind: Literal["Declare"] = Field(description=KIND_SAYS)
    metadata: dict[str, Any] = Field(default_factory=dict)
    enrolment: InputEnrolment = InputEnrolment()


def answer(request: Request) -> Answer:
    """Answer one call with the input `Declare`.

    Raises:
        ContractError: The step's input is unreadable.
    """
    node = settled.composed(request, settled.declared_slice(request), lambda: _node(request))
    if node is None:
        message = "a ProvisionedResource always has an outcome"
        raise AssertionError(message)
    return merged_conditions.single(request.told, node)


def declare(request: Request) -> Outcome:
    """Compose what a ProvisionedResource declares.

    Raises:
        ContractError: The step's input is unreadable.
    """
    return _node(request).outcome


def _node(request: Request) -> ComposedNode:
    objects = DeclaredObjects(
        blueprint=request.lookup(_BLUEPRINT),
        credential=request.lookup(_CREDENTIAL),
        cloud=request.lookup(_CLOUD),
        preview=request.preview and not _begun(request),
    )
    facts = _facts(request, objects)
    outcome = pipeline.compose(facts, _requirements(request.xr, objects))
    composed = {
        names.RESOURCE_RECORD: outcome.record,
        names.RESOURCE_SUBSTRATE: outcome.substrate,
    }
    return ComposedNode(
        outcome=outcome,
        resources={name: one for name, one in composed.items() if one is not None},
        holds=False,
        settled=settled.is_settled(facts, outcome),
    )


def _begun(request: Request) -> bool:
    """Whether there is anything of it yet."""
    found = request.required.get(pipeline.REQUIRE_RECORD)
    return (
        found is not None
        or names.RESOURCE_RECORD in request.resources
        or names.RESOURCE_SUBSTRATE in request.resources
    )


def _facts(request: Request, objects: DeclaredObjects) -> Facts:
    enrolment = parsing.shared(request.step, _enrolment)
    xr, resource = parsing.shared(request.xr, parsing.xr), names.RESOURCE_RECORD
    observed, listed = request.resources.get(resource), request.lookup(pipeline.REQUIRE_RECORD)
    record = parsing.record(observed, listed)
    accepted = None if record is None else record.status.accepted
    substrate = request.resources.get(names.RESOURCE_SUBSTRATE)
    sought = request.lookup(pipeline.REQUIRE_SUBSTRATE)
    found = sought.raw is not None and not terminating(sought.raw)
    standing = Standing(accepted=accepted, exists=substrate is not None or found)
    facts = Facts(
        xr=xr,
        resource=names.RESOURCE_SUBSTRATE,
        declared=declaration.declared(request.xr, objects, standing),
        blueprint=declaration.at_hand(objects, accepted),
        record=record,
        substrate=substrate,
        sought=sought,
        token=parsing.token(request.required.get(pipeline.REQUIRE_TOKEN)),
        enrolment=enrolment,
        preview=objects.preview,
    )
    substrate_identity.judge_record(xr, observed, listed, resource=resource, key=facts.record_key)
    substrate_identity.judge_substrate(facts)
    substrate_identity.judge_adopted(facts)
    return facts


def _enrolment(step: Raw) -> Enrolment:
    knobs = parsing.parsed(DeclareInput, step, "input").enrolment
    return Enrolment(**knobs.model_dump(exclude_none=True))


def _requirements(xr: Raw, objects: DeclaredObjects) -> dict[str, Requirement]:
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
        name = parsing.name_of(reference)
        if name is not None:
            found[requirement] = Requirement(api_version=names.API_VERSION, kind=kind, name=name)
    return found
