"""Teardowns that stand still, each at another moment, until they are let go.

What holds each of them there, as a slow database, a cloud or Crossplane would, and what is
told of each in the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import IntEnum, StrEnum, unique
from typing import Any, Final, LiteralString

import asyncpg

from function.contract import names
from tests.contract.cluster_worlds import FOREIGN_FINALIZER, RECORD, VM, XR
from tests.e2e.deploy.place import Kind
from tests.integration.lives.life import Life
from tests.integration.load.agents import eventually
from tests.integration.load.stage import STEP_S

PART: Final = "part"
"""What a substrate is made of here: one more of its kind."""


@unique
class Moment(StrEnum):
    """Where a teardown stands; each is also the name of its XR."""

    ASKED = "asked"
    """The deletion request is being stored."""
    LEAVING = "leaving"
    """The token is revoked, the node is being taken out of the mesh."""
    OUT = "out"
    """The node is out, the substrate is there: Crossplane has not let go of its XR."""
    GOING = "going"
    """The substrate was asked to go; somebody's finalizer is on it."""
    PARTS = "parts"
    """The substrate is gone, what it was made of is not."""
    LAST = "last"
    """`Deleted` is being stored; then the record's finalizer goes."""


@unique
class Gate(IntEnum):
    """Where a teardown stands in the database, by the key of an advisory lock."""

    STORING = 1
    LAST = 2


IN_STORE: Final = frozenset({Moment.ASKED, Moment.LEAVING, Moment.LAST})
"""Those that the database holds up; the others wait for an object."""

_WAIT: Final[LiteralString] = """
CREATE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_ARGV[1] = (
        SELECT owner_name FROM plexsphere.provisioned_resources
        WHERE id = (to_jsonb(NEW) ->> TG_ARGV[2])::uuid
    ) THEN
        PERFORM pg_advisory_xact_lock_shared(TG_ARGV[0]::bigint);
    END IF;
    RETURN NEW;
END $$
"""
_GATES: Final[Sequence[LiteralString]] = (
    """
    CREATE TRIGGER asked BEFORE UPDATE ON plexsphere.provisioned_resources FOR EACH ROW
    WHEN (new.deletion_requested_at IS NOT NULL AND old.deletion_requested_at IS NULL)
    EXECUTE FUNCTION wait_at_gate(1, 'asked', 'id')
    """,
    """
    CREATE TRIGGER leaving BEFORE UPDATE ON plexsphere.nodes FOR EACH ROW
    WHEN (new.deregistered_at IS NOT NULL AND old.deregistered_at IS NULL)
    EXECUTE FUNCTION wait_at_gate(1, 'leaving', 'provisioned_resource_id')
    """,
    """
    CREATE TRIGGER last BEFORE UPDATE ON plexsphere.provisioned_resources FOR EACH ROW
    WHEN (new.status = 'Deleted' AND old.status <> 'Deleted')
    EXECUTE FUNCTION wait_at_gate(2, 'last', 'id')
    """,
)
_SHUT: Final[LiteralString] = "SELECT pg_advisory_lock($1)"
_OPEN: Final[LiteralString] = "SELECT pg_advisory_unlock($1)"
_WAITING: Final[LiteralString] = """
SELECT count(*)::int AS waiting FROM pg_locks
WHERE locktype = 'advisory' AND NOT granted AND objid = $1
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
_STATUS: Final[LiteralString] = """
SELECT status FROM plexsphere.provisioned_resources WHERE xr_name = $1
"""
_END: Final[LiteralString] = """
SELECT resource.status, (
    SELECT array_agg((state.consumed, state.live)::text) FROM (
        SELECT consumed_at IS NOT NULL AS consumed,
               consumed_at IS NULL AND revoked_at IS NULL AS live
        FROM plexsphere.bootstrap_tokens WHERE provisioned_resource_id = resource.id) AS state
    ) AS tokens, (
    SELECT array_agg(deregistered_at IS NOT NULL) FROM plexsphere.nodes
    WHERE provisioned_resource_id = resource.id
    ) AS nodes, (
    SELECT array_agg(
        (aggregate_type, aggregate_sequence, event_type)::text
        ORDER BY aggregate_type, aggregate_sequence)
    FROM plexsphere.outbox_events
    WHERE aggregate_id = resource.id OR aggregate_id IN (
        SELECT id FROM plexsphere.nodes WHERE provisioned_resource_id = resource.id)
    ) AS events
FROM plexsphere.provisioned_resources AS resource WHERE xr_name = $1
"""


class Gates:
    """Gates in the database that teardowns come to.

    Args:
        connection: Nobody else's; it shuts them.
    """

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection
        self._turns = asyncio.Lock()

    async def reached(self, gate: Gate, *, by: int = 1) -> None:
        """Wait until so many transactions stand at a gate."""

        async def stand() -> bool:
            return bool((await self._row(_WAITING, gate))["waiting"] >= by)

        await eventually(stand, timeout_s=STEP_S, what=f"{by} at {gate!r}")

    async def open(self, gate: Gate) -> None:
        """Let through whatever comes, from now on."""
        await self._row(_OPEN, gate)

    async def until_stored(self, life: Life, status: str) -> None:
        """Wait until a resource is stored to be in a phase."""

        async def stored() -> bool:
            return bool((await self._row(_STATUS, life.handle))["status"] == status)

        await eventually(stored, timeout_s=STEP_S, what=f"{life.name} stored as {status}")

    async def end(self, life: Life) -> Mapping[str, Any]:
        """Return what is stored of a life, without ids and times: its row and its events."""
        return await self._row(_END, life.handle)

    async def _row(self, statement: LiteralString, value: object) -> dict[str, Any]:
        async with self._turns:
            return dict(await self._connection.fetchrow(statement, value))


@asynccontextmanager
async def gated(dsn: str) -> AsyncIterator[Gates]:
    """Put gates into a database, all of them shut."""
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(_WAIT)
        for gate in _GATES:
            await connection.execute(gate)
        for key in Gate:
            await connection.execute(_SHUT, key)
        yield Gates(connection)
    finally:
        await connection.close()


@dataclass(slots=True, kw_only=True)
class Departure(Life):
    """A life whose end stands still at its moment, until it is let go."""

    async def asks(self) -> None:
        """Have it stand at its moment in the end, and delete it as a user does."""
        match self.name:
            case Moment.OUT:
                await self._held(XR, self.name, by=names.CROSSPLANE_FINALIZER)
            case Moment.GOING:
                await self._held(VM, self.handle, by=FOREIGN_FINALIZER)
            case Moment.PARTS:
                await self._is_made_of_parts()
        await self._admin("DELETE", self._path(XR, self.name))
        await self._admin("DELETE", self._path(RECORD, self.record))

    async def arrives(self, gates: Gates) -> None:
        """Wait until its node is out, and its substrate as far as it comes."""
        await gates.until_stored(self, "Deprovisioning")
        if self.name != Moment.OUT:
            gone = self._is_going if self.name == Moment.GOING else self._is_gone
            await eventually(gone, timeout_s=STEP_S, what=f"{self.name} at its moment")

    async def is_let_go(self) -> None:
        """Take away what it waits for."""
        match self.name:
            case Moment.OUT:
                await self._held(XR, self.name, by=None)
            case Moment.GOING:
                await self._held(VM, self.handle, by=None)
            case Moment.PARTS:
                await self._admin("DELETE", self._path(VM, PART))
                await self._held(VM, PART, by=None)

    async def until_gone(self) -> None:
        """Wait until its record is gone, and do the collector's part, who learns late of kinds."""
        await eventually(self._has_ended, timeout_s=STEP_S, what=f"the end of {self.record}")

    async def _is_made_of_parts(self) -> None:
        path = self._path(VM, self.handle)
        found = await self._admin("GET", path)
        assert found is not None
        kind = {key: found[key] for key in ("apiVersion", "kind")}
        owner = {**kind, "controller": True}
        owner |= {key: found["metadata"][key] for key in ("name", "uid")}
        metadata = {"name": PART, "ownerReferences": [owner], "finalizers": [FOREIGN_FINALIZER]}
        await self._admin("POST", path.rpartition("/")[0], {**kind, "metadata": metadata})
        listed = {"crossplane": {"resourceRefs": [{**kind, "name": PART}]}}
        await self._admin("PATCH", path, {"spec": listed})

    async def _is_going(self) -> bool:
        found = await self._admin("GET", self._path(VM, self.handle))
        return found is not None and "deletionTimestamp" in found["metadata"]

    async def _is_gone(self) -> bool:
        if await self._is_going():
            await self._held(VM, self.handle, by=None)
        return await self._admin("GET", self._path(VM, self.handle)) is None

    async def _held(self, kind: Kind, name: str, *, by: str | None) -> None:
        finalizers = None if by is None else [by]
        body = {"metadata": {"finalizers": finalizers}}
        await self._admin("PATCH", self._path(kind, name), body)
