"""A second `broker serve` beside a stack's own, which stands by until that one is gone.

Its start and end, and whether it leads. Nodes come to the address of the stack's own all
the same, as through a Service.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import asyncpg

from dev.process import Child, Program, answers, free_port
from dev.stack import READY_TIMEOUT_S, RECONCILER_ACCOUNT, ROOT, Stack, script

_LEADER: Final = """
SELECT split_part(holder, '/', 2)::int FROM plexsphere.driver_leases
WHERE expires_at > clock_timestamp()
"""


@contextmanager
def standby(stack: Stack) -> Iterator[Child]:
    """Yield one that is ready; it ends in good order, and so hands over what it leads."""
    listeners = {
        f"PLEXSPHERE_{which}_LISTEN": f"127.0.0.1:{free_port()}" for which in ("NODE", "OPERATOR")
    }
    kubeconfig = stack.plane.service_account_kubeconfig(*RECONCILER_ACCOUNT)
    program = Program(
        name="standby",
        argv=[script("broker"), "serve"],
        env={**stack.settings(), **listeners, "KUBECONFIG": str(kubeconfig)},
        cwd=ROOT,
    )
    child = stack.plane.supervisor.start(program)
    try:
        url = f"http://{listeners['PLEXSPHERE_OPERATOR_LISTEN']}/readyz"
        child.await_ready(lambda: answers(url), timeout_s=READY_TIMEOUT_S)
        yield child
    finally:
        child.stop()


def leads(stack: Stack, broker: Child) -> bool:
    """Tell whether a process leads just now."""

    async def asked() -> int | None:
        connection = await asyncpg.connect(stack.postgres.dsn)
        try:
            found: int | None = await connection.fetchval(_LEADER)
        finally:
            await connection.close()
        return found

    return asyncio.run(asked()) == broker.pid
