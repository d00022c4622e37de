"""The values that go into one composition and come out of it.

Belongs here: frozen values and the readings of a raw object that several modules need.
Not here: decisions. `raw` fields may hold a token inside user data, so they never show in
a repr.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum, unique
from typing import Any, Final
from uuid import UUID

from function.contract import names
from function.contract.catalog import BlueprintVersionSpec
from function.contract.conditions import Verdict
from function.contract.errors import ContractError
from function.contract.record import Declaration, Enrolment, RecordStatus
from function.contract.secrets import TokenPlaintext

Raw = Mapping[str, Any]

COUNT: Final = re.compile(r"[0-9]{1,9}")
"""A generation as text."""


@unique
class Ttl(Enum):
    """How long a response holds: until something nobody watches may have changed."""

    STEADY = timedelta(minutes=10)
    REFUSED = timedelta(minutes=1)
    WAITING = timedelta(seconds=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """An object the function wants to see.

    Attributes:
        namespace: None for a cluster-scoped kind.
    """

    api_version: str
    kind: str
    name: str
    namespace: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call of the function, as plain values.

    Attributes:
        xr: The observed composite.
        resources: Observed composed resources by name, as far as an input looks at them.
        required: Required resources by requirement name; None: looked for and absent; a
            name that is missing was not looked for yet.
        step: The step's input object.
        preview: The request's context asks for a preview.
    """

    xr: Raw = field(repr=False)
    resources: Mapping[str, Raw] = field(repr=False)
    required: Mapping[str, Raw | None] = field(repr=False)
    step: Raw = field(repr=False)
    preview: bool = False

    def lookup(self, requirement: str) -> Lookup:
        """Return what became of a requirement."""
        return Lookup(looked=requirement in self.required, raw=self.required.get(requirement))


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """A required object: not looked for yet, looked for and absent, or found.

    Attributes:
        looked: Whether Crossplane resolved the requirement.
        raw: The object, or None.
    """

    looked: bool = False
    raw: Raw | None = field(default=None, repr=False)


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
    """What the token Secret holds."""

    plaintext: TokenPlaintext
    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a declaration cannot be resolved.

    Attributes:
        pending: The objects it refers to were not looked for yet; says nothing about them.
        waiting: The cause is an object that is absent and that nobody watches.
    """

    error: ContractError
    pending: bool = False
    waiting: bool = False


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
    """

    xr: XR
    resource: str
    declared: Declaration | Refusal
    blueprint: BlueprintVersionSpec | None
    record: Record | None
    substrate: Raw | None = field(default=None, repr=False)
    sought: Lookup = field(default_factory=Lookup)
    token: Token | None = None
    enrolment: Enrolment = field(default_factory=Enrolment)
    preview: bool = False

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
    def status(self) -> RecordStatus:
        """The record's status; empty where there is no record."""
        return self.record.status if self.record is not None else RecordStatus()


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """One object to compose and whether it is ready."""

    manifest: dict[str, Any] = field(repr=False)
    ready: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one composition answers.

    Attributes:
        record: The record, or None to compose none.
        substrate: The substrate, or None to compose none.
        ready: Whether the composite is ready; always given.
        verdicts: The four conditions.
        status: Fields of the XR's status.
        ttl: How long the answer holds.
        requirements: Every object that is needed, by requirement name.
    """

    record: Composed | None
    substrate: Composed | None
    ready: bool
    verdicts: tuple[Verdict, ...]
    status: dict[str, Any]
    ttl: Ttl
    requirements: Mapping[str, Requirement]


def mapping(value: object) -> Raw:
    """Return a value if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def metadata(raw: Raw) -> Raw:
    """Return an object's metadata."""
    return mapping(raw.get("metadata"))


def status(raw: Raw) -> Raw:
    """Return an object's status."""
    return mapping(raw.get("status"))


def terminating(raw: Raw) -> bool:
    """Tell whether an object has a deletion time."""
    return bool(metadata(raw).get("deletionTimestamp"))


def generation(raw: Raw) -> int | None:
    """Return the bootstrap generation stamped on an object, or None."""
    text = mapping(metadata(raw).get("annotations")).get(names.ANNOTATION_GENERATION)
    return int(text) if isinstance(text, str) and COUNT.fullmatch(text) else None
