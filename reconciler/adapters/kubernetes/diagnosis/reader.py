"""Gathers the facts of a diagnosis: XR, records, substrates, what they are made of, Events.

Every read is a GET or a list with the caller's rights. What a provider or a tenant wrote is
bounded, redacted and made printable before anything else sees it: it ends on a terminal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from function.contract import names
from function.contract.record import SubstrateReference
from function.contract.redaction import provider_message
from reconciler.adapters.kubernetes.diagnosis.resource_types import ResourceType
from reconciler.adapters.kubernetes.objects import composites
from reconciler.adapters.kubernetes.transport.client import (
    KubernetesClient,
    KubernetesError,
    Object,
    group_path,
)
from reconciler.domain.diagnosis.facts import (
    ConditionFacts,
    DiagnosisFacts,
    NodeFacts,
    ObjectFacts,
    Presence,
)

RECORDS_MAX: Final = 300
"""Records of one XR that are looked at: `Enrol` takes 256 resources."""

OBJECTS_MAX: Final = 64
"""Objects below the substrates that are read at all: a person waits."""

DEPTH_MAX: Final = 4
"""Levels below a substrate; published blueprints have one."""

EVENTS_MAX: Final = 8
"""Objects whose Events are asked for."""

TEXT_MAX: Final = 512
"""Characters of one message."""

_FORBIDDEN: Final = frozenset({401, 403})
_SETTLED: Final = ("Ready", "Synced")


class DiagnosisReader:
    """Reads from one API server. Holds no state between two diagnoses but the limits' rest."""

    def __init__(self, client: KubernetesClient) -> None:
        self._client = client
        self._objects_left = OBJECTS_MAX
        self._events_left = EVENTS_MAX

    async def read(self, wanted: ResourceType, namespace: str, name: str) -> DiagnosisFacts:
        """Return everything that can be read about a resource.

        Raises:
            KubernetesError: An answer other than found, absent and forbidden.
            UnreachableError: The connection failed.
        """
        path = f"{group_path(wanted.api_version)}/namespaces/{namespace}/{wanted.plural}/{name}"
        found, presence = await self._get(path)
        xr = await self._facts(found, wanted.resource, wanted.kind, name, presence, namespace)
        records, listed = await self._records(wanted, namespace, name)
        nodes = [await self._node(record, namespace) for record in records]
        retry = ((found or {}).get("spec") or {}).get("retry", 0)
        return DiagnosisFacts(
            namespace=namespace,
            xr=xr,
            retry=retry if isinstance(retry, int) else 0,
            nodes=tuple(nodes),
            records=listed,
        )

    async def _records(
        self, wanted: ResourceType, namespace: str, name: str
    ) -> tuple[list[Object], Presence]:
        path = f"/apis/{names.API_VERSION}/namespaces/{namespace}/provisioningrecords"
        query = {
            "labelSelector": f"{names.LABEL_XR}={names.label_value(name)}",
            "limit": str(RECORDS_MAX),
        }
        try:
            listing = await self._client.request("GET", path, query=query)
        except KubernetesError as error:
            if error.status not in (404, *_FORBIDDEN):
                raise
            return [], Presence.ABSENT if error.status == 404 else Presence.FORBIDDEN
        own = [item for item in listing.get("items") or [] if _is_of(item, wanted, name)]
        return sorted(own, key=lambda item: str(item["metadata"]["name"])), Presence.FOUND

    async def _node(self, record: Object, namespace: str) -> NodeFacts:
        status = record.get("status") or {}
        facts = await self._facts(
            record,
            f"provisioningrecords.{names.GROUP}",
            "ProvisioningRecord",
            str(record["metadata"]["name"]),
            Presence.FOUND,
            namespace,
        )
        node = NodeFacts(record=facts, phase=str(status.get("phase", "")))
        reference = _substrate(record)
        # What a Ready node is made of holds nothing up.
        if reference is None or facts.condition("Ready", "True") is not None:
            return node
        found, substrate = await self._object(reference, namespace)
        composed: list[ObjectFacts] = []
        level = list(composites.below(found or {}))
        for _ in range(DEPTH_MAX):
            below: list[SubstrateReference] = []
            for each in level:
                if self._objects_left <= 0:
                    break
                child, child_facts = await self._object(each, namespace)
                composed.append(child_facts)
                below += composites.below(child or {})
            level = below
        return replace(node, substrate=substrate, composed=tuple(composed))

    async def _object(
        self, reference: SubstrateReference, namespace: str
    ) -> tuple[Object | None, ObjectFacts]:
        self._objects_left -= 1
        api_version, kind, name = reference.api_version, reference.kind, reference.name
        try:
            plural = await self._client.plural(api_version, kind)
            path = f"{group_path(api_version)}/namespaces/{namespace}/{plural}/{name}"
            found, presence = await self._get(path)
        except KubernetesError as error:
            # One odd reference must not take the answer about all others.
            refused = Presence.FORBIDDEN if error.status in _FORBIDDEN else Presence.UNREADABLE
            absent = Presence.ABSENT if error.status == 404 else refused
            shown = _printable(kind)
            return None, ObjectFacts(resource=shown, kind=shown, name=name, presence=absent)
        group = names.group_of(api_version)
        resource = f"{plural}.{group}" if group else plural
        return found, await self._facts(found, resource, kind, name, presence, namespace)

    async def _get(self, path: str) -> tuple[Object | None, Presence]:
        try:
            found = await self._client.get(path)
        except KubernetesError as error:
            if error.status not in _FORBIDDEN:
                raise
            return None, Presence.FORBIDDEN
        return found, Presence.ABSENT if found is None else Presence.FOUND

    async def _facts(
        self,
        found: Object | None,
        resource: str,
        kind: str,
        name: str,
        presence: Presence,
        namespace: str,
    ) -> ObjectFacts:
        facts = ObjectFacts(resource=resource, kind=kind, name=name, presence=presence)
        if found is None:
            return facts
        metadata = found["metadata"]
        conditions = _conditions(found)
        settled = all(_is_true(conditions.get(each)) for each in _SETTLED if each in conditions)
        return replace(
            facts,
            paused=(metadata.get("annotations") or {}).get("crossplane.io/paused") == "true",
            deleting_since=str(metadata.get("deletionTimestamp", "")),
            created=str(metadata.get("creationTimestamp", "")),
            finalizers=tuple(map(_printable, metadata.get("finalizers") or [])),
            conditions=conditions,
            warning="" if settled and conditions else await self._warning(found, namespace),
        )

    async def _warning(self, found: Object, namespace: str) -> str:
        """Return the newest Warning about an object; empty when there is none to be had."""
        if self._events_left <= 0:
            return ""
        self._events_left -= 1
        query = {
            "fieldSelector": f"involvedObject.uid={found['metadata']['uid']},type=Warning",
            "limit": "100",
        }
        try:
            listing = await self._client.request(
                "GET", f"/api/v1/namespaces/{namespace}/events", query=query
            )
        except KubernetesError as error:
            if error.status not in _FORBIDDEN:
                raise
            return ""
        newest = max(listing.get("items") or [], key=_seen_at, default=None)
        return "" if newest is None else _printable(newest.get("message"))


def _substrate(record: Object) -> SubstrateReference | None:
    """Return the substrate that a record names; None before there is one.

    Without a name of its own it has the one that the record's status gives it (kinds.md).
    """
    listed = (record.get("spec") or {}).get("substrate") or []
    try:
        reference = SubstrateReference.model_validate(listed[0])
    except (IndexError, ValueError):
        return None
    handle = str((record.get("status") or {}).get("xrName") or "")
    named = reference.model_copy(update={"name": reference.name or handle})
    return named if named.name else None


def _is_of(record: Object, wanted: ResourceType, name: str) -> bool:
    """Tell whether a record is the XR's: another kind may have the name, or its hash."""
    xr = ((record.get("spec") or {}).get("declaration") or {}).get("xr") or {}
    group = names.group_of(str(xr.get("apiVersion", "")))
    own = (group, xr.get("kind"), xr.get("name"))
    return own == (names.group_of(wanted.api_version), wanted.kind, name)


def _conditions(found: Object) -> Mapping[str, ConditionFacts]:
    status = found.get("status")
    listed = status.get("conditions") if isinstance(status, Mapping) else None
    items: Sequence[Any] = listed if isinstance(listed, list) else []
    return {
        _printable(item.get("type")): ConditionFacts(
            status=_printable(item.get("status")),
            reason=_printable(item.get("reason")),
            message=_printable(item.get("message")),
            since=_printable(item.get("lastTransitionTime")),
        )
        for item in items
        if isinstance(item, Mapping)
    }


def _is_true(condition: ConditionFacts | None) -> bool:
    return condition is not None and condition.status == "True"


def _seen_at(event: Object) -> str:
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return next((str(each) for each in times if each), "")


def _printable(text: object) -> str:
    """Return a text as one bounded line without secrets or what a terminal would obey."""
    line = provider_message(str(text or ""), longest=TEXT_MAX)
    return "".join(each if each.isprintable() else "�" for each in line)
