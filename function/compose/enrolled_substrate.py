"""Puts bootstrap, labels and tags into a resource that an earlier step composed.

What its manifest says. Nothing that the step gave is changed: a bootstrap field it filled
itself is an error, a tag it set itself stays. Source: design §3, `Enrol`.
"""

from __future__ import annotations

import base64
from typing import Any, Final

from function.compose import bootstrap_material, last_applied, substrate_lookup
from function.contract import names
from function.contract.conditions import Reason
from function.contract.errors import ContractError
from function.contract.record import Declaration, Enrolment
from function.contract.strategy import InjectionStrategy, MeshRole
from function.model.facts import Facts, Refusal, Target, memoised
from function.model.objects import Raw, mapping, metadata
from function.render.fields import defaults, fieldpath, inject
from function.render.tags import encoding, tag_place


def keep(facts: Facts, live: Raw) -> dict[str, Any]:
    """Return the resource in sight as its step gives it, with its bootstrap as it is.

    One that its step does not give any more stays as it was composed last.

    Raises:
        ContractError: What its step gave has no room for the bootstrap, or says that it is
            somewhere else.
    """
    target = _target(facts)
    if target.given is None:
        return last_composed(facts, live)
    manifest = _sticky(facts, live, target.given)
    try:
        _tag(facts, manifest)
    except ContractError:
        return manifest
    return manifest


def update(facts: Facts, live: Raw) -> dict[str, Any]:
    """Return the resource in sight as its step gives it, bootstrap kept, tags rendered again.

    Raises:
        ContractError: As `kept`, or what its step gave has no room for the tags.
    """
    target = _target(facts)
    if target.given is None:
        return keep(facts, live)
    manifest = _sticky(facts, live, target.given)
    _tag(facts, manifest)
    return manifest


def create(facts: Facts, accepted: Declaration, enrolment: Enrolment) -> dict[str, Any]:
    """Return a new resource with its bootstrap.

    Raises:
        ContractError: A value the bootstrap needs is missing or wrong, the document is too
            large for the cloud, or the step filled a field that is ours.
    """
    target = _target(facts)
    given = target.given or {}
    manifest = dict(given)
    known = substrate_lookup.known_reference(facts)
    if _what(given) != (names.group_of(known.api_version), known.kind):
        raise _other_kind(facts)
    _mark(facts, manifest, None)
    if accepted.mesh_role is MeshRole.NODE:
        material = bootstrap_material.material(facts, accepted, enrolment)
        for name, value in inject.fields(accepted.injection_strategy, material).items():
            _fill(facts, manifest, name[-1], value)
        _mark(facts, manifest, None if facts.token is None else facts.token.generation)
    _tag(facts, manifest)
    return manifest


def last_composed(facts: Facts, live: Raw) -> dict[str, Any]:
    """Return the resource in sight as the pipeline composed it last."""
    return last_applied.last_applied(_target(facts).whole.get(facts.resource, live))


def _fill(facts: Facts, manifest: dict[str, Any], name: str, value: str) -> None:
    path = _place(facts, name)
    if name == defaults.USER_DATA and defaults.USER_DATA_BASE64 in _target(facts).paths:
        value = base64.b64encode(value.encode()).decode("ascii")
    if path is None:
        rule = "must be set for a resource of this kind and injection strategy"
        raise ContractError(field=f"input.resources.paths.{name}", rule=rule)
    if fieldpath.read(manifest, path) not in (None, ""):
        raise ContractError(
            field=f"{facts.resource}.{fieldpath.show(path)}",
            rule="is set by an earlier step; the enrolment would overwrite it",
            reason=Reason.NOT_INJECTED,
        )
    fieldpath.write(manifest, path, value)


def _sticky(facts: Facts, live: Raw, given: Raw) -> dict[str, Any]:
    manifest = dict(given)
    stamp = substrate_lookup.stamped_generation(facts)
    if facts.status.accepted is not None or _marked(live):
        if _what(given) != _what(live):
            raise _other_kind(facts)
        _mark(facts, manifest, stamp)
    for path, value in bootstrap_fields(facts, live).items():
        fieldpath.write(manifest, path, value)
    return manifest


def _other_kind(facts: Facts) -> ContractError:
    """Crossplane would leave the machine running outside of every reference."""
    rule = "must keep the group and kind that its record names"
    return ContractError(field=facts.resource, rule=rule, reason=Reason.IMMUTABLE)


def bootstrap_fields(facts: Facts, live: Raw) -> dict[fieldpath.Path, str]:
    """Return the bootstrap that a resource carries, by where; none where none was put there.

    The step's input may be edited, and a bootstrap that is left behind at its old place
    would be taken away under a running machine.

    Raises:
        ContractError: It is not where it must be.
    """
    if substrate_lookup.stamped_generation(facts) is None:
        return {}
    found: dict[fieldpath.Path, str] = {}
    noted = mapping(metadata(live).get("annotations")).get(names.ANNOTATION_BOOTSTRAP_PATHS)
    for name in _fields(facts):
        path = _place(facts, name)
        value = None if path is None else fieldpath.read(live, path)
        moved = noted is not None and noted != _noted(facts)
        if path is None or moved or not isinstance(value, str) or not value:
            where = f"input.resources.paths.{name}"
            rule = "must stay the path at which the bootstrap was injected"
            raise ContractError(field=where, rule=rule, reason=Reason.IMMUTABLE)
        found[path] = value
    return found


@memoised
def _fields(facts: Facts) -> tuple[str, ...]:
    """Return the names of the fields that carry the bootstrap."""
    declared = None if isinstance(facts.declared, Refusal) else facts.declared
    known = facts.status.accepted or declared
    if known is None:
        return tuple(_target(facts).paths)
    return _CARRIERS[known.injection_strategy]


_CARRIERS: Final = {
    InjectionStrategy.CLOUD_INIT_USER_DATA: (defaults.USER_DATA,),
    InjectionStrategy.HELM_VALUES: ("bootstrapToken", "apiUrl", "plexdImage"),
    InjectionStrategy.PROVIDER_SECRET: ("bootstrapToken",),
}


def _place(facts: Facts, name: str) -> fieldpath.Path | None:
    paths = _target(facts).paths
    if name == defaults.USER_DATA and defaults.USER_DATA_BASE64 in paths:
        return paths[defaults.USER_DATA_BASE64]
    return paths.get(name)


def _mark(facts: Facts, manifest: dict[str, Any], stamp: int | None) -> None:
    """Name the resource, and say that it is held, for which record and with which token."""
    head = {**metadata(manifest), "name": substrate_lookup.known_reference(facts).name}
    labels = {names.LABEL_HOLD: "true", names.LABEL_RECORD: facts.record_name}
    head["labels"] = {**mapping(head.get("labels")), **labels}
    if stamp is not None:
        note = {
            names.ANNOTATION_GENERATION: str(stamp),
            names.ANNOTATION_BOOTSTRAP_PATHS: _noted(facts),
        }
        head["annotations"] = {**mapping(head.get("annotations")), **note}
    manifest["metadata"] = head


@memoised
def _noted(facts: Facts) -> str:
    """Return where the bootstrap is, as the resource says it for later runs."""
    found = (_place(facts, name) for name in _fields(facts))
    return ",".join(fieldpath.show(path) for path in found if path is not None)


def _what(raw: Raw) -> tuple[str, object]:
    """Return the group and kind of an object; its version may follow the provider's."""
    return names.group_of(str(raw.get("apiVersion", ""))), raw.get("kind")


def _marked(live: Raw) -> bool:
    return mapping(metadata(live).get("labels")).get(names.LABEL_HOLD) == "true"


def _tag(facts: Facts, manifest: dict[str, Any]) -> None:
    accepted, place = facts.status.accepted, _target(facts).tags
    if accepted is not None and place is not None:
        encoded = encoding.encode(accepted.provider, accepted.labels)
        tag_place.put(manifest, place, encoded.tags)


def _target(facts: Facts) -> Target:
    if facts.target is None:
        message = "only a resource of an earlier step is decorated"
        raise AssertionError(message)
    return facts.target
