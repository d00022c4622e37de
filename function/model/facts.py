"""The facts that one composition is decided from.

Frozen values. `raw` fields may hold a token inside user data, so they never show in a repr.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

from function.contract import names
from function.contract.catalog.published import BlueprintVersionSpec
from function.contract.errors import ContractError, forget_frames
from function.contract.record import Declaration, Enrolment, RecordStatus, SubstrateReference
from function.contract.secrets import TokenPlaintext
from function.model.call import Lookup
from function.model.objects import Raw, mapping, metadata, terminating
from function.render.fields import fieldpath
from function.render.tags.tag_place import TagPlace

Answer = TypeVar("Answer")


def memoised(read: Callable[[Facts], Answer]) -> Callable[[Facts], Answer]:
    """Return a reading that looks at the same facts once; many decisions ask the same."""

    @functools.wraps(read)
    def known(facts: Facts) -> Answer:
        if read not in facts.read:
            facts.read[read] = read(facts)
        found: Answer = facts.read[read]
        return found

    return known


@dataclass(frozen=True, slots=True, kw_only=True)
class XR:
    """The composite resource.

    Attributes:
        project_id: The Project of its namespace, or None outside of one.
    """

    api_version: str
    kind: str
    name: str
    namespace: str
    uid: str
    project_id: UUID | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """The content of the token Secret."""

    plaintext: TokenPlaintext
    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The reason why a declaration cannot be resolved.

    Attributes:
        pending: The objects it refers to were not looked for yet; says nothing about them.
        waiting: The cause is an object that is absent and that nobody watches.
    """

    error: ContractError
    pending: bool = False
    waiting: bool = False

    def __post_init__(self) -> None:
        """Keep the error and not where it came from."""
        forget_frames(self.error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The observed record.

    Attributes:
        status: Its status, as far as it is readable.
        unreadable: What of its status is not, or None; a newer reconciler may have written it.
        found: It was looked up by its name: this XR does not compose it (yet).
    """

    raw: Raw = field(repr=False)
    status: RecordStatus
    unreadable: ContractError | None = None
    found: bool = False

    @property
    def terminating(self) -> bool:
        """Whether somebody deleted it."""
        return terminating(self.raw)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A resource that other steps compose, and where it takes what is ours.

    Attributes:
        given: What an earlier step composed in this run; None: it stopped to.
        whole: Observed resources with their `managedFields`, by name.
        paths: Where each field of a strategy goes, by the field's name.
        tags: Where cloud tags go; None: nowhere.
        terminal: The conditions, by type and status, that say it failed for good.
        siblings: What must outlive the node beside it, as far as it is there or named.
    """

    given: Raw | None = field(repr=False)
    whole: Mapping[str, Raw] = field(repr=False)
    paths: Mapping[str, fieldpath.Path]
    tags: TagPlace | None
    terminal: tuple[tuple[str, str], ...]
    siblings: tuple[SubstrateReference, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything one composition is decided from.

    Attributes:
        resource: The composed resource's name, part of the record's key.
        declared: What the user declared, resolved, or why it cannot be.
        blueprint: The blueprint at hand, or None.
        record: The record, observed or else found by its name, or None.
        substrate: The observed substrate, or None.
        sought: The substrate looked up by name, for adoption.
        token: The token of the Secret that the record names, or None.
        enrolment: The input's knobs; the record's own win.
        preview: Compose as if accepted, with placeholders.
        target: Given where the substrate is a resource of other steps (`Enrol`).
        read: What readings of these facts answered; `once` keeps it.
    """

    xr: XR
    resource: str
    declared: Declaration | Refusal
    blueprint: BlueprintVersionSpec | None
    record: Record | None
    preview: bool
    substrate: Raw | None = field(default=None, repr=False)
    sought: Lookup = field(default_factory=Lookup)
    token: Token | None = None
    enrolment: Enrolment = field(default_factory=Enrolment)
    target: Target | None = None
    read: dict[object, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def record_name(self) -> str:
        """The name of this resource's record; an observed one keeps its own."""
        held = None if self.record is None else metadata(self.record.raw).get("name")
        if isinstance(held, str):
            return held
        return self.record_key

    @property
    def record_key(self) -> str:
        """The name that this resource's record gets: the same for an XR applied again."""
        group = names.group_of(self.xr.api_version)
        return names.record_name(
            group=group, kind=self.xr.kind, name=self.xr.name, resource=self.resource
        )

    @property
    def drain(self) -> bool:
        """Whether the resource must go in order because its step stopped composing it.

        A drain that began goes on to its end: the reconciler cannot take it back.
        """
        if self.target is None or self.preview:
            return False
        return self.target.given is None or bool(self.recorded.get("drain"))

    @property
    def recorded(self) -> Raw:
        """The spec of the record as it stands; empty where there is none."""
        return {} if self.record is None else mapping(self.record.raw.get("spec"))

    @property
    def status(self) -> RecordStatus:
        """The record's status; empty where there is no record."""
        return self.record.status if self.record is not None else RecordStatus()
