"""Gathers the evidence of a random run: Postgres, the demo cloud, the audit log, and what is left.

Making values of what others wrote down, of the run's own namespaces alone, because other
tests live on the same stack.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, LiteralString

import asyncpg

from dev.stack import Stack
from function.contract import names
from tests.e2e import canaries
from tests.e2e.enrol_world import POOL_API
from tests.e2e.random_run.history import (
    Audit,
    CloudFact,
    Event,
    History,
    Interval,
    Look,
    Node,
    Request,
    Resource,
    Token,
)
from tests.e2e.random_run.people import People
from tests.e2e.random_run.witness import KINDS, Witness, looked
from tests.e2e.world import API, Object
from tests.integration.replicas.writes import QUESTIONS

_LEFT: Final = {
    **KINDS,
    "ProvisionedResource": f"/apis/{API}/namespaces/{{}}/provisionedresources",
    "Pool": f"/apis/{POOL_API}/namespaces/{{}}/pools",
    "Secret": "/api/v1/namespaces/{}/secrets",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
}


@dataclass
class Evidence:
    """What is there to be judged by."""

    stack: Stack
    people: People
    witness: Witness
    namespaces: Sequence[str]

    def gathered(self, quiet: Interval, outages: Sequence[Interval]) -> History:
        """Read everything."""
        log = self.stack.plane.audit_log
        assert log is not None
        rows = _stored(self.stack.postgres.dsn, self.namespaces)
        left = [look for look, _ in self._ours()]
        return History(
            resources=rows.resources,
            nodes=rows.nodes,
            tokens=rows.tokens,
            audits=rows.audits,
            events=rows.events,
            cloud=_cloud(self.stack.cloud_root, self.namespaces),
            boots=tuple(self.witness.boots.values()),
            requests=_requests(log, self.namespaces),
            tries=tuple(self.people.thief.tries),
            looks=tuple(self.witness.looks),
            left=left,
            leaks=self._leaks(rows.tokens, {one.handle for one in left}),
            stopped=(*outages, *self.witness.frozen),
            quiet=quiet,
            by_hand=frozenset(self.people.by_hand),
        )

    def versions(self) -> set[tuple[str, str]]:
        """Return what of ours is there just now, with its version."""
        return {(look.title, item["metadata"]["resourceVersion"]) for look, item in self._ours()}

    def _ours(self) -> Iterator[tuple[Look, Object]]:
        for namespace in self.namespaces:
            for kind, path in _LEFT.items():
                begun = datetime.now(UTC)
                items = self.people.git.get(path.format(namespace)).body.get("items", [])
                when = Interval(begun=begun, ended=datetime.now(UTC))
                for item in items:
                    owner = _owner(kind, item)
                    if owner is not None:
                        look = looked(kind, item, when)
                        yield dataclasses.replace(look, handle=owner or look.handle), item

    def _leaks(self, tokens: Sequence[Token], alive: set[str]) -> list[str]:
        """Look for the texts of tokens; name the places where none is due."""
        texts = {hashlib.sha256(text.encode()).hexdigest(): text for text in self.witness.texts}
        secrets = {
            token.id: texts[token.digest].encode() for token in tokens if token.digest in texts
        }
        places = canaries.everywhere(self.stack)
        for console in self.stack.cloud_root.glob("*/*.log"):
            places[f"log {console.parent.name}"] = console.read_text(errors="replace")
        now = datetime.now(UTC)
        live = {token.id for token in tokens if token.is_live(now)}
        return sorted(
            f"{place}: token {token}"
            for token, place in canaries.found_in(places, secrets)
            if not (place.startswith(canaries.DELIVERY) and token in live)
            and not (place.startswith(canaries.DOCUMENT) and place.rpartition("/")[2] in alive)
        )


def _owner(kind: str, item: Object) -> str | None:
    """Return whose a delivered or shared object is; None for one that is none of ours."""
    labels = item["metadata"].get("labels") or {}
    if kind == "Secret":
        ours = item.get("type") == names.TOKEN_SECRET_TYPE
        return str(labels[names.LABEL_RECORD]) if ours else None
    if kind == "ConfigMap":
        return labels.get(names.CROSSPLANE_COMPOSITE)
    return ""


_RESOURCES: Final[LiteralString] = """
SELECT id::text, xr_name AS handle, namespace, owner_name AS owner, record_name AS record,
       status, created_at, deletion_requested_at
FROM plexsphere.provisioned_resources WHERE namespace = ANY($1) ORDER BY created_at
"""
_NODES: Final[LiteralString] = """
SELECT node.id::text, node.provisioned_resource_id::text AS resource,
       node.bootstrap_token_id::text AS token, node.registered_at, node.deregistered_at
FROM plexsphere.nodes AS node
JOIN plexsphere.provisioned_resources AS resource ON resource.id = node.provisioned_resource_id
WHERE resource.namespace = ANY($1) ORDER BY node.registered_at
"""
_TOKENS: Final[LiteralString] = """
SELECT token.id::text, token.provisioned_resource_id::text AS resource, token.generation,
       encode(token.token_hash, 'hex') AS digest, token.issued_at, token.expires_at,
       token.consumed_at, token.revoked_at
FROM plexsphere.bootstrap_tokens AS token
JOIN plexsphere.provisioned_resources AS resource ON resource.id = token.provisioned_resource_id
WHERE resource.namespace = ANY($1) ORDER BY token.issued_at
"""
_EVENTS: Final[LiteralString] = """
SELECT id::text, aggregate_id::text AS aggregate, aggregate_sequence AS number,
       event_type AS type, occurred_at AS at
FROM plexsphere.outbox_events WHERE aggregate_id::text = ANY($1) ORDER BY sequence
"""
_AUDITS: Final[LiteralString] = """
SELECT at, provisioned_resource_id::text AS resource, action
FROM plexsphere.broker_audit WHERE namespace = ANY($1) ORDER BY at
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """What Postgres has of a run."""

    resources: tuple[Resource, ...]
    nodes: tuple[Node, ...]
    tokens: tuple[Token, ...]
    audits: tuple[Audit, ...]
    events: tuple[Event, ...]


def _stored(dsn: str, namespaces: Collection[str]) -> _Rows:
    """Read the rows of some namespaces."""
    return asyncio.run(_rows(dsn, namespaces))


async def _rows(dsn: str, namespaces: Collection[str]) -> _Rows:
    connection = await asyncpg.connect(dsn)
    try:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            resources, nodes, tokens, audits = [
                await connection.fetch(query, list(namespaces))
                for query in (_RESOURCES, _NODES, _TOKENS, _AUDITS)
            ]
            known = [row["id"] for found in (resources, nodes, tokens) for row in found]
            events = await connection.fetch(_EVENTS, known)
    finally:
        await connection.close()
    return _Rows(
        resources=tuple(Resource(**dict(row)) for row in resources),
        nodes=tuple(Node(**dict(row)) for row in nodes),
        tokens=tuple(Token(**dict(row)) for row in tokens),
        audits=tuple(Audit(**dict(row)) for row in audits),
        events=tuple(Event(**dict(row)) for row in events),
    )


def _cloud(root: Path, namespaces: Collection[str]) -> list[CloudFact]:
    """Read what the demo cloud did in some namespaces."""
    return [
        CloudFact(
            at=datetime.fromisoformat(entry["at"]),
            what=entry["fact"],
            name=entry["name"],
            uid=entry["uid"],
        )
        for entry in _lines(root / "facts.jsonl")
        if entry["namespace"] in namespaces
    ]


def _requests(log: Path, namespaces: Collection[str]) -> list[Request]:
    """Read every write in some namespaces, refused ones too."""
    return [
        _request(entry)
        for entry in _lines(log, only=namespaces)
        if (entry.get("objectRef") or {}).get("namespace") in namespaces
        and entry["objectRef"].get("apiGroup") not in QUESTIONS
    ]


def _request(entry: dict[str, Any]) -> Request:
    target = entry["objectRef"]
    meant = entry.get("impersonatedUser") or {}
    parts = (target["resource"], target.get("subresource"))
    return Request(
        at=datetime.fromisoformat(entry["requestReceivedTimestamp"]),
        verb=entry["verb"],
        resource="/".join(part for part in parts if part),
        name=target.get("name", ""),
        code=(entry.get("responseStatus") or {}).get("code", 0),
        user=(meant or entry["user"])["username"],
        groups=frozenset(meant.get("groups") or ()),
    )


def _lines(path: Path, only: Collection[str] = ()) -> Iterator[dict[str, Any]]:
    """Yield whole lines, of which the last may still be written; with `only`, that name one."""
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.endswith("\n") and (not only or any(word in line for word in only)):
                yield json.loads(line)
