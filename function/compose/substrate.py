"""The substrate object of `Declare`: born, rendered again, or kept as it is.

What its manifest says. Only paths that this function owns are ever returned: a name, our
labels and annotations, parameters, bootstrap fields, tags, and where the blueprint takes it
the ProviderConfig's name. Source: design §3; seed 003, "The force-apply preservation rule".
"""

from __future__ import annotations

import re
from typing import Any, Final

from function.compose import bootstrap_material, last_applied, substrate_lookup
from function.contract import names
from function.contract.catalog.published import BlueprintVersionSpec
from function.contract.conditions import Reason
from function.contract.errors import ContractError
from function.contract.record import Declaration, Enrolment, SubstrateReference
from function.contract.strategy import MeshRole
from function.model.facts import Facts
from function.model.objects import Raw, mapping, metadata
from function.render.fields import inject
from function.render.tags import encoding

_OWNED: Final = ("parameters", "userData", "cloudTags")
"""The keys of its spec that are ours."""

_FIELD_PATH: Final = re.compile(r"spec(\.[A-Za-z][A-Za-z0-9_-]*)+")


def last_composed(_: Facts, live: Raw) -> dict[str, Any]:
    """Return the substrate in sight as it is, where it does not even say what it is."""
    return last_applied.last_applied(live)


def keep(facts: Facts, live: Raw) -> dict[str, Any]:
    """Return the substrate in sight as it is, as far as it is ours.

    Raises:
        ContractError: Nobody knows what it is.
    """
    observed = mapping(live.get("spec"))
    spec = {key: observed[key] for key in _OWNED if key in observed}
    manifest = _manifest(
        facts,
        substrate_lookup.known_reference(facts),
        substrate_lookup.stamped_generation(facts),
        spec,
    )
    path = _annotated_path(live)
    if path is not None:
        _copy_provider_config(manifest, path, live)
    return manifest


def update(facts: Facts, live: Raw) -> dict[str, Any]:
    """Return the substrate in sight with its declared half rendered again.

    Without the blueprint or the accepted declaration it stays as it is.
    """
    accepted = facts.status.accepted
    if accepted is None or facts.blueprint is None:
        return keep(facts, live)
    spec = _declared(accepted)
    manifest = _manifest(
        facts,
        substrate_lookup.known_reference(facts),
        substrate_lookup.stamped_generation(facts),
        spec,
    )
    for place, value in inject.observed(live).items():
        inject.write(manifest, place, value)
    told, path = _annotated_path(live), _provider_config_path(facts.blueprint)
    if told is not None and told != path:
        # Born of another blueprint of that name: it stays what it is.
        _copy_provider_config(manifest, told, live)
    elif path is not None and facts.status.provider_config_ref is not None:
        _set_provider_config(manifest, path, facts.status.provider_config_ref.name)
    elif path is not None:
        _copy_provider_config(manifest, path, live)
    return manifest


def create(facts: Facts, accepted: Declaration, enrolment: Enrolment) -> dict[str, Any]:
    """Return a new substrate with its bootstrap.

    Raises:
        ContractError: A value the bootstrap needs is missing or wrong, the document is too
            large for the cloud, or the ProviderConfig is not known yet.
    """
    if facts.blueprint is None:
        name = None if accepted.blueprint is None else accepted.blueprint.name
        raise ContractError(
            field="spec.blueprintRef",
            rule=f"BlueprintVersion {name!r} not found",
            reason=Reason.BLUEPRINT_NOT_FOUND,
        )
    fields: dict[inject.Path, str] = {}
    stamp: int | None = None
    if accepted.mesh_role is MeshRole.NODE:
        material = bootstrap_material.material(facts, accepted, enrolment)
        fields = inject.fields(accepted.injection_strategy, material)
        stamp = facts.token.generation if facts.token is not None else None
    manifest = _manifest(facts, substrate_lookup.known_reference(facts), stamp, _declared(accepted))
    for path, value in fields.items():
        inject.write(manifest, path, value)
    target = _provider_config_path(facts.blueprint)
    if target is not None:
        config = facts.status.provider_config_ref
        if config is None:
            raise ContractError(
                field="status.providerConfigRef",
                rule="is required by the blueprint and not published by the reconciler yet",
                reason=Reason.WAITING_FOR_RECONCILER,
            )
        _set_provider_config(manifest, target, config.name)
    return manifest


def _declared(accepted: Declaration) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    if accepted.parameters:
        spec["parameters"] = dict(accepted.parameters)
    if accepted.labels:
        spec["cloudTags"] = encoding.cloud_tags(accepted.provider, accepted.labels)
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
            rule="must be a path below spec that the broker does not write itself",
            reason=Reason.UNSUPPORTED_BLUEPRINT,
        )
    return path


def _annotated_path(live: Raw) -> str | None:
    """Return where a substrate says that it takes the name."""
    path = mapping(metadata(live).get("annotations")).get(names.ANNOTATION_PROVIDER_CONFIG)
    return path if isinstance(path, str) and _FIELD_PATH.fullmatch(path) else None


def _copy_provider_config(manifest: dict[str, Any], path: str, live: Raw) -> None:
    value = inject.read(live, tuple(path.split(".")))
    if isinstance(value, str):
        _set_provider_config(manifest, path, value)


def _set_provider_config(manifest: dict[str, Any], path: str, name: str) -> None:
    inject.write(manifest, tuple(path.split(".")), name)
    inject.write(manifest, ("metadata", "annotations", names.ANNOTATION_PROVIDER_CONFIG), path)
