"""Tells a random run in order, for whoever has to find out what happened in it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from tests.e2e.random_run.history import BREAK_GLASS, History

Line = tuple[datetime, str, str]
"""When, of what, and what."""


def timeline(history: History) -> list[str]:
    """Return all that happened, one line each."""
    lines = sorted([*_mesh(history), *_cloud(history), *_api(history)])
    return [f"{at:%H:%M:%S.%f} {subject} {what}" for at, subject, what in lines]


def _mesh(history: History) -> Iterator[Line]:
    for node in history.nodes:
        yield node.registered_at, history.handle(node.resource), f"node {node.id} registered"
        if node.deregistered_at is not None:
            yield node.deregistered_at, history.handle(node.resource), f"node {node.id} out"
    for token in history.tokens:
        handle = history.handle(token.resource)
        yield token.issued_at, handle, f"token g{token.generation} issued"
        if token.revoked_at is not None:
            yield token.revoked_at, handle, f"token g{token.generation} revoked"
    for event in history.events:
        yield event.at, history.handle(event.aggregate), f"event {event.type}"
    for audit in history.audits:
        yield audit.at, history.handle(audit.resource), f"audited: {audit.action}"
    for row in history.resources:
        if row.deletion_requested_at is not None:
            yield row.deletion_requested_at, row.handle, "asked to go"
        yield row.created_at, row.handle, f"accepted for {row.namespace}/{row.owner}"
    for each in history.stopped:
        yield each.begun, "reconciler", "stopped"
        yield each.ended, "reconciler", "acts again"


def _cloud(history: History) -> Iterator[Line]:
    for fact in history.cloud:
        yield fact.at, fact.name, f"machine {fact.uid} {fact.what}"


def _api(history: History) -> Iterator[Line]:
    for request in history.requests:
        if request.verb in {"delete", "create"} or request.code == 201:
            who = request.user.rpartition(":")[2]
            who += " (break-glass)" if BREAK_GLASS in request.groups else ""
            what = f"{who}: {request.verb} {request.resource} -> {request.code}"
            yield request.at, request.name, what
