"""One call of the function as plain values: what goes in and what comes out.

Frozen values. `raw` fields may hold a token inside user data, so they never show in a repr.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum, unique
from typing import Any, Protocol

from function.contract.conditions import DesiredCondition
from function.model.objects import Raw


@unique
class Ttl(Enum):
    """The time to live of a response, after which unwatched state may have changed.

    Attributes:
        STEADY: Whatever changes is watched.
        REFUSED: An operator must act, most likely on something that is not watched.
        CUT_OFF: The XR's breaker is open: Crossplane passes a change on in half a minute at
            most, and never those between (reference, crossplane §2.10).
        WAITING: What is to come is not watched.
    """

    STEADY = timedelta(minutes=10)
    REFUSED = timedelta(minutes=1)
    CUT_OFF = timedelta(seconds=30)
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
        resources: Observed composed resources by name.
        whole: The same with their `managedFields`, which are large and seldom needed.
        desired: What earlier steps composed, by name.
        held: Names of the observed resources that carry the hold.
        required: Required resources by requirement name; None: looked for and absent; a
            name that is missing was not looked for yet.
        step: The step's input object.
        preview: The request's context asks for a preview.
        recorded: Names of the observed resources that are records.
        told: The observed composite's status, of which the conditions are read.
        cache: What settled nodes composed in earlier calls, or None.
    """

    xr: Raw = field(repr=False)
    resources: Mapping[str, Raw] = field(repr=False)
    required: Mapping[str, Raw | None] = field(repr=False)
    step: Raw = field(repr=False)
    preview: bool
    whole: Mapping[str, Raw] = field(default_factory=dict, repr=False)
    desired: Mapping[str, Raw] = field(default_factory=dict, repr=False)
    held: frozenset[str] = frozenset()
    recorded: frozenset[str] = frozenset()
    told: Raw = field(default_factory=dict, repr=False)
    cache: NodeCache | None = field(default=None, repr=False)

    def lookup(self, requirement: str) -> Lookup:
        """Return the outcome of a requirement."""
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
class Composed:
    """One object to compose.

    Attributes:
        ready: Whether it is ready; None: for other steps to say.
    """

    manifest: dict[str, Any] = field(repr=False)
    ready: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one composition.

    Attributes:
        record: The record, or None to compose none.
        substrate: The substrate, or None to compose none.
        ready: Whether the composite is ready; always given.
        open: Whether nothing of ours holds the composite's readiness back.
        verdicts: The conditions, in one order.
        status: Fields of the XR's status.
        ttl: How long the answer holds.
        requirements: Every object that is needed, by requirement name.
        unrendered: The substrate in sight stays as it is, for it could not be rendered.
    """

    record: Composed | None
    substrate: Composed | None
    ready: bool
    open: bool
    verdicts: tuple[DesiredCondition, ...]
    status: dict[str, Any]
    ttl: Ttl
    requirements: Mapping[str, Requirement]
    unrendered: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The result of one call, over all its compositions.

    Attributes:
        resources: What to compose in place of what earlier steps said; None: nothing.
        ready: False: the composite is not; True: as its resources are.
        verdicts: The composite's conditions.
        status: Fields of the XR's status.
        ttl: How long the answer holds.
        requirements: Every object that is needed, by requirement name.
        notices: What its people should hear once, beside the conditions.
    """

    resources: Mapping[str, Composed | None]
    ready: bool
    verdicts: tuple[DesiredCondition, ...]
    status: dict[str, Any]
    ttl: Ttl
    requirements: Mapping[str, Requirement]
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A warning that becomes an event on the XR."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposedNode:
    """The composed objects and the outcome of one node, declared or enrolled.

    Attributes:
        outcome: What its composition said.
        resources: What to compose, by name; None: nothing.
        holds: Whether it holds its siblings.
        settled: Whether it may be kept for later calls.
    """

    outcome: Outcome
    resources: Mapping[str, Composed | None]
    holds: bool
    settled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSlice:
    """The parts of a request that the composition of one node reads.

    Attributes:
        said: Digests and texts of what it reads beside the objects that are named.
        given: Names of the resources that earlier steps composed.
        observed: Names of the observed resources.
    """

    said: tuple[bytes, ...]
    given: tuple[str, ...]
    observed: tuple[str, ...]


class NodeCache(Protocol):
    """The objects that settled nodes composed in earlier calls."""

    def composed(
        self, part: NodeSlice, compose: Callable[[], ComposedNode | None]
    ) -> ComposedNode | None:
        """Return what is kept for a slice, else what is composed now."""
