"""The findings of the orphan sweep, in either direction.

The findings and their words. They are told and never deleted: a machine may be worth more
than tidiness. Source: docs/decisions/0016.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum, unique
from typing import Final

from function.contract.names import group_of


@unique
class OrphanFinding(StrEnum):
    """Every kind of finding."""

    SUBSTRATE_WITHOUT_RECORD = "substrate-without-record"
    RECORD_MISSING = "record-missing"
    NODE_OF_DELETED = "node-of-deleted"
    KIND_UNLISTED = "kind-unlisted"

    @property
    def event_reason(self) -> str:
        """The CamelCase reason of its Kubernetes Event."""
        return "".join(part.capitalize() for part in self.value.split("-"))


REMEDY: Final[Mapping[OrphanFinding, str]] = {
    OrphanFinding.SUBSTRATE_WITHOUT_RECORD: "nothing deletes it: check whether it is needed; if "
    "not, delete it as a break-glass user",
    OrphanFinding.RECORD_MISSING: "Crossplane composes the record again while its XR exists; if it "
    "stays missing, check whether the reconciler is frozen",
    OrphanFinding.NODE_OF_DELETED: "remove it from the mesh with `broker nodes deregister`",
    OrphanFinding.KIND_UNLISTED: "grant the reconciler `list` on it, or find leftovers manually",
}
"""What an operator can do about each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Involved:
    """The object that a finding's Event is about.

    Attributes:
        namespace: Where the Event goes; of a Namespace its own name.
        uid: Empty when it is not known.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Orphan:
    """One finding.

    Attributes:
        finding: What is wrong.
        subject: What it is found of: an object, an aggregate, a node, a kind.
        detail: What leads back to where it comes from.
        involved: What its Event is about; None has none. No part of what the finding is.
    """

    finding: OrphanFinding
    subject: str
    detail: str
    involved: Involved | None = field(default=None, compare=False)

    @property
    def message(self) -> str:
        """The finding and its remedy, in one line."""
        return f"{self.subject}, {self.detail}: {REMEDY[self.finding]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedObject:
    """An object that carries the record label.

    Attributes:
        record: The record's name, as the label says.
        uid: Its uid.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    record: str
    uid: str

    @property
    def orphan(self) -> Orphan:
        """Tell of it as of an orphan."""
        return Orphan(
            finding=OrphanFinding.SUBSTRATE_WITHOUT_RECORD,
            subject=f"{self.kind}.{group_of(self.api_version)} {self.namespace}/{self.name}",
            detail=f"created for record {self.record}",
            involved=Involved(
                api_version=self.api_version,
                kind=self.kind,
                namespace=self.namespace,
                name=self.name,
                uid=self.uid,
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Unrecorded:
    """An aggregate whose deletion was not requested, and where its record should be."""

    namespace: str
    record: str
    handle: str

    @property
    def orphan(self) -> Orphan:
        """Tell of it as of an orphan."""
        return Orphan(
            finding=OrphanFinding.RECORD_MISSING,
            subject=self.handle,
            detail=f"record {self.namespace}/{self.record} is missing without a deletion request",
            involved=namespace(self.namespace),
        )


def namespace(name: str) -> Involved:
    """Return the namespace that stands in for what has no object any more."""
    return Involved(api_version="v1", kind="Namespace", namespace=name, name=name)


def unlisted(api_version: str, kind: str) -> Orphan:
    """Tell of a kind whose objects the broker may not list."""
    return Orphan(
        finding=OrphanFinding.KIND_UNLISTED,
        subject=f"{kind} of {api_version}",
        detail="the reconciler lacks the right to list it, so leftover objects are not found",
    )
