"""The input `Declare`: a ProvisionedResource becomes a declaration.

Belongs here: the input's model, what it needs to see, the answer. Not here: how it is resolved
(`compose.resolution`), what is composed of it (`function.compose`). Pure. Source: design §3.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field

from function.compose import identity, joint, known, pipeline, reading, resolution, sight
from function.compose.call import Answer, Node, Outcome, Request, Requirement
from function.compose.facts import Facts, Token
from function.compose.inputs import API_VERSION_SAYS, KIND_SAYS, InputEnrolment, Strict
from function.compose.raw import Raw, mapping, terminating
from function.compose.resolution import Objects, Standing
from function.contract import names
from function.contract.record import Enrolment

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


def answer(request: Request) -> Answer:
    """Answer one call with the input `Declare`.

    Raises:
        ContractError: The step's input is unreadable.
    """
    token = _token(request)
    digest = known.digest_declared(request, token)
    found = None
    if request.memory is not None and digest is not None:
        found = request.memory.known(digest, None if token is None else token.plaintext)
    node = found or _node(request, token)
    learns = digest is not None and found is None and node.carried is not None
    return joint.single(request.xr, node, {digest.key: node} if digest and learns else {})


def declare(request: Request) -> Outcome:
    """Compose what a ProvisionedResource declares.

    Raises:
        ContractError: The step's input is unreadable.
    """
    return _node(request, _token(request)).outcome


def _token(request: Request) -> Token | None:
    return reading.token(request.required.get(pipeline.REQUIRE_TOKEN))


def _node(request: Request, token: Token | None) -> Node:
    objects = Objects(
        blueprint=request.lookup(_BLUEPRINT),
        credential=request.lookup(_CREDENTIAL),
        cloud=request.lookup(_CLOUD),
        preview=request.preview and not _begun(request),
    )
    facts = _facts(request, objects, token)
    outcome = pipeline.compose(facts, _requirements(request.xr, objects))
    composed = {
        names.RESOURCE_RECORD: outcome.record,
        names.RESOURCE_SUBSTRATE: outcome.substrate,
    }
    carried = known.places_declared(facts, outcome)
    injected = token is not None and sight.in_sight(facts) is None
    return Node(
        outcome=outcome,
        resources={name: one for name, one in composed.items() if one is not None},
        holds=False,
        carried=None if carried is None else {names.RESOURCE_SUBSTRATE: carried},
        token=token.plaintext if token is not None and injected else None,
    )


def _begun(request: Request) -> bool:
    """Whether there is anything of it yet."""
    found = request.required.get(pipeline.REQUIRE_RECORD)
    return (
        found is not None
        or names.RESOURCE_RECORD in request.resources
        or names.RESOURCE_SUBSTRATE in request.resources
    )


def _facts(request: Request, objects: Objects, token: Token | None) -> Facts:
    enrolment = reading.shared(request.step, _enrolment)
    xr, resource = reading.shared(request.xr, reading.xr), names.RESOURCE_RECORD
    observed, listed = request.resources.get(resource), request.lookup(pipeline.REQUIRE_RECORD)
    record = reading.record(observed, listed)
    accepted = None if record is None else record.status.accepted
    substrate = request.resources.get(names.RESOURCE_SUBSTRATE)
    sought = request.lookup(pipeline.REQUIRE_SUBSTRATE)
    found = sought.raw is not None and not terminating(sought.raw)
    standing = Standing(accepted=accepted, exists=substrate is not None or found)
    facts = Facts(
        xr=xr,
        resource=names.RESOURCE_SUBSTRATE,
        declared=resolution.declared(request.xr, objects, standing),
        blueprint=resolution.at_hand(objects, accepted),
        record=record,
        substrate=substrate,
        sought=sought,
        token=token,
        enrolment=enrolment,
        preview=objects.preview,
    )
    identity.judge_record(xr, observed, listed, resource=resource, key=facts.record_key)
    identity.judge_substrate(facts)
    identity.judge_adopted(facts)
    return facts


def _enrolment(step: Raw) -> Enrolment:
    knobs = reading.parsed(DeclareInput, step, "input").enrolment
    return Enrolment(**knobs.model_dump(exclude_none=True))


def _requirements(xr: Raw, objects: Objects) -> dict[str, Requirement]:
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
