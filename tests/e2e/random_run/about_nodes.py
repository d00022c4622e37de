"""Promises 1 to 4 of `docs/promises.md`: tokens, substrates, the order of their ends, and the end.

Each function is one of them and tells every breach that the evidence of a random run shows. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from typing import Final

from reconciler.domain.events.lifecycle import EventType
from tests.e2e.random_run.history import BREAK_GLASS, CloudFact, History, Request, Resource
from tests.simulation.promises import Breach

Breaches = Iterator[Breach]

_SUBSTRATES: Final = frozenset({"xgenericvms", "machines"})


def one_enrolment(history: History) -> Breaches:
    """1. One node, one live token, one enrolment."""
    for token, times in Counter(node.token for node in history.nodes).items():
        if times > 1:
            yield Breach(promise=1, text=f"token {token} enrolled {times} nodes")
    enrolled = {node.token for node in history.nodes}
    consumed = {token.id for token in history.tokens if token.consumed_at is not None}
    for token in sorted(enrolled ^ consumed):
        yield Breach(promise=1, text=f"token {token} is spent without a node, or the other way")
    for resource in history.resources:
        nodes = [node for node in history.nodes if node.resource == resource.id]
        for first, second in pairwise(sorted(nodes, key=lambda node: node.registered_at)):
            if first.is_live(second.registered_at):
                yield Breach(promise=1, text=f"{resource.handle} has two live nodes")
        tokens = [token for token in history.tokens if token.resource == resource.id]
        for older, newer in pairwise(sorted(tokens, key=lambda token: token.issued_at)):
            if older.is_live(newer.issued_at):
                text = f"{resource.handle} has two live tokens, {older.id} and {newer.id}"
                yield Breach(promise=1, text=text)
    yield from _own_tokens(history)


def _own_tokens(history: History) -> Breaches:
    """Every machine has a token of its own resource, and no two machines have one."""
    by_digest = {token.digest: token for token in history.tokens}
    for boot in history.boots:
        token = by_digest.get(boot.digest)
        if token is None:
            yield Breach(promise=1, text=f"{boot.name} has a token that was never issued")
        elif history.handle(token.resource) != boot.name:
            yield Breach(promise=1, text=f"{boot.name} has the token of another")
    for digest, times in Counter(boot.digest for boot in history.boots).items():
        name = next(boot.name for boot in history.boots if boot.digest == digest)
        # What break-glass takes a run in flight may make again, with the same document; no node
        # comes of it (docs/decisions/0018).
        if times > 1 and not history.by_break_glass(name):
            yield Breach(promise=1, text=f"{times} machines {name} have one token")
    for node in history.nodes:
        handle = history.handle(node.resource)
        digests = {boot.digest for boot in history.boots if boot.name == handle}
        given = {token.digest for token in history.tokens if token.id == node.token}
        if handle not in history.by_hand and not digests & given:
            yield Breach(promise=1, text=f"a node of {handle} came without a machine")


def owned(history: History) -> Breaches:
    """2. No substrate without a record, no record without an owner."""
    made = [(fact.at, fact.name, "machine") for fact in history.cloud if fact.what == "created"]
    made += [
        (request.at, request.name, "substrate")
        for request in history.requests
        if request.resource == "xgenericvms" and request.code == 201
    ]
    for at, name, what in made:
        resource = history.of(name)
        if resource is None or resource.created_at > at:
            yield Breach(promise=2, text=f"{what} {name} was made and nothing protected it")
    known = {look.handle for look in history.left if look.kind == "ProvisioningRecord"}
    owners = {look.uid for look in history.left}
    for look in history.left:
        if look.kind in {"XGenericVM", "Machine"} and look.name not in known:
            yield Breach(promise=2, text=f"{look.title} has no record at the end")
        if look.kind == "ProvisioningRecord" and look.owner not in owners:
            yield Breach(promise=2, text=f"{look.title} has no owner at the end")


def node_first(history: History) -> Breaches:
    """3. The node leaves before its substrate."""
    for fact in history.cloud:
        if fact.what == "delete-requested" and not _by_break_glass(history, fact):
            yield from _in_the_mesh(history, fact.name, fact.at, "machine")
            yield from _unasked(history, fact)
    for request in history.requests:
        asked = request.verb == "delete" and request.resource in _SUBSTRATES
        if asked and not request.was_refused and not _followed_break_glass(history, request):
            yield from _in_the_mesh(history, request.name, request.at, request.resource)
    for look in history.looks:
        if look.kind in {"XGenericVM", "Machine"} and not look.held:
            resource = history.of(look.name)
            if resource is not None and _lives_throughout(
                history, resource, look.begun, look.ended
            ):
                yield Breach(promise=3, text=f"{look.title} lives in the mesh and is not held")
    for attempt in history.tries:
        if attempt.held and attempt.changed:
            text = f"{attempt.subject} is held, and who is no administrator got {attempt.what}"
            yield Breach(promise=3, text=text)


def _by_break_glass(history: History, fact: CloudFact) -> bool:
    """Tell whether break-glass asked for this machine's end, and not for an earlier one's."""
    since = min(one.at for one in history.cloud if one.uid == fact.uid)
    return any(since < at < fact.at for at in history.by_break_glass(fact.name))


def _followed_break_glass(history: History, request: Request) -> bool:
    """Tell whether a deletion is break-glass's, or that of what it left of the same object."""
    if BREAK_GLASS in request.groups:
        return True
    # By the API server's word: of a machine that the cloud refused, the cloud knows no making.
    made = [
        one.at
        for one in history.requests
        if (one.resource, one.name, one.code) == (request.resource, request.name, 201)
        and one.at < request.at
    ]
    since = max(made, default=request.at)
    return any(since < at < request.at for at in history.by_break_glass(request.name))


def _unasked(history: History, fact: CloudFact) -> Breaches:
    """Tell of a machine that goes although nobody deletes its resource, or has it made anew."""
    resource = history.of(fact.name)
    if resource is None:
        return
    asked = [audit.at for audit in history.audits if audit.resource == resource.id]
    asked += [resource.deletion_requested_at] if resource.deletion_requested_at else []
    if not any(at < fact.at for at in asked):
        yield Breach(promise=3, text=f"machine {fact.name} was to go and nobody asked for it")


def _in_the_mesh(history: History, name: str, at: datetime, what: str) -> Breaches:
    resource = history.of(name)
    if resource is None:
        return
    if any(node.resource == resource.id and node.is_live(at) for node in history.nodes):
        yield Breach(promise=3, text=f"{what} {name} was to go while its node was in the mesh")
    if any(token.resource == resource.id and token.is_live(at) for token in history.tokens):
        yield Breach(promise=3, text=f"{what} {name} was to go while its token was good")


def _lives_throughout(
    history: History, resource: Resource, begun: datetime, ended: datetime
) -> bool:
    return any(
        node.resource == resource.id and node.is_live(begun) and node.is_live(ended)
        for node in history.nodes
    )


def gone_means_gone(history: History) -> Breaches:
    """4. `Deleted` means that it is gone."""
    for event in history.events:
        if event.type != EventType.DELETED:
            continue
        name = history.handle(event.aggregate)
        facts = [fact for fact in history.cloud if fact.name == name]
        late = [fact for fact in facts if fact.at > event.at]
        there = {fact.uid for fact in facts if fact.what == "created"}
        there -= {fact.uid for fact in facts if fact.what == "deleted"}
        if late or there:
            told = sorted({fact.what for fact in late})
            yield Breach(promise=4, text=f"{name} is Deleted, then {told}, left {sorted(there)}")
    over = {row.handle for row in history.resources if row.status == "Deleted"}
    names = {row.record for row in history.resources if row.status != "Deleted"}
    for look in history.left:
        secret = look.kind == "Secret" and look.handle not in names
        if look.name in over or secret:
            yield Breach(promise=4, text=f"{look.title} is left of what is Deleted")
    for row in history.resources:
        alive = sum(
            node.resource == row.id and node.deregistered_at is None for node in history.nodes
        )
        alive += sum(
            token.resource == row.id and token.is_live(history.quiet.ended)
            for token in history.tokens
        )
        if row.status == "Deleted" and alive:
            yield Breach(promise=4, text=f"{row.handle} is Deleted and has a live node or token")
