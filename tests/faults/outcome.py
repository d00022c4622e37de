"""What is left of a life at rest, without what must differ: ids, times, generations.

Reading rows and objects into one comparable value. Two lives are equal if nobody who reads
the database or the API server could tell which of them had a fault. Kubernetes Events are
left out: they are for people, may be lost.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, LiteralString

from function.contract import names
from tests.contract.cluster_worlds import PROVIDER_API, VM
from tests.e2e.deploy import external_secrets
from tests.faults.stagehand import Life

_ROW: Final[LiteralString] = """
SELECT status, deletion_requested_at IS NOT NULL AS going, force_released_at IS NULL AS in_order,
       jsonb_path_query_array(protected, '$[*].released')::text AS released
FROM plexsphere.provisioned_resources WHERE project_id = $1
"""
_TOKENS: Final[LiteralString] = """
SELECT count(*) FILTER (WHERE consumed_at IS NOT NULL) AS consumed,
       count(*) FILTER (WHERE consumed_at IS NULL AND revoked_at IS NULL) AS live
FROM plexsphere.bootstrap_tokens WHERE project_id = $1
"""
_NODES: Final[LiteralString] = """
SELECT count(*) AS nodes, count(*) FILTER (WHERE deregistered_at IS NULL) AS live
FROM plexsphere.nodes WHERE project_id = $1
"""
_EVENTS: Final[LiteralString] = """
SELECT event.aggregate_type, event.event_type, event.aggregate_sequence
FROM plexsphere.outbox_events AS event
WHERE event.aggregate_id IN (
        SELECT id FROM plexsphere.provisioned_resources WHERE project_id = $1)
   OR event.aggregate_id IN (SELECT id FROM plexsphere.nodes WHERE project_id = $1)
ORDER BY event.aggregate_type, event.aggregate_id, event.aggregate_sequence
"""
_HOLDS: Final[LiteralString] = """
SELECT kind, name FROM plexsphere.shared_holds WHERE namespace = $1 ORDER BY kind, name
"""
_AUDIT: Final[LiteralString] = """
SELECT action FROM plexsphere.broker_audit WHERE project_id = $1 ORDER BY id
"""
_IDS: Final = re.compile(r"pr-[0-9a-f-]{36}|[0-9a-f]{8}-[0-9a-f-]{27}|-g[0-9]+|g?[0-9]{4}-.*Z")

Object = dict[str, Any]
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What is left.

    Attributes:
        rows: Of each table, what is comparable of it.
        objects: Of the API server, what is comparable of it.
    """

    rows: Mapping[str, Rows]
    objects: Mapping[str, object]


async def outcome(life: Life) -> Outcome:
    """Read what is left of a life."""
    pool = life.ground.pool
    rows = {
        "resources": await pool.fetch(_ROW, life.project),
        "tokens": await pool.fetch(_TOKENS, life.project),
        "nodes": await pool.fetch(_NODES, life.project),
        "events": await pool.fetch(_EVENTS, life.project),
        "holds": await pool.fetch(_HOLDS, life.namespace),
        "audit": await pool.fetch(_AUDIT, life.project),
    }
    whole = f"/api/v1/namespaces/{life.namespace}"
    paths = {
        "namespace": whole,
        "record": life.path_of_record,
        "substrates": f"/apis/{VM[0]}/v1alpha1/namespaces/{life.namespace}/{VM[2]}",
        "secrets": f"{whole}/secrets",
        "provider configs": f"/apis/{PROVIDER_API}/namespaces/{life.namespace}/providerconfigs",
        "external secrets": external_secrets.path(life.namespace),
    }
    found = await asyncio.gather(*(life.find(path) for path in paths.values()))
    objects = dict(zip(paths, found, strict=True))
    return Outcome(
        rows={table: [dict(row) for row in read] for table, read in rows.items()},
        objects={what: _READ[what](item) for what, item in objects.items()},
    )


def _namespace(item: Object | None) -> object:
    assert item is not None
    metadata = item["metadata"]
    annotations = metadata.get("annotations") or {}
    return metadata["labels"].get(names.LABEL_HOLD), annotations.get(names.ANNOTATION_RECORDS)


def _record(item: Object | None) -> object:
    if item is None:
        return None
    status = item["status"]
    conditions = {
        found["type"]: (found["status"], found["reason"], _IDS.sub("…", found["message"]))
        for found in status["conditions"]
    }
    shown = {
        "phase": status["phase"],
        "substrate": status["substrate"],
        "bootstrap": status["bootstrap"]["state"],
        "delivers": "secretRef" in status["bootstrap"],
        "node": sorted(status.get("node") or {}),
        "providerConfig": status.get("providerConfigRef"),
    }
    return shown, conditions, item["metadata"]["finalizers"]


def _held(item: Object | None) -> object:
    """Tell of each object whether it is held, whatever it is called."""
    assert item is not None
    return sorted(
        _IDS.sub("…", found["metadata"]["name"])
        + str((found["metadata"].get("labels") or {}).get(names.LABEL_HOLD))
        for found in item["items"]
    )


_READ: Final = {
    "namespace": _namespace,
    "record": _record,
    "substrates": _held,
    "secrets": _held,
    "provider configs": _held,
    "external secrets": _held,
}
