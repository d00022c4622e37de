"""What happened, from records that nobody writes for the sake of a demo or a test.

Reading Postgres, the demo cloud's facts and the API server's audit log into one timeline.
`dev.demo` shows it, the end-to-end tests assert on it.
"""

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import asyncpg

_EVENTS = """
SELECT occurred_at AS at, event_type AS what,
       coalesce(payload->>'XRName', aggregate_id::text) AS subject
FROM plexsphere.outbox_events ORDER BY sequence
"""

_NODES = """
SELECT n.registered_at, n.deregistered_at, r.xr_name
FROM plexsphere.nodes n JOIN plexsphere.provisioned_resources r
  ON r.id = n.provisioned_resource_id
ORDER BY n.registered_at
"""

_TOKENS = """
SELECT t.issued_at, t.revoked_at, r.xr_name
FROM plexsphere.bootstrap_tokens t JOIN plexsphere.provisioned_resources r
  ON r.id = t.provisioned_resource_id
ORDER BY t.issued_at
"""

HELD = frozenset({"xgenericvms", "machines", "provisioningrecords", "provisionedresources"})
"""Plurals whose deletes the timeline shows."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Fact:
    """One thing that happened.

    Attributes:
        at: When, by the clock of whoever recorded it; all of them run on this host.
        source: `mesh`, `event`, `cloud` or `api`.
        what: For example `deregistered`, `deleted`, `delete xgenericvms 200 by …`.
        subject: `pr-<uuid>`, or another object's name.
    """

    at: datetime
    source: str
    what: str
    subject: str


def from_postgres(dsn: str) -> list[Fact]:
    """Read events and nodes; empty while the schema is not there."""
    return asyncio.run(_from_postgres(dsn))


async def _from_postgres(dsn: str) -> list[Fact]:
    connection = await asyncpg.connect(dsn, timeout=10)
    try:
        events = await connection.fetch(_EVENTS)
        nodes = await connection.fetch(_NODES)
        tokens = await connection.fetch(_TOKENS)
    except asyncpg.UndefinedTableError:
        return []
    finally:
        await connection.close()
    facts = [
        Fact(at=row["at"], source="event", what=row["what"], subject=row["subject"])
        for row in events
    ]
    for row in nodes:
        facts += _moments(row, registered_at="registered", deregistered_at="deregistered")
    for row in tokens:
        facts += _moments(row, issued_at="token issued", revoked_at="token revoked")
    return facts


def _moments(row: asyncpg.Record, **columns: str) -> list[Fact]:
    return [
        Fact(at=row[column], source="mesh", what=what, subject=row["xr_name"])
        for column, what in columns.items()
        if row[column] is not None
    ]


def from_cloud(root: Path) -> list[Fact]:
    """Read what the demo cloud did; empty before its first machine."""
    return [
        Fact(
            at=datetime.fromisoformat(str(entry["at"])),
            source="cloud",
            what=str(entry["fact"]),
            subject=str(entry["name"]),
        )
        for entry in _lines(root / "facts.jsonl")
    ]


def from_audit(log: Path | None) -> list[Fact]:
    """Read every delete of what the hold protects, with its answer and its author."""
    facts = []
    for entry in [] if log is None else _lines(log):
        target = entry.get("objectRef")
        status = entry.get("responseStatus")
        user = entry.get("user")
        if not isinstance(target, dict) or entry.get("verb") not in {"delete", "deletecollection"}:
            continue
        if target.get("resource") not in HELD or "subresource" in target:
            continue
        code = status.get("code") if isinstance(status, dict) else "?"
        author = str(user.get("username")) if isinstance(user, dict) else "?"
        what = f"{entry['verb']} {target['resource']} {code} by {author.rpartition(':')[2]}"
        subject = str(target.get("name", "*"))
        at = datetime.fromisoformat(str(entry["requestReceivedTimestamp"]))
        facts.append(Fact(at=at, source="api", what=what, subject=subject))
    return facts


def first(facts: Iterable[Fact], source: str, what: str, subject: str) -> Fact | None:
    """Return the first fact that says so, or None."""
    found = sorted(
        fact for fact in facts if (fact.source, fact.what, fact.subject) == (source, what, subject)
    )
    return found[0] if found else None


def _lines(path: Path) -> list[dict[str, object]]:
    if not path.exists():
        return []
    whole = path.read_text(encoding="utf-8", errors="replace").rpartition("\n")[0]
    return [json.loads(line) for line in whole.splitlines() if line]
