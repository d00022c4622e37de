"""The objects that a diagnosis is made from, as the caller could read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum, unique


@unique
class Presence(StrEnum):
    """What the API server answered for an object."""

    FOUND = "found"
    ABSENT = "absent"
    FORBIDDEN = "forbidden"
    """The caller may not read it, so that nothing is said of it."""

    UNREADABLE = "unreadable"
    """The API server gave another answer, or the reference to it is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionFacts:
    """One condition of an object; what is absent is empty."""

    status: str
    reason: str = ""
    message: str = ""
    since: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectFacts:
    """One object.

    Attributes:
        resource: Its type for kubectl, `plural.group` or `Kind` where that is unknown.
        kind: Its kind.
        name: Its name.
        presence: Whether it could be read.
        paused: Its `crossplane.io/paused` annotation is "true".
        deleting_since: Its deletionTimestamp; empty while nobody deleted it.
        created: Its creationTimestamp; empty when unknown.
        finalizers: What keeps it.
        conditions: By type.
        warning: The newest Warning event about it; empty when there is none.
    """

    resource: str
    kind: str
    name: str
    presence: Presence = Presence.FOUND
    paused: bool = False
    deleting_since: str = ""
    created: str = ""
    finalizers: tuple[str, ...] = ()
    conditions: Mapping[str, ConditionFacts] = field(default_factory=dict)
    warning: str = ""

    @property
    def title(self) -> str:
        """The object as people name it, `Kind/name`."""
        return f"{self.kind}/{self.name}"

    @property
    def target(self) -> str:
        """The object as kubectl takes it, `plural.group/name`."""
        return f"{self.resource}/{self.name}"

    def condition(self, condition_type: str, *statuses: str) -> ConditionFacts | None:
        """Return a condition if it is there and has one of the statuses."""
        found = self.conditions.get(condition_type)
        return found if found is not None and found.status in statuses else None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """One record, and what stands behind it.

    Attributes:
        record: The ProvisioningRecord.
        phase: Its `status.phase`; empty before the first status.
        substrate: The object that the machine is made of; None when the record names none.
        composed: What the substrate is made of, at every depth, parents first.
    """

    record: ObjectFacts
    phase: str = ""
    substrate: ObjectFacts | None = None
    composed: tuple[ObjectFacts, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisFacts:
    """Everything that a diagnosis is made from.

    Attributes:
        namespace: Where the XR is, or was.
        xr: The composite resource that people wrote.
        retry: Its `spec.retry`.
        nodes: Its records, in the order of their names.
        records: Whether records could be listed.
    """

    namespace: str
    xr: ObjectFacts
    retry: int = 0
    nodes: tuple[NodeFacts, ...] = ()
    records: Presence = Presence.FOUND
