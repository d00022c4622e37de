"""Addresses that lie ready for registrations.

Laying out a range's next addresses, and giving one back. Addresses lie in rows of their
own, so that registrations lock different ones and never wait for each other. One that was
given back rests there for ten minutes (`take_out_node`): a peer that has not pulled since
would send to it what is meant for the node that left. While nothing else is left, it is
given away all the same, the one that has rested longest: a full mesh helps nobody.
"""

from __future__ import annotations

from typing import Final, LiteralString
from uuid import UUID

import asyncpg

BATCH: Final = 512
"""Addresses laid out at once: many more than the connections that can hold one each."""
BATCHES_MAX: Final = 64
"""Most batches of one call: a range may be full of other Projects' sub-ranges."""
READY_MIN: Final = 32
"""With fewer that do not rest, others are laid out: more than the connections of one process,
so that whoever takes one at the same moment finds another."""

_OPEN: LiteralString = """
INSERT INTO plexsphere.mesh_pools (domain_id, mesh_range) VALUES ($1, $2::text::cidr)
ON CONFLICT DO NOTHING
"""

_LOCK: LiteralString = """
SELECT true FROM plexsphere.mesh_pools
WHERE domain_id = $1 AND mesh_range = $2::text::cidr FOR NO KEY UPDATE
"""

_LOCK_IF_FREE: LiteralString = _LOCK + "SKIP LOCKED"

_READY: LiteralString = """
SELECT EXISTS (
    SELECT FROM plexsphere.mesh_free
    WHERE domain_id = $1 AND mesh_range = $2::text::cidr AND rests_until <= now()
    OFFSET $3
)
"""

MORE: LiteralString = """
host(network(pool.mesh_range))::inet + pool.next_offset < host(broadcast(pool.mesh_range))::inet
"""
"""Whether a row named `pool` has addresses that were never laid out."""

_ADVANCE: LiteralString = (
    "UPDATE plexsphere.mesh_pools AS pool SET next_offset = next_offset + $3::int "  # noqa: S608 - constants
    "WHERE domain_id = $1 AND mesh_range = $2::text::cidr AND "
    + MORE
    + "RETURNING next_offset - $3::int"
)

_LAY_OUT: LiteralString = """
WITH candidate AS (
    SELECT host(network($2::text::cidr))::inet + n AS address
    FROM generate_series($3::bigint, $3::bigint + $4::int - 1) AS n
), laid AS (
    INSERT INTO plexsphere.mesh_free (domain_id, mesh_range, address)
    SELECT $1, $2::text::cidr, address FROM candidate
    WHERE address < host(broadcast($2::text::cidr))::inet
      AND NOT EXISTS (
          SELECT FROM plexsphere.nodes
          WHERE domain_id = $1 AND mesh_ip = address AND deregistered_at IS NULL
      )
      AND NOT EXISTS (
          SELECT FROM plexsphere.projects
          WHERE domain_id = $1 AND mesh_subrange >>= address
            AND mesh_subrange <> $2::text::cidr
      )
    ON CONFLICT DO NOTHING
    RETURNING true
)
SELECT count(*) FROM laid
"""


async def lay_out(
    connection: asyncpg.Connection, domain_id: UUID, mesh_range: str, *, wait: bool
) -> None:
    """Lay out the next addresses of a range, unless enough lie there.

    Args:
        connection: In no transaction.
        domain_id: The Domain.
        mesh_range: Its range, or the sub-range of one of its Projects.
        wait: Whether to wait for somebody who is at it; without, it is left to them.

    Idempotency: callers at the same moment lay out one batch between them.
    """
    async with connection.transaction():
        await connection.execute(_OPEN, domain_id, mesh_range)
        if not await connection.fetchval(_LOCK if wait else _LOCK_IF_FREE, domain_id, mesh_range):
            return
        if await connection.fetchval(_READY, domain_id, mesh_range, BATCH // 2):
            return
        for _ in range(BATCHES_MAX):
            offset = await connection.fetchval(_ADVANCE, domain_id, mesh_range, BATCH)
            if offset is None:
                return
            if await connection.fetchval(_LAY_OUT, domain_id, mesh_range, offset, BATCH):
                return
