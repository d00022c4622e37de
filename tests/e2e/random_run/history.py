"""What happened in a random run, as values: rows, the cloud's facts, requests, looks, what is left.

The shape of the evidence, and questions that it answers by itself. All moments are of this
one host's clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

NEVER: Final = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One aggregate's row; `handle` is what its substrate is called."""

    id: str
    handle: str
    namespace: str
    owner: str
    record: str
    status: str
    created_at: datetime
    deletion_requested_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node's row."""

    id: str
    resource: str
    token: str
    registered_at: datetime
    deregistered_at: datetime | None = None

    def is_live(self, at: datetime) -> bool:
        return self.registered_at <= at < (self.deregistered_at or NEVER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One token's row; `digest` is its SHA-256 in hex."""

    id: str
    resource: str
    generation: int
    digest: str
    issued_at: datetime
    expires_at: datetime
    consumed_at: datetime | None = None
    revoked_at: datetime | None = None

    @property
    def ended_at(self) -> datetime:
        """When it ceased to enrol."""
        return min(self.expires_at, self.consumed_at or NEVER, self.revoked_at or NEVER)

    def is_live(self, at: datetime) -> bool:
        return self.issued_at <= at < self.ended_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """One entry of the broker's audit: what left the order of a resource's life."""

    at: datetime
    resource: str
    action: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One row of the outbox.

    Attributes:
        aggregate: Id of the resource, node or token that it tells of.
        number: Its place among those of its aggregate, from 1.
    """

    id: str
    aggregate: str
    number: int
    type: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudFact:
    """One thing that the demo cloud did with a machine."""

    at: datetime
    what: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """A machine with a document, and the digest of the token in it."""

    uid: str
    name: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One write, as the API server's audit log has it.

    Attributes:
        at: When it came.
        user: Who is meant, the impersonated one if there is one.
        groups: Of an impersonated one.
    """

    at: datetime
    verb: str
    resource: str
    name: str
    code: int
    user: str
    groups: frozenset[str] = frozenset()

    @property
    def succeeded(self) -> bool:
        return 200 <= self.code <= 299

    @property
    def was_refused(self) -> bool:
        """Whether it did nothing; a caller that was killed in mid-request is logged with a 504."""
        return 400 <= self.code <= 499


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """What one who is no administrator tried with exactly the object that he had looked at.

    Attributes:
        what: The change, in words.
        held: Whether that very version was protected.
        changed: Whether the object is another one by it.
    """

    at: datetime
    subject: str
    what: str
    held: bool
    status: int
    changed: bool
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """An object as it was somewhere between two moments.

    Attributes:
        held: Whether it carries the hold.
        ready: Status and reason of its condition `Ready`; empty where it has none.
        stalled: The same of `Stalled`.
        owner: Uid of its controller, or nothing.
        handle: What a record says that its substrate is called.
    """

    begun: datetime
    ended: datetime
    kind: str
    namespace: str
    name: str
    uid: str
    created_at: datetime
    held: bool = False
    ready: tuple[str, str] = ("", "")
    stalled: tuple[str, str] = ("", "")
    owner: str = ""
    handle: str = ""

    @property
    def title(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """From when until when something was so."""

    begun: datetime
    ended: datetime

    def shared_s(self, begun: datetime, ended: datetime) -> float:
        """Return how much of another interval lies in this one."""
        return max(0.0, (min(ended, self.ended) - max(begun, self.begun)).total_seconds())


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """All the evidence of one run.

    Attributes:
        parted: XRs, as `namespace/name`, of which nothing may be left.
        orphaned: XRs, named likewise, that somebody deleted and had leave all behind.
        by_hand: Handles of nodes that a person registered, with the token of a Secret.
        looks: At substrates, machines and records while the run lasted.
        left: What of ours is there at the end, XRs among it.
        leaks: Where the text of a token was found and is not due, without the text.
        stopped: When nobody reconciled, or the cluster was frozen.
        quiet: The time at the end in which nobody had anything to do.
        restless: Objects that changed in it.
    """

    resources: Sequence[Resource] = ()
    nodes: Sequence[Node] = ()
    tokens: Sequence[Token] = ()
    audits: Sequence[Audit] = ()
    events: Sequence[Event] = ()
    cloud: Sequence[CloudFact] = ()
    boots: Sequence[Boot] = ()
    requests: Sequence[Request] = ()
    tries: Sequence[Try] = ()
    looks: Sequence[Look] = ()
    left: Sequence[Look] = ()
    leaks: Sequence[str] = ()
    stopped: Sequence[Interval] = ()
    parted: frozenset[str] = frozenset()
    orphaned: frozenset[str] = frozenset()
    by_hand: frozenset[str] = frozenset()
    quiet: Interval
    restless: Sequence[str] = ()

    def handle(self, resource: str) -> str:
        """Return what the substrate of a resource is called, or its id where no row has it."""
        found = next((row for row in self.resources if row.id == resource), None)
        return resource if found is None else found.handle

    def of(self, handle: str) -> Resource | None:
        """Return the aggregate whose substrate is called so."""
        return next((row for row in self.resources if row.handle == handle), None)

    def stopped_s(self, begun: datetime, ended: datetime) -> float:
        """Return for how long of an interval nobody could act."""
        stopped_s = 0.0
        for each in sorted(self.stopped, key=lambda one: one.begun):
            stopped_s += each.shared_s(begun, ended)
            # What two of them share counts once.
            begun = max(begun, each.ended)
        return stopped_s

    def by_break_glass(self, name: str) -> list[datetime]:
        """Return when an object of that name was deleted by who may pass the hold."""
        return [
            request.at
            for request in self.requests
            if request.verb == "delete"
            and request.name == name
            and not request.was_refused
            and BREAK_GLASS in request.groups
        ]


BREAK_GLASS: Final = "plexsphere:break-glass"
RECONCILER: Final = "system:serviceaccount:plexsphere-system:provisioning-broker"
