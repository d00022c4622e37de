"""The rules by which a declaration is accepted.

The judgement over resolved views, first fault first, in a fixed order. The function applies
the same parameter rules for early answers; this one decides. Source: issue "Bad input";
contracts §6 items 1, 2, 5, 7, 38; seed 000 "Error sentinels".
"""

from __future__ import annotations

from function.contract.catalog.published import BlueprintVersionSpec, CloudCredentialSpec, CloudSpec
from function.contract.conditions import Reason
from function.contract.errors import ContractError
from function.contract.labels import checked_labels
from function.contract.record import Declaration
from reconciler.domain.admission import parameter_rules
from reconciler.domain.aggregate.errors import (
    BlueprintNotFoundError,
    CloudNotFoundError,
    CredentialNotFoundError,
    ParameterValuesInvalidError,
    RefusedError,
)


def judge(
    declaration: Declaration,
    *,
    project: str,
    blueprint: BlueprintVersionSpec | None,
    credential: CloudCredentialSpec | None,
    cloud: CloudSpec | None,
    before: parameter_rules.Before | None = None,
) -> tuple[BlueprintVersionSpec, CloudCredentialSpec, CloudSpec]:
    """Accept a declaration of a blueprint, or say what is wrong with it.

    Args:
        declaration: What the function resolved.
        project: Name of the Project it lies in.
        blueprint: The version it names, or None when it is absent.
        credential: The credential it names, or None.
        cloud: That credential's cloud, or None.
        before: What was accepted before, whose parameters stand; None: nothing was.

    Returns:
        The three views, present.

    Raises:
        BrokerError: The first rule it breaks, naming field and rule.
    """
    if declaration.blueprint is None or declaration.cloud_credential is None:
        message = "spec.declaration: must name a blueprint and a cloud credential"
        raise RefusedError(message, reason=Reason.UNSUPPORTED_BLUEPRINT)
    if blueprint is None:
        name = declaration.blueprint.name
        message = f"spec.blueprintRef.name: BlueprintVersion {name!r} not found"
        raise BlueprintNotFoundError(message)
    named = "spec.cloudCredentialRef.name"
    own = declaration.cloud_credential
    credential, cloud = _usable(f"{named}: CloudCredential {own!r}", credential, cloud, project)
    _consistent(declaration, blueprint, cloud)
    parameter_rules.judge(declaration, blueprint, before)
    return blueprint, credential, cloud


def judge_enrolled(
    declaration: Declaration,
    *,
    project: str,
    credential: CloudCredentialSpec | None,
    cloud: CloudSpec | None,
) -> None:
    """Accept a declaration of somebody else's resource (`Enrol`), or say what is wrong.

    Its author has a ProviderConfig of his own, so that a credential is optional.

    Args:
        declaration: What the function resolved.
        project: Name of the Project it lies in.
        credential: The credential it names, or None.
        cloud: That credential's cloud, or None.

    Raises:
        BrokerError: The first rule it breaks, naming field and rule.
    """
    if declaration.parameters:
        message = "spec.declaration.parameters: must be empty without a blueprint"
        raise ParameterValuesInvalidError(message)
    try:
        checked_labels(declaration.labels)
    except ContractError as error:
        raise ParameterValuesInvalidError(str(error)) from error
    if declaration.cloud_credential is None:
        return
    named = "input.resources.cloudCredential"
    own = declaration.cloud_credential
    _, cloud = _usable(f"{named}: CloudCredential {own!r}", credential, cloud, project)
    if cloud.provider is not declaration.provider:
        message = (
            f"input.resources.provider: must be {cloud.provider}, as in the credential's Cloud"
        )
        raise RefusedError(message, reason=Reason.INVALID_INPUT)


def _usable(
    named: str, credential: CloudCredentialSpec | None, cloud: CloudSpec | None, project: str
) -> tuple[CloudCredentialSpec, CloudSpec]:
    if credential is None:
        message = f"{named} not found"
        raise CredentialNotFoundError(message)
    if project not in credential.projects:
        message = f"{named} does not list Project {project!r} in its spec.projects"
        raise RefusedError(message, reason=Reason.CREDENTIAL_NOT_ALLOWED)
    if cloud is None:
        message = f"{named}: spec.cloudRef: Cloud {credential.cloud_ref.name!r} not found"
        raise CloudNotFoundError(message)
    return credential, cloud


def immutable(accepted: Declaration, declared: Declaration) -> None:
    """Hold an edited declaration to what makes it the same node.

    Raises:
        RefusedError: It names another blueprint, provider, credential, strategy or role.
    """
    old = accepted.blueprint.name if accepted.blueprint else None
    new = declared.blueprint.name if declared.blueprint else None
    ours = accepted.blueprint is not None
    credential = "spec.cloudCredentialRef" if ours else "input.resources.cloudCredential"
    provider = f"{credential}: its Cloud's provider" if ours else "input.resources.provider:"
    rules = {
        "spec.blueprintRef:": old == new,
        provider: accepted.provider is declared.provider,
        f"{credential}:": accepted.cloud_credential == declared.cloud_credential,
        "spec.declaration.injectionStrategy:": (
            accepted.injection_strategy is declared.injection_strategy
        ),
        "spec.declaration.meshRole:": accepted.mesh_role is declared.mesh_role,
    }
    for subject, same in rules.items():
        if not same:
            message = f"{subject} is immutable; restore the accepted value"
            raise RefusedError(message, reason=Reason.IMMUTABLE)


def _consistent(
    declaration: Declaration, blueprint: BlueprintVersionSpec, cloud: CloudSpec
) -> None:
    if blueprint.xr.scope != "Namespaced":
        message = (
            "spec.blueprintRef.name: its XR is cluster-scoped; a namespaced XR cannot compose it"
        )
        raise RefusedError(message, reason=Reason.UNSUPPORTED_BLUEPRINT)
    if cloud.provider not in blueprint.provider_kinds:
        message = f"spec.cloudCredentialRef.name: the blueprint does not support {cloud.provider}"
        raise RefusedError(message, reason=Reason.UNSUPPORTED_BLUEPRINT)
    facts = (
        ("provider", declaration.provider, cloud.provider),
        ("injectionStrategy", declaration.injection_strategy, blueprint.injection_strategy),
        ("meshRole", declaration.mesh_role, blueprint.mesh_role),
    )
    for field, declared, published in facts:
        if declared is not published:
            message = (
                f"spec.declaration.{field}: differs from the published BlueprintVersion or Cloud"
            )
            raise RefusedError(message, reason=Reason.INVALID_INPUT)
