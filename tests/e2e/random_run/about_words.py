"""Promises 5 to 9 of `docs/promises.md`: what is said and told, secrets, delays, and rest.

Each function is one of them and tells every breach that the evidence of a random run shows. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Final

from function.contract.conditions import Reason
from reconciler.domain.events.lifecycle import EventType
from tests.e2e.random_run.history import RECONCILER, History, Resource
from tests.simulation.promises import Breach

SAID_S: Final = 30.0
"""By then a new record says why it is not Ready, while somebody reconciles."""

PROMPT_S: Final = 30.0
"""How long a step of the reconciler's own may take, whatever the others do: on two cores, beside a
control plane of four processes and the machines."""

_REGISTERED: Final = "identity.NodeRegistered"
_DEREGISTERED: Final = "identity.NodeDeregistered"
_ISSUED: Final = "identity.BootstrapTokenIssued"
_REASONS: Final = frozenset(reason.value for reason in Reason)

Breaches = Iterator[Breach]


def told(history: History) -> Breaches:
    """5. Ready, or what is missing by name, in time."""
    for look in history.looks:
        waited_s = (look.begun - look.created_at).total_seconds()
        waited_s -= history.stopped_s(look.created_at, look.begun)
        if look.kind == "ProvisioningRecord" and waited_s > SAID_S:
            yield from _says(look.title, look.ready)
    for look in history.left:
        if look.kind != "ProvisioningRecord":
            continue
        yield from _says(look.title, look.ready)
        ended = look.ready[0] == "True" or (look.stalled[0] == "True" and look.stalled[1])
        if not ended:
            yield Breach(promise=5, text=f"{look.title} neither came nor stalled: {look.ready[1]}")
        xr = next((one for one in history.left if one.uid == look.owner), None)
        if xr is not None and look.ready[0] != "True" and xr.ready[0] == "True":
            yield Breach(promise=5, text=f"{xr.title} is Ready and {look.title} is not")
    records = {look.owner for look in history.left if look.kind == "ProvisioningRecord"}
    for look in history.left:
        ready = look.ready[0] == "True"
        if look.kind in {"ProvisionedResource", "Pool"} and not ready and look.uid not in records:
            yield Breach(promise=5, text=f"{look.title} is not Ready and has no record")


def _says(title: str, ready: tuple[str, str]) -> Breaches:
    status, reason = ready
    if status != "True" and reason not in _REASONS:
        yield Breach(promise=5, text=f"{title} is not Ready and says {reason!r}")


def in_order(history: History) -> Breaches:
    """6. One event per change, in order per node; the delivery is the relay's."""
    for one, times in Counter(event.id for event in history.events).items():
        if times > 1:
            yield Breach(promise=6, text=f"event {one} is told {times} times")
    by_aggregate: dict[str, list[tuple[int, datetime, str]]] = {}
    for event in history.events:
        by_aggregate.setdefault(event.aggregate, []).append((event.number, event.at, event.type))
    for aggregate, events in by_aggregate.items():
        events.sort()
        name = history.handle(aggregate)
        if [number for number, _, _ in events] != list(range(1, len(events) + 1)):
            yield Breach(promise=6, text=f"{name} has events {[event[0] for event in events]}")
        if any(first[1] > second[1] for first, second in pairwise(events)):
            yield Breach(promise=6, text=f"{name} tells later changes first")
    yield from _whole(
        history, {name: [one[2] for one in every] for name, every in by_aggregate.items()}
    )


def _whole(history: History, told: Mapping[str, Sequence[str]]) -> Breaches:
    """Tell which changes have no event, or one too many."""
    for row in history.resources:
        yield from _life(row, told.get(row.id, []))
    for node in history.nodes:
        wanted = [_REGISTERED, *([_DEREGISTERED] if node.deregistered_at else [])]
        if told.get(node.id, []) != wanted:
            yield Breach(promise=6, text=f"node {node.id} tells {told.get(node.id, [])}")
    for token in history.tokens:
        if told.get(token.id, []).count(_ISSUED) != 1:
            yield Breach(promise=6, text=f"token {token.id} tells {told.get(token.id, [])}")


def _life(row: Resource, told: Sequence[str]) -> Breaches:
    """Tell what an aggregate's own events lack."""
    deleted = row.status == "Deleted"
    asked = row.deletion_requested_at is not None
    wrong = told[:1] != [EventType.REQUESTED]
    wrong |= told.count(EventType.REQUESTED) != 1
    wrong |= told.count(EventType.DELETING) != int(asked)
    wrong |= told.count(EventType.DELETED) != int(deleted)
    wrong |= deleted and told[-1:] != [EventType.DELETED]
    wrong |= row.status == "Ready" and EventType.READY not in told
    wrong |= row.status == "Failed" and EventType.FAILED not in told
    if wrong:
        shown = [kind.removeprefix("broker.ProvisionedResource") for kind in told]
        yield Breach(promise=6, text=f"{row.handle} is {row.status} and tells {shown}")


def unseen(history: History) -> Breaches:
    """7. No secret anywhere it is not needed."""
    for where in history.leaks:
        yield Breach(promise=7, text=f"a token is in {where}")


def undelayed(history: History) -> Breaches:
    """8. One bad object delays nobody: each step of the reconciler's own is prompt for each."""
    for row in history.resources:
        born = [
            request.at
            for request in history.requests
            if request.resource == "provisioningrecords"
            and request.name == row.record
            and request.code == 201
            and request.at <= row.created_at
        ]
        # A record that nobody owns waits for one to come (docs/promises.md, 2), and not for us.
        born += [
            look.ended
            for look in history.looks
            if (look.namespace, look.name) == (row.namespace, row.record)
            and look.ready[1] == Reason.NO_CONTROLLER
            and look.ended <= row.created_at
        ]
        if born:
            yield from _prompt(history, row, max(born), row.created_at, "was accepted")
        asked = row.deletion_requested_at
        live = [
            node
            for node in history.nodes
            if node.resource == row.id and asked is not None and node.is_live(asked)
        ]
        for node in live:
            if asked is not None:
                out = node.deregistered_at or history.quiet.ended
                yield from _prompt(history, row, asked, out, "left the mesh")


def _prompt(
    history: History, row: Resource, since: datetime, until: datetime, what: str
) -> Breaches:
    took_s = (until - since).total_seconds() - history.stopped_s(since, until)
    if took_s > PROMPT_S:
        yield Breach(promise=8, text=f"{row.handle} {what} after {took_s:.1f} s")


def at_rest(history: History) -> Breaches:
    """9. It comes to rest, and nothing is left of what was deleted."""
    writes = Counter(
        f"{request.verb} {request.resource} {request.name}"
        for request in history.requests
        if request.succeeded
        and request.user == RECONCILER
        and history.quiet.begun <= request.at <= history.quiet.ended
    )
    for write, times in writes.items():
        yield Breach(promise=9, text=f"the reconciler's {write} {times} times at rest")
    for title in history.restless:
        yield Breach(promise=9, text=f"{title} changed at rest")
    for event in history.events:
        if history.quiet.begun <= event.at <= history.quiet.ended:
            yield Breach(promise=9, text=f"{event.type} was told at rest")
    for row in history.resources:
        asked = row.deletion_requested_at is not None
        if row.status != "Deleted" and (asked or _is_parted(history, row)):
            yield Breach(promise=9, text=f"{row.handle} was to go and is {row.status}")
    ended = [row for row in history.resources if _is_parted(history, row)]
    names = {name for row in ended for name in (row.record, row.handle)}
    for look in history.left:
        shared = {f"{look.namespace}/{each}" for each in (look.name, look.handle)}
        # What orphaning leaves beside the nodes is whose the XR was, once nothing holds it.
        if look.kind == "ConfigMap" and shared & history.orphaned and not look.held:
            continue
        if shared & history.parted or {look.name, look.handle} & names:
            yield Breach(promise=9, text=f"{look.title} is left of what was deleted")


def _is_parted(history: History, row: Resource) -> bool:
    return f"{row.namespace}/{row.owner}" in history.parted
