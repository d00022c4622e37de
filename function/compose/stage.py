"""The decision table: which stage a node is in, and what is composed in it.

Theory of operation: a request is reduced to a `Situation` of closed sets; `stage_of` is a
table read from the top, whose first row that fits gives the stage, so it is total; a
`Plan` per stage says what happens to the substrate. Three laws hold in every situation:
a substrate in front of us is dropped only on `Absent`; none is created for a record that
terminates or is Absent; none is created unless the record accepted the declaration. The
record itself goes only after it said that its substrate is dropped.

The decision. Source: design §2, "One actor deletes" and "The way of one node"; design §3.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Final


@unique
class RecordState(StrEnum):
    """The observed record."""

    NONE = "none"
    ALIVE = "alive"
    TERMINATING = "terminating"


@unique
class SubstrateLookup(StrEnum):
    """The way in which the substrate was found: composed by this XR, or looked up by name."""

    OBSERVED = "observed"
    FOUND = "found"
    VANISHING = "vanishing"
    MISSING = "missing"
    UNKNOWN = "unknown"


@unique
class TokenState(StrEnum):
    """The state of the bootstrap token of the current generation."""

    NOT_NEEDED = "not-needed"
    AT_HAND = "at-hand"
    ABSENT = "absent"


@unique
class Stage(StrEnum):
    """The stage of one node; tests and messages use the value."""

    PREVIEW = "preview"
    REFUSED = "refused"
    RECORD_ONLY = "record-only"
    KEEP = "keep"
    ABSENT = "absent"
    TERMINATING = "terminating"
    SUSTAIN = "sustain"
    SEEK = "seek"
    VANISHING = "vanishing"
    HELD = "held"
    WAIT_TOKEN = "wait-token"  # noqa: S105 - a stage's name
    CREATE = "create"
    WITHHELD = "withheld"
    DRAINING = "draining"
    DRAINED = "drained"


@unique
class SubstratePlan(StrEnum):
    """The way in which the substrate is composed."""

    NONE = "none"
    """Compose none: there is none, or it must go."""

    KEEP = "keep"
    """Compose the one in sight as it is; none in sight: none."""

    RENDER = "render"
    """Compose the one in sight, rendered again but for its bootstrap."""

    BIRTH = "birth"
    """Compose a new one with its bootstrap."""


PLANS: Final = {
    Stage.PREVIEW: SubstratePlan.BIRTH,
    Stage.REFUSED: SubstratePlan.NONE,
    Stage.RECORD_ONLY: SubstratePlan.KEEP,
    Stage.KEEP: SubstratePlan.KEEP,
    Stage.ABSENT: SubstratePlan.NONE,
    Stage.TERMINATING: SubstratePlan.KEEP,
    Stage.SUSTAIN: SubstratePlan.RENDER,
    Stage.SEEK: SubstratePlan.NONE,
    Stage.VANISHING: SubstratePlan.NONE,
    Stage.HELD: SubstratePlan.NONE,
    Stage.WAIT_TOKEN: SubstratePlan.NONE,
    Stage.CREATE: SubstratePlan.BIRTH,
    Stage.WITHHELD: SubstratePlan.NONE,
    Stage.DRAINING: SubstratePlan.KEEP,
    Stage.DRAINED: SubstratePlan.NONE,
}

UNRECORDED: Final = frozenset({Stage.REFUSED, Stage.DRAINED})
"""The stages in which no record is composed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFacts:
    """The facts that decide, as closed sets.

    Attributes:
        preview: The request asks for a preview.
        refused: The declaration cannot be resolved, or the record's status cannot be read.
        record: The observed record.
        accepted: The record has an accepted declaration, a name for the substrate, and asks
            for it.
        absent: The reconciler wants no substrate.
        sight: How the substrate is seen.
        held: The declaration as it stands is not accepted, or a substrate is feared lost.
        token: Whether the bootstrap can be injected.
        drain: The step that composed the resource stopped to, so it goes in order.
        acknowledged: The record says that this function has seen `Absent`.
    """

    preview: bool
    refused: bool
    record: RecordState
    accepted: bool
    absent: bool
    sight: SubstrateLookup
    held: bool
    token: TokenState
    drain: bool = False
    acknowledged: bool = False


_Row = tuple[Stage, Callable[[StageFacts], bool]]

_SITUATIONS_MAX: Final = 512
"""Situations that are remembered: of all that there can be, few are ever met."""

_SIGHTED: Final = frozenset({SubstrateLookup.OBSERVED, SubstrateLookup.FOUND})

_TABLE: Final[tuple[_Row, ...]] = (
    (Stage.REFUSED, lambda s: s.preview and s.refused),
    (Stage.PREVIEW, lambda s: s.preview),
    (
        Stage.KEEP,
        lambda s: (
            s.record is RecordState.NONE and s.refused and s.sight is SubstrateLookup.OBSERVED
        ),
    ),
    (Stage.REFUSED, lambda s: s.record is RecordState.NONE and s.refused),
    (Stage.RECORD_ONLY, lambda s: s.record is RecordState.NONE),
    (Stage.DRAINED, lambda s: s.drain and s.absent and s.acknowledged),
    (Stage.ABSENT, lambda s: s.absent),
    (Stage.TERMINATING, lambda s: s.record is RecordState.TERMINATING),
    (Stage.DRAINING, lambda s: s.drain),
    (Stage.KEEP, lambda s: s.refused),
    (Stage.RECORD_ONLY, lambda s: not s.accepted),
    (Stage.SUSTAIN, lambda s: s.sight in _SIGHTED),
    (Stage.SEEK, lambda s: s.sight is SubstrateLookup.UNKNOWN),
    (Stage.VANISHING, lambda s: s.sight is SubstrateLookup.VANISHING),
    (Stage.HELD, lambda s: s.held),
    (Stage.WAIT_TOKEN, lambda s: s.token is TokenState.ABSENT),
    (Stage.CREATE, lambda s: True),  # noqa: ARG005 - the row that always fits
)


@functools.lru_cache(maxsize=_SITUATIONS_MAX)
def stage_of(situation: StageFacts) -> Stage:
    """Return the stage of a situation.

    Total: every situation maps to a stage; `WITHHELD` is never among them, because only
    rendering can find that a bootstrap cannot be made.
    """
    return next(stage for stage, fits in _TABLE if fits(situation))
