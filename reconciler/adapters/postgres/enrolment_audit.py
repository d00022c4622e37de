"""Denied registrations on Postgres.

Belongs here: one row a denial, and how many are kept. Not here: what is a denial. Ids and
codes alone, never a value of the request.
"""

from __future__ import annotations

from typing import Final, LiteralString, Protocol

from reconciler.ports.identity import DeniedRegistration

DENIALS_MAX: Final = 100_000
"""Newest denials that are kept: anybody can cause one, and ten megabytes hold them."""
PRUNE_EVERY: Final = 1_000
"""Denials between two prunings: the surplus is a hundredth."""

_RECORD: LiteralString = """
INSERT INTO plexsphere.enrolment_audit
    (code, status, bootstrap_token_id, project_id, remote_address, node_id, detail)
VALUES ($1, $2, $3, $4, $5, $6, $7)
RETURNING sequence
"""

_PRUNE: LiteralString = """
DELETE FROM plexsphere.enrolment_audit WHERE sequence <= $1
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
    """Append a denial, and every so often forget what is older than the newest 100,000."""
    sequence = await executor.fetchval(
        _RECORD, denial.code, denial.status, denial.token_id, denial.project_id,
        denial.remote_address, denial.node_id, denial.detail,
    )  # fmt: skip
    if sequence % PRUNE_EVERY == 0:
        await executor.execute(_PRUNE, sequence - DENIALS_MAX)
