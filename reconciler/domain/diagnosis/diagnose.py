"""Decides why a declared resource is not Ready.

Theory of operation: the facts are read from the top of a table, from what stops everything (the
XR cannot be read, is paused, is not reconciled by Crossplane) to what stops one node (its
record's conditions, then the lowest of its substrate's objects that complains). The first row
that applies gives the answer; the last one always does, so that every set of facts has one. What
the caller may not read is listed and never guessed at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from function.contract import names
from reconciler.domain.diagnosis.cause import Cause
from reconciler.domain.diagnosis.facts import DiagnosisFacts, Presence
from reconciler.domain.diagnosis.remedies import Actor, Command
from reconciler.domain.diagnosis.rows import ROWS

RETRIED_KIND: Final = "ProvisionedResource"
"""The kind that has `spec.retry`; of others, `Enrol` knows no such field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """Why a resource is not Ready.

    Attributes:
        ready: Nothing is wrong.
        found: There is something by that name, or was until its deletion ends.
        reason: A reason of the broker, or of whoever wrote the culprit's condition.
        culprit: The object that says so, `Kind/name`.
        explanation: What it says, in its own words.
        since: When it began to say so (RFC 3339); empty when unknown.
        actor: Who has to act.
        command: The next command; empty when there is nothing to type.
        runbook: Page and entry below `docs/runbooks`; empty when there is none.
        unreadable: Objects that the caller may not read.
    """

    ready: bool = False
    found: bool = True
    reason: str
    culprit: str
    explanation: str
    since: str = ""
    actor: Actor
    command: str = ""
    runbook: str = ""
    unreadable: tuple[str, ...] = ()


def diagnose(facts: DiagnosisFacts) -> Diagnosis:
    """Return why a resource is not Ready. Total: every set of facts has an answer."""
    cause = next(found for found in (row(facts) for row in ROWS) if found is not None)
    words = {
        "namespace": facts.namespace,
        "resource": facts.xr.resource,
        "xr": facts.xr.target,
        "culprit": cause.culprit.target,
        "retry": facts.retry + 1,
    }
    return Diagnosis(
        ready=cause.ready,
        found=cause.found,
        reason=cause.reason,
        culprit=cause.culprit.title,
        explanation=cause.explanation,
        since=cause.since,
        actor=cause.remedy.actor,
        command=_command(facts, cause).value.format(**words),
        runbook=cause.remedy.runbook,
        unreadable=tuple(_unreadable(facts)),
    )


def _command(facts: DiagnosisFacts, cause: Cause) -> Command:
    """Return what may be typed: a retry where there is one, and no deletion but of a record."""
    command = cause.remedy.command
    retries = facts.xr.kind == RETRIED_KIND
    deletes = cause.culprit.kind == names.RECORD_KIND
    if (command is Command.RETRY and not retries) or (
        command is Command.DELETE_RECORD and not deletes
    ):
        return Command.DESCRIBE
    return command


def _unreadable(facts: DiagnosisFacts) -> Iterator[str]:
    if facts.records is Presence.FORBIDDEN:
        yield "ProvisioningRecords"
    below = (each for node in facts.nodes for each in (node.substrate, *node.composed))
    for each in (facts.xr, *below):
        if each is not None and each.presence in (Presence.FORBIDDEN, Presence.UNREADABLE):
            yield each.title
