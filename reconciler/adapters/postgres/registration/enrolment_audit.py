"""Denied registrations and readmissions on Postgres.

Where each is kept, and how many. Ids and codes alone, never a value of the request. Who
holds no token we know writes into one table, in shares of their address blocks; what is
evidence about a token is in another, which they cannot reach. Source: docs/decisions/0023.
"""

from __future__ import annotations

from typing import Final, LiteralString, Protocol

from reconciler.ports.registration import DeniedRegistration

DENIALS_MAX: Final = 100_000
"""Strangers' denials that are kept: anybody can cause one, and twenty megabytes hold them."""
BLOCK_DENIALS_MAX: Final = 1_000
"""Newest denials kept of one address block: a hundredth, and what they show does not differ."""
PRUNE_EVERY: Final = 1_000
"""Denials between two prunings: the surplus is a hundredth."""
TOKEN_ENTRIES_MAX: Final = 64
"""Entries of one token before further blocks share one by code and detail: a machine asks from one
block, a thief from a few, and a thief with more learns nothing that is worth a row."""

_RECORD: LiteralString = """
INSERT INTO plexsphere.enrolment_audit
    (code, status, project_id, remote_address, node_id, detail)
VALUES ($1, $2, $3, $4, $5, $6)
RETURNING sequence
"""

_PRUNE: LiteralString = """
WITH ranked AS (
    SELECT sequence, row_number() OVER (PARTITION BY block ORDER BY sequence DESC) AS rank
    FROM plexsphere.enrolment_audit
), judged AS (
    SELECT sequence, rank, row_number() OVER (ORDER BY rank, sequence DESC) AS position FROM ranked
)
DELETE FROM plexsphere.enrolment_audit WHERE sequence = ANY (ARRAY(
    SELECT sequence FROM plexsphere.enrolment_audit
    WHERE sequence IN (SELECT sequence FROM judged WHERE position > $1 OR rank > $2)
    FOR UPDATE SKIP LOCKED
))
"""
"""Each block's newest comes before any block's second: who wants to push out the few denials of
another block needs as many blocks as there are rows."""

_COUNT: LiteralString = """
INSERT INTO plexsphere.enrolment_evidence AS kept
    (code, status, bootstrap_token_id, provisioned_resource_id, project_id, node_id, detail,
     remote_address, block, last_address)
SELECT $1, $2, $3, (
    SELECT provisioned_resource_id FROM plexsphere.bootstrap_tokens WHERE id = $3
), $4, $5, $6, $7, CASE
    WHEN EXISTS (
        SELECT FROM plexsphere.enrolment_evidence
        WHERE bootstrap_token_id = $3 AND code = $1 AND detail IS NOT DISTINCT FROM $6
          AND block = plexsphere.address_block($7)
    ) OR $8 > (
        SELECT count(*) FROM plexsphere.enrolment_evidence
        WHERE bootstrap_token_id = $3 AND code <> 'readmitted'
    ) THEN plexsphere.address_block($7)
    ELSE '0.0.0.0/0'
END, $7
ON CONFLICT (bootstrap_token_id, code, detail, block) WHERE code <> 'readmitted' DO UPDATE
SET times = kept.times + 1, last_at = greatest(kept.last_at, clock_timestamp()),
    last_address = excluded.last_address
"""


class Executor(Protocol):
    """A connection, or a pool of them."""

    async def fetchval(self, query: str, *args: object) -> int:
        """Run a query; the first column of its first row."""
        ...

    async def execute(self, query: str, *args: object) -> str:
        """Run a statement."""
        ...


async def append(executor: Executor, denial: DeniedRegistration) -> None:
    """Keep a denial: of a known token as evidence, of anybody else for a while.

    Of one token, code, detail and address block there is one entry, which counts. Every so often
    what strangers' denials are too many is forgotten.
    """
    if denial.token_id is not None:
        await executor.execute(
            _COUNT, denial.code, denial.status, denial.token_id, denial.project_id,
            denial.node_id, denial.detail, denial.remote_address, TOKEN_ENTRIES_MAX,
        )  # fmt: skip
        return
    sequence = await executor.fetchval(
        _RECORD, denial.code, denial.status, denial.project_id, denial.remote_address,
        denial.node_id, denial.detail,
    )  # fmt: skip
    if sequence % PRUNE_EVERY == 0:
        await executor.execute(_PRUNE, DENIALS_MAX, BLOCK_DENIALS_MAX)
