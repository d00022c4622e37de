"""Looking for secrets wherever something of a running stack is kept or told.

A secret's forms and the places to look. The end-to-end tests import it.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import asyncpg
import psutil

from dev.stack import Stack
from function.contract import names
from tests.e2e.deploy.identity import Caller

REQUEST_TIMEOUT_S: Final = 30.0

EDGE: Final = 4
"""Characters of a base64 text that depend on what stands before and after."""

DELIVERY: Final = "delivery"
"""The token Secret's data, where the token is until it is consumed."""
DOCUMENT: Final = "document"
"""The one field that hands the token to a cloud: of a substrate and of its machine."""

Places = dict[str, str]
"""Everything that was found, by where."""


def forms(secret: bytes) -> set[str]:
    """Return the texts that tell a secret: plain, in hex, in base64 at every alignment."""
    found = {secret.hex(), secret.hex().upper()}
    for shift in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            text = encode(b"\0" * shift + secret).decode().rstrip("=")
            found.add(text[EDGE if shift else 0 : -EDGE])
    with contextlib.suppress(UnicodeDecodeError):
        found.add(secret.decode("ascii"))
    return found


def found_in(places: Places, secrets: Mapping[str, bytes]) -> set[tuple[str, str]]:
    """Return the names of secrets and the places where they are; empty when there is none."""
    wanted = {name: forms(secret) for name, secret in secrets.items()}
    return {
        (name, place)
        for place, text in places.items()
        for name, texts in wanted.items()
        if any(form in text for form in texts)
    }


def everywhere(stack: Stack) -> Places:
    """Return all that a stack keeps and tells."""
    places = {
        **dict(_logs(stack)),
        **dict(_objects(Caller(stack.plane.kubeconfig))),
        **dict(_processes()),
        "metrics broker": _metrics(stack),
        **asyncio.run(_tables(stack.postgres.dsn)),
    }
    kinds = {place.partition(" ")[0] for place in places}
    assert kinds >= {"log", "metrics", "object", "process", "table"}, kinds
    return places


def _logs(stack: Stack) -> Iterator[tuple[str, str]]:
    folders = {stack.plane.supervisor.logs, stack.run_dir / "postgres"}
    for folder in folders:
        for path in folder.rglob("*.log"):
            yield f"log {path.name}", path.read_text(encoding="utf-8", errors="replace")
    if stack.plane.audit_log is not None:
        yield "log audit", stack.plane.audit_log.read_text(encoding="utf-8")


def _metrics(stack: Stack) -> str:
    """Return the reconciler's own; the function's are searched where its memory is at hand."""
    path = f"{stack.operator_url}/metrics"
    with urllib.request.urlopen(path, timeout=REQUEST_TIMEOUT_S) as answer:  # noqa: S310 - our own listener
        return str(answer.read().decode())


def _objects(admin: Caller) -> Iterator[tuple[str, str]]:
    """Yield every object of every kind, Events among them; where a token is due, apart."""
    groups = admin.get("/apis").body["groups"]
    paths = ["/api/v1", *(f"/apis/{g['preferredVersion']['groupVersion']}" for g in groups)]
    for path in paths:
        for kind in admin.get(path).body.get("resources", []):
            if "/" in kind["name"] or "list" not in kind["verbs"]:
                continue
            for item in admin.get(f"{path}/{kind['name']}").body.get("items", []):
                name = f"{kind['kind']}/{item['metadata']['name']}"
                if item.get("type") == names.TOKEN_SECRET_TYPE:
                    yield f"{DELIVERY} {name}", json.dumps(item.pop("data"))
                for holder in _holders(item):
                    yield f"{DOCUMENT} {name}", json.dumps(holder.pop("userData"))
                yield f"object {name}", json.dumps(item)


def _holders(item: dict[str, Any]) -> list[dict[str, Any]]:
    spec = item.get("spec")
    if not isinstance(spec, dict):
        return []
    holders = [spec, spec.get("forProvider")]
    return [holder for holder in holders if isinstance(holder, dict) and "userData" in holder]


def _processes() -> Iterator[tuple[str, str]]:
    for process in psutil.Process().children(recursive=True):
        for part in ("environ", "cmdline"):
            with contextlib.suppress(OSError):
                raw = Path(f"/proc/{process.pid}/{part}").read_bytes()
                yield f"process {process.pid} {part}", raw.decode(errors="replace")


async def _tables(dsn: str) -> Places:
    connection = await asyncpg.connect(dsn)
    try:
        tables = await connection.fetch(
            "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables "
            "WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        )
        found = {}
        for (table,) in tables:
            rows = await connection.fetch(f"SELECT t::text FROM {table} AS t")  # noqa: S608 - quoted
            found[f"table {table}"] = "\n".join(row[0] for row in rows)
        return found
    finally:
        await connection.close()
