"""The table of replacement: a machine whose node is overdue is kept or replaced.

Theory of operation: what a reconcile knows is a `Situation` of closed sets; `decide` is a table
read from the top whose first row that fits gives the step, so it is total. A replacement
begins by being remembered, so that every crash finds it again; then the tokens end, the
node leaves the mesh if there is one, and only then is the substrate let go. From there on
nothing takes it back; before, a node that came or reported wins, and a policy that
changes before a token ended. Laws: nothing is released while a node is in the mesh or a token
could bring one; nothing begins or goes on while somebody else may act on the substrate, or
what is seen is not believed, nor begins unless a node could get through all the time; no
attempt beyond the last.

The decision. Pure. Source: issue 5, "Registration timeout"; docs/decisions/0014.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum, unique
from typing import Final

from function.contract.registration import Registration, RegistrationPolicy
from function.contract.strategy import Phase
from reconciler.domain.aggregate.resource import ProvisionedResource

WAITED_FOR: Final = frozenset({Phase.ENROLLING, Phase.READY})
"""The phases in which a machine is ready, so that its node should come, or report."""


@unique
class NodePresence(StrEnum):
    """The presence of the resource's node in the mesh."""

    NONE = "none"
    SILENT = "silent"
    """It registered and never made an authenticated call."""

    REPORTED = "reported"


@unique
class ReplacementStep(StrEnum):
    """The next step of a replacement."""

    NOTHING = "nothing"
    STALL = "stall"
    """Tell people; the node stays welcome."""

    EXHAUSTED = "exhausted"
    """Tell people that the attempts are used up; the node stays welcome."""

    BEGIN = "begin"
    """Remember that it is under way."""

    ABANDON = "abandon"
    """Forget it: the node won."""

    WAIT = "wait"
    """Somebody else may act, or has to."""

    REVOKE = "revoke"
    DEREGISTER = "deregister"
    LET_GO = "let-go"
    """Remember that the substrate is released, and count the attempt."""

    RELEASE = "release"
    """Let Crossplane drop it."""

    AWAIT_FUNCTION = "await-function"
    """It is gone; a run in flight may still make one."""

    FINISH = "finish"
    """It is gone and stays away: start over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacementFacts:
    """The facts that decide, as closed sets.

    Attributes:
        under_way: A replacement was begun and is not finished.
        node: What the mesh says; read after the tokens.
        overdue: The time is up: for a node to come, or for one that came to report.
        fair: All that time one could get through to us, as far as we know.
        departed: Its node came and left the mesh, and no replacement took it out.
        recreate: The accepted policy.
        left: An attempt is left.
        free: It converges: an XR alone composes it and has injected a bootstrap, and no
            refusal, pause, freeze or deletion prevents recreating it.
        spent: No token can bring a node any more.
        let_go: This replacement has let the substrate go.
        there: The substrate exists.
        acknowledged: The function has seen that it must compose none.
    """

    under_way: bool
    node: NodePresence
    overdue: bool
    fair: bool
    departed: bool
    recreate: bool
    left: bool
    free: bool
    spent: bool
    let_go: bool
    there: bool
    acknowledged: bool


_Row = tuple[ReplacementStep, Callable[[ReplacementFacts], bool]]

_RESTING: Final[tuple[_Row, ...]] = (
    (ReplacementStep.NOTHING, lambda s: s.node is NodePresence.REPORTED or not s.overdue),
    (ReplacementStep.STALL, lambda s: not s.recreate),
    (ReplacementStep.EXHAUSTED, lambda s: not s.left),
    (ReplacementStep.STALL, lambda s: not s.free or not s.there or not s.fair or s.departed),
    (ReplacementStep.BEGIN, lambda s: True),  # noqa: ARG005 - the row that always fits
)

_UNDER_WAY: Final[tuple[_Row, ...]] = (
    # Tokens are spent by then, so that none can be there; if one is, nothing is done to it.
    (ReplacementStep.WAIT, lambda s: s.let_go and s.node is not NodePresence.NONE),
    (
        ReplacementStep.ABANDON,
        lambda s: not s.let_go and (s.node is NodePresence.REPORTED or s.departed),
    ),
    (
        ReplacementStep.ABANDON,
        lambda s: s.node is NodePresence.SILENT and not (s.overdue and s.fair),
    ),
    (ReplacementStep.ABANDON, lambda s: not s.recreate and not s.spent and not s.let_go),
    (ReplacementStep.WAIT, lambda s: not s.free),
    (ReplacementStep.REVOKE, lambda s: not s.spent),
    (ReplacementStep.DEREGISTER, lambda s: s.node is NodePresence.SILENT),
    (ReplacementStep.LET_GO, lambda s: not s.let_go),
    (ReplacementStep.RELEASE, lambda s: s.there),
    (ReplacementStep.AWAIT_FUNCTION, lambda s: not s.acknowledged),
    (ReplacementStep.FINISH, lambda s: True),  # noqa: ARG005 - the row that always fits
)


def decide(situation: ReplacementFacts) -> ReplacementStep:
    """Return what to do. Total: every situation has a step."""
    table = _UNDER_WAY if situation.under_way else _RESTING
    return next(step for step, fits in table if fits(situation))


def policy(resource: ProvisionedResource) -> Registration:
    """Return what was accepted; without a word of it, Keep."""
    return resource.accepted.registration or Registration()


def wanted(resource: ProvisionedResource) -> bool:
    """Tell whether the accepted policy recreates a machine."""
    return policy(resource).policy is RegistrationPolicy.RECREATE


def waited(
    resource: ProvisionedResource, *, node_age: timedelta | None, now: datetime
) -> timedelta | None:
    """Return how long a node has been due, or one that came has been silent.

    Args:
        resource: The aggregate.
        node_age: How long ago its node registered, by the clock that dates registrations;
            None while there is none.
        now: The time, by the clock that dates the aggregate's phases.

    Returns:
        None where no node, or no report of one, is waited for.
    """
    if resource.phase not in WAITED_FOR or not resource.node_expected:
        return None
    if node_age is not None:
        return node_age
    if resource.phase is Phase.READY or resource.enrolling_since is None:
        return None
    return now - resource.enrolling_since


def patience(resource: ProvisionedResource, otherwise: timedelta) -> timedelta:
    """Return how long the accepted policy waits; without a word of it, `otherwise`."""
    return policy(resource).length or otherwise
