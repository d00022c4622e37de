"""From one resource of an `Enrol` step to the facts that its composition is decided from.

What it declares, where it takes what is ours, which record is its own. Source: design §3,
`Enrol`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from function.compose import pipeline, substrate_identity
from function.contract import names
from function.contract.conditions import Reason
from function.contract.errors import ContractError
from function.contract.labels import checked_labels
from function.contract.record import Declaration, Enrolment, SubstrateReference, XRReference
from function.contract.strategy import InjectionStrategy
from function.inputs.enrol_schema import (
    RECORD_PREFIX,
    RESOURCES_MAX,
    EnrolInput,
    EnrolPaths,
    EnrolResource,
)
from function.model import parsing
from function.model.call import Lookup, Request
from function.model.facts import XR, Facts, Record, Refusal, Target
from function.model.objects import Raw, mapping, metadata
from function.render.fields import defaults, fieldpath
from function.render.tags import tag_place
from function.render.tags.tag_place import TagPlace

_PLACES_MAX: Final = 256
"""Kinds, each with what a step says of it, of which the places are remembered."""

_RETRY_MAX: Final = 2**31 - 1
_VERSION: Final = re.compile(r"([a-z0-9.-]{1,253}/)?[a-z][a-z0-9-]{0,62}")
_KIND: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,62}")
"""What the API server takes (Kubernetes, CustomResourceDefinition)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolled:
    """One resource of a step in one request.

    Attributes:
        entry: What the step says of it.
        declared: What its entry declares of a resource, or why that cannot be read.
        forgotten: The step does not name it any more, though its record is there.
        excess: The step means more new resources than one XR may have, and this is one.
        siblings: What it holds, as far as that is there or named.
    """

    request: Request
    step: EnrolInput
    xr: XR
    name: str
    entry: EnrolResource
    declared: Declaration | Refusal
    forgotten: bool = False
    excess: bool = False
    siblings: tuple[SubstrateReference, ...] = ()

    @property
    def record_name(self) -> str:
        """Name of its record among the composed resources."""
        return f"{RECORD_PREFIX}{self.name}"

    @property
    def record_key(self) -> str:
        """The name that its record gets."""
        group, xr = names.group_of(self.xr.api_version), self.xr
        return names.record_name(group=group, kind=xr.kind, name=xr.name, resource=self.name)

    def facts(self) -> Facts | None:
        """Return its facts; None where there is nothing of it.

        Raises:
            StrangerError: Another object stands under its name or its record's.
        """
        given = self.request.desired.get(self.name)
        live = self.request.resources.get(self.name)
        if given is None and not self._begun(live):
            return None
        record = self._record()
        declared = self._declared()
        accepted = None if record is None else record.status.accepted
        if accepted is not None and isinstance(declared, Declaration):
            declared = _unchanged(declared, accepted)
        sought = self._lookup(pipeline.REQUIRE_SUBSTRATE)
        if sought.raw is not None and substrate_identity.is_strange(
            self.xr, sought.raw, self.record_key
        ):
            declared, sought = _taken(self.name), Lookup(looked=True)
        try:
            target = self._target(given, live)
        except ContractError as error:
            declared, target = Refusal(error=error), self._nowhere(given)
        facts = Facts(
            xr=self.xr,
            resource=self.name,
            declared=declared,
            blueprint=None,
            record=record,
            substrate=live,
            sought=sought,
            token=parsing.token(self._lookup(pipeline.REQUIRE_TOKEN).raw),
            enrolment=parsing.shared(self.request.step, _enrolment),
            preview=self.request.preview and record is None and live is None,
            target=target,
        )
        substrate_identity.judge_substrate(facts)
        return facts

    def scoped(self, requirement: str) -> str:
        """Name a requirement of this resource among those of all."""
        return f"{requirement}/{self.name}"

    def _begun(self, live: Raw | None) -> bool:
        """Whether this XR composes a record of it, or has enrolled the one in sight."""
        recorded = self.record_name in self.request.resources
        theirs = self.record_name in self.request.desired
        return (recorded and not theirs) or (live is not None and _ours(live))

    def _record(self) -> Record | None:
        """Return its record; under its name an earlier step may compose what it likes."""
        name, found = self.record_name, self._lookup(pipeline.REQUIRE_RECORD)
        theirs = name in self.request.desired
        observed = None if theirs else self.request.resources.get(name)
        substrate_identity.judge_record(
            self.xr, observed, found, resource=name, key=self.record_key
        )
        return parsing.record(observed, found)

    def _lookup(self, requirement: str) -> Lookup:
        return self.request.lookup(self.scoped(requirement))

    def _declared(self) -> Declaration | Refusal:
        fault = self._fault()
        if fault is not None:
            return Refusal(error=fault)
        if isinstance(self.declared, Refusal):
            return self.declared
        return self.declared.model_copy(update={"resource": self.name})

    def _fault(self) -> ContractError | None:
        """Return why this one declares nothing, whatever its entry says."""
        where = "input.resources"
        if self.forgotten:
            rule = f"must name {self.name!r} again; to drain it instead, delete its record"
            if self.name not in self.request.desired:
                rule = f"no longer names {self.name!r} and no step composes it; it is being drained"
            return ContractError(field=where, rule=rule)
        if self.excess:
            return ContractError(field=where, rule=f"must match at most {RESOURCES_MAX} resources")
        if self.xr.project_id is None:
            return ContractError(
                field="metadata.namespace",
                rule="must be a Project's namespace, plexsphere-project-<uuid>",
            )
        if self.record_name in self.request.desired:
            rule = f"{self.record_name!r} is composed by an earlier step; the name is reserved here"
            return ContractError(field=where, rule=rule)
        return None

    def _target(self, given: Raw | None, live: Raw | None) -> Target:
        what = given or live or {}
        if given is not None and _unnamed(given):
            raise ContractError(field=self.name, rule="must have an apiVersion and a kind")
        group = names.group_of(str(what.get("apiVersion", "")))
        paths, tags = _places(
            group, str(what.get("kind", "")), self.entry.paths, self.entry.injection_strategy
        )
        return Target(
            given=given,
            whole=self.request.whole,
            paths=paths,
            tags=tags,
            terminal=tuple((c.type, c.status) for c in self.entry.terminal_conditions),
            siblings=self.siblings,
        )

    def _nowhere(self, given: Raw | None) -> Target:
        return Target(
            given=given,
            whole=self.request.whole,
            paths={},
            tags=None,
            terminal=(),
            siblings=self.siblings,
        )


def declares(raw: Raw, xr: XR, entry: EnrolResource) -> Declaration | Refusal:
    """Return what an entry declares of each resource that it means, but for the name.

    Args:
        raw: The composite.
        xr: Its identity.
        entry: One of the step's.
    """
    identity = {
        "api_version": xr.api_version,
        "kind": xr.kind,
        "name": xr.name,
        "uid": xr.uid,
    }
    try:
        return Declaration(
            xr=parsing.parsed(XRReference, identity, "metadata"),
            resource=entry.name,
            injection_strategy=entry.injection_strategy,
            mesh_role=entry.mesh_role,
            provider=entry.provider,
            cloud_credential=entry.cloud_credential,
            labels=_labels(raw, entry),
            retry=retry(raw),
            registration=entry.registration,
        )
    except ContractError as error:
        return Refusal(error=error)


def _labels(raw: Raw, entry: EnrolResource) -> dict[str, str]:
    if entry.labels_from is None:
        return {}
    path = fieldpath.parse("input.resources.labelsFrom", entry.labels_from)
    found = fieldpath.read(raw, path)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ContractError(field=fieldpath.show(path), rule="must be a map of labels")
    return checked_labels(found)


def _enrolment(step: Raw) -> Enrolment:
    knobs = parsing.parsed(EnrolInput, step, "input").enrolment
    return Enrolment(**knobs.model_dump(exclude_none=True))


@functools.lru_cache(maxsize=_PLACES_MAX)
def _places(
    group: str, kind: str, said: EnrolPaths, strategy: InjectionStrategy
) -> tuple[Mapping[str, fieldpath.Path], TagPlace | None]:
    secret = strategy is InjectionStrategy.PROVIDER_SECRET
    texts = defaults.defaults(group, kind, provider_secret=secret)
    given = said.model_dump(by_alias=True, exclude_none=True)
    if given.keys() & {defaults.USER_DATA, defaults.USER_DATA_BASE64}:
        texts.pop(defaults.USER_DATA, None)
        texts.pop(defaults.USER_DATA_BASE64, None)
    texts |= given
    tags = texts.pop(defaults.TAGS, None)
    where = "input.resources.paths"
    paths = {name: fieldpath.parse(f"{where}.{name}", text) for name, text in texts.items()}
    place = None if tags is None else tag_place.parse(f"{where}.tags", tags)
    return MappingProxyType(paths), place


def _taken(name: str) -> Refusal:
    rule = "has the name of an object that belongs to another composite resource"
    return Refusal(error=ContractError(field=name, rule=rule))


def _unnamed(given: Raw) -> bool:
    version, kind = given.get("apiVersion"), given.get("kind")
    named = isinstance(version, str) and _VERSION.fullmatch(version)
    return not (named and isinstance(kind, str) and _KIND.fullmatch(kind))


def _ours(live: Raw) -> bool:
    return names.LABEL_RECORD in mapping(metadata(live).get("labels"))


def retry(xr: Raw) -> int:
    """Return the XR's `spec.retry`; a composite of somebody else's may mean another thing."""
    value = mapping(xr.get("spec")).get("retry")
    known = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _RETRY_MAX
    return value if known and isinstance(value, int) else 0


def _unchanged(declared: Declaration, accepted: Declaration) -> Declaration | Refusal:
    """Refuse a declaration that is another node under the accepted one's name."""
    rules = {
        "injectionStrategy": accepted.injection_strategy is declared.injection_strategy,
        "meshRole": accepted.mesh_role is declared.mesh_role,
        "provider": accepted.provider is declared.provider,
        "cloudCredential": accepted.cloud_credential == declared.cloud_credential,
    }
    for field, same in rules.items():
        if not same:
            rule = "is immutable; restore the accepted value"
            where = f"input.resources.{field}"
            return Refusal(error=ContractError(field=where, rule=rule, reason=Reason.IMMUTABLE))
    return declared
