"""The substrate object: born, rendered anew, or kept as it is.

Belongs here: which one is in sight and what its manifest says. Not here: which of the
three it is (`stage`). Only paths that this function owns are ever returned: a name, our
labels and annotations, parameters, bootstrap fields, tags, and where the blueprint takes
it the ProviderConfig's name. Source: design §3; seed 003, "The force-apply preservation
rule".
"""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any, Final

from function.compose import reading
from function.compose.facts import Facts, Raw, generation, mapping, metadata, terminating
from function.compose.stage import SubstrateSight
from function.contract import names
from function.contract.catalog import BlueprintVersionSpec
from function.contract.conditions import Reason
from function.contract.errors import ContractError
from function.contract.record import Declaration, Enrolment, SubstrateReference
from function.contract.strategy import MeshRole, SubstrateState
from function.render import cloudinit, inject, tags

_OWNED: Final = ("parameters", "userData", "cloudTags")
"""The keys of its spec that are ours."""

_FIELD_PATH: Final = re.compile(r"spec(\.[A-Za-z][A-Za-z0-9_-]*)+")


def sight(facts: Facts) -> SubstrateSight:
    """Say how the substrate is seen; a terminating record adopts nothing."""
    if facts.substrate is not None:
        return SubstrateSight.OBSERVED
    if not facts.sought.looked or facts.record is None or facts.record.terminating:
        return SubstrateSight.UNKNOWN
    if facts.sought.raw is None:
        return SubstrateSight.MISSING
    if terminating(facts.sought.raw):
        return SubstrateSight.VANISHING
    return SubstrateSight.FOUND


def in_sight(facts: Facts) -> Raw | None:
    """Return the substrate that can be kept: observed, or found and not going."""
    match sight(facts):
        case SubstrateSight.OBSERVED:
            return facts.substrate
        case SubstrateSight.FOUND:
            return facts.sought.raw
        case _:
            return None


def adoptable(facts: Facts) -> bool:
    """Whether a substrate may exist that this XR does not compose (yet, or any more)."""
    status = facts.status
    return (
        facts.record is not None
        and not facts.record.terminating
        and facts.substrate is None
        and status.substrate is SubstrateState.PRESENT
        and status.accepted is not None
        and status.xr_name is not None
    )


def reference(facts: Facts) -> SubstrateReference | None:
    """Return what the substrate is or will be; None while that is not known.

    The object itself says it best, then the record, then the blueprint: a kind never
    changes under a name.
    """
    live = in_sight(facts)
    if live is not None:
        return _reference(live, str(metadata(live).get("name", "")))
    name = facts.status.xr_name
    if facts.record is not None:
        spec = mapping(facts.record.raw.get("spec"))
        entries = spec.get("substrate")
        for entry in entries if isinstance(entries, list) else ():
            written = reading.readable(SubstrateReference, entry)
            if written is not None and name in {None, written.name}:
                return written
    if name is None or facts.blueprint is None:
        return None
    xr = facts.blueprint.xr
    return SubstrateReference(api_version=xr.api_version, kind=xr.kind, name=name)


def stamped_generation(facts: Facts) -> int | None:
    """Return the bootstrap generation on the substrate in sight.

    Somebody may have taken the annotation off: then the record remembers it.
    """
    live = in_sight(facts)
    if live is None:
        return None
    stamp = generation(live)
    if stamp is not None or facts.record is None:
        return stamp
    spec = mapping(facts.record.raw.get("spec"))
    remembered = mapping(spec.get("observed")).get("bootstrapGeneration")
    return remembered if isinstance(remembered, int) else None


def kept(facts: Facts, live: Raw) -> dict[str, Any]:
    """Return the substrate in sight as it is, as far as it is ours."""
    observed = mapping(live.get("spec"))
    spec = {key: deepcopy(observed[key]) for key in _OWNED if key in observed}
    manifest = _manifest(facts, _known(facts), stamped_generation(facts), spec)
    annotations = mapping(metadata(live).get("annotations"))
    path = annotations.get(names.ANNOTATION_PROVIDER_CONFIG)
    if isinstance(path, str) and _FIELD_PATH.fullmatch(path):
        value = inject.read(live, tuple(path.split(".")))
        if isinstance(value, str):
            _set_provider_config(manifest, path, value)
    return manifest


def rendered(facts: Facts, live: Raw) -> dict[str, Any]:
    """Return the substrate in sight with its declared half rendered anew.

    Without the blueprint or the accepted declaration it stays as it is.
    """
    accepted = facts.status.accepted
    if accepted is None or facts.blueprint is None:
        return kept(facts, live)
    spec = _declared(accepted)
    manifest = _manifest(facts, _known(facts), stamped_generation(facts), spec)
    for path, value in inject.observed(live).items():
        inject.write(manifest, path, value)
    target = _provider_config_path(facts.blueprint)
    if target is not None:
        current = inject.read(live, tuple(target.split(".")))
        declared = facts.status.provider_config_ref
        name = declared.name if declared is not None else current
        if isinstance(name, str):
            _set_provider_config(manifest, target, name)
    return manifest


def born(facts: Facts, accepted: Declaration, enrolment: Enrolment) -> dict[str, Any]:
    """Return a new substrate with its bootstrap.

    Raises:
        ContractError: A value the bootstrap needs is missing or wrong, the document is too
            large for the cloud, or the ProviderConfig is not known yet.
    """
    if facts.blueprint is None:
        raise ContractError(
            field="spec.blueprintRef", rule="is not there", reason=Reason.BLUEPRINT_NOT_FOUND
        )
    fields: dict[inject.Path, str] = {}
    stamp: int | None = None
    if accepted.mesh_role is MeshRole.NODE:
        material = _material(facts, accepted, enrolment)
        fields = inject.fields(accepted.injection_strategy, material)
        stamp = facts.token.generation if facts.token is not None else None
    manifest = _manifest(facts, _known(facts), stamp, _declared(accepted))
    for path, value in fields.items():
        inject.write(manifest, path, value)
    target = _provider_config_path(facts.blueprint)
    if target is not None:
        config = facts.status.provider_config_ref
        if config is None:
            raise ContractError(
                field="status.providerConfigRef",
                rule="is not known yet, and the blueprint needs it",
                reason=Reason.WAITING_FOR_RECONCILER,
            )
        _set_provider_config(manifest, target, config.name)
    return manifest


def _material(facts: Facts, accepted: Declaration, enrolment: Enrolment) -> inject.Material:
    if facts.token is None or facts.xr.project_id is None:
        raise ContractError(
            field="status.bootstrap.secretRef",
            rule="names no Secret that is there",
            reason=Reason.WAITING_FOR_TOKEN,
        )
    return inject.Material(
        enrolment=cloudinit.Enrolment(
            base_url=enrolment.base_url,
            plexd_download_url=enrolment.plexd_download_url,
            plexd_sha256=enrolment.plexd_sha256,
            ca_bundle=enrolment.ca_bundle,
            project_id=str(facts.xr.project_id),
            handle=_known(facts).name,
            token=facts.token.plaintext,
            form=enrolment.document_form,
        ),
        plexd_image=enrolment.plexd_image,
        provider=accepted.provider,
    )


def _declared(accepted: Declaration) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    if accepted.parameters:
        spec["parameters"] = dict(accepted.parameters)
    if accepted.labels:
        spec["cloudTags"] = tags.cloud_tags(accepted.provider, accepted.labels)
    return spec


def _manifest(
    facts: Facts, what: SubstrateReference, stamp: int | None, spec: dict[str, Any]
) -> dict[str, Any]:
    head: dict[str, Any] = {
        "name": what.name,
        "namespace": facts.xr.namespace,
        "labels": {names.LABEL_HOLD: "true", names.LABEL_RECORD: facts.record_name},
    }
    if stamp is not None:
        head["annotations"] = {names.ANNOTATION_GENERATION: str(stamp)}
    return {"apiVersion": what.api_version, "kind": what.kind, "metadata": head, "spec": spec}


def _known(facts: Facts) -> SubstrateReference:
    known = reference(facts)
    if known is None:
        message = "a substrate is composed only under a known name"
        raise AssertionError(message)
    return known


def _reference(raw: Raw, name: str) -> SubstrateReference:
    what = {"apiVersion": raw.get("apiVersion"), "kind": raw.get("kind"), "name": name}
    return reading.parsed(SubstrateReference, what, "substrate")


def _provider_config_path(blueprint: BlueprintVersionSpec) -> str | None:
    target = blueprint.provider_config
    if target is None or target.field_path is None:
        return None
    path = target.field_path
    head = tuple(path.split("."))[:2]
    reserved = {("spec", key) for key in (*_OWNED, "crossplane")}
    if not _FIELD_PATH.fullmatch(path) or head in reserved:
        raise ContractError(
            field="BlueprintVersion.spec.providerConfig.fieldPath",
            rule="must be a path below spec that is not ours",
            reason=Reason.UNSUPPORTED_BLUEPRINT,
        )
    return path


def _set_provider_config(manifest: dict[str, Any], path: str, name: str) -> None:
    inject.write(manifest, tuple(path.split(".")), name)
    inject.write(manifest, ("metadata", "annotations", names.ANNOTATION_PROVIDER_CONFIG), path)
