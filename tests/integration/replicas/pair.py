"""Two replicas on one database and one API server, each on wires of its own to both.

Starting them, telling which leads, and one machine's life beside them.
"""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, LiteralString
from urllib.parse import urlsplit, urlunsplit

import aiohttp
import yaml

from dev import kubeconfig
from dev.controlplane import ControlPlane
from dev.wire import Wire, wired
from tests.contract.cluster_worlds import reconciler_kubeconfig
from tests.fakes.databases import migrated_database
from tests.integration.load.agents import Agents, eventually
from tests.integration.load.ledger import execute
from tests.integration.load.stage import Broker, Stage, furnished

STEP_S: Final = 90.0
"""One step of one record; a loaded machine needs some of it."""

FAILOVER_S: Final = 15.0
"""How soon somebody else must lead (issue 6, line 4)."""

_HOLDER: Final[LiteralString] = """
SELECT split_part(holder, '/', 2)::int FROM plexsphere.driver_leases
WHERE expires_at > clock_timestamp() AND fence > $1::text::bigint
"""
_EXPIRE: Final[LiteralString] = "UPDATE plexsphere.driver_leases SET expires_at = clock_timestamp()"
_TOLD: Final[LiteralString] = (
    "SELECT count(*)::int FROM plexsphere.outbox_events WHERE event_type = $1"
)
_FENCE: Final[LiteralString] = "SELECT max(fence)::text FROM plexsphere.driver_leases"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One `broker serve`, its wires, and what the API server knows it by.

    Attributes:
        broker: Its process.
        wire: To the database.
        api: To the API server, where that is ours.
        credential: Id of its token, which is nobody else's.
    """

    broker: Broker
    wire: Wire
    api: Wire
    credential: str

    def mend(self) -> None:
        """Let it go on, with everything within its reach."""
        self.wire.mend()
        self.api.mend()
        self.broker.resume()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Both replicas, and what stands around them."""

    stage: Stage
    replicas: tuple[Replica, Replica]
    dsn: str

    async def roles(self) -> tuple[Replica, Replica]:
        """Return who leads and who stands by."""
        pid = await eventually(
            lambda: execute(self.dsn, _HOLDER, "0"), timeout_s=STEP_S, what="a leader"
        )
        one, two = self.replicas
        assert pid in (one.broker.pid, two.broker.pid)
        return (one, two) if pid == one.broker.pid else (two, one)

    async def fence(self) -> str:
        """Return the fence of the term that runs."""
        return str(await execute(self.dsn, _FENCE))

    async def led_by(self, replica: Replica, *, after: str) -> None:
        """Wait until somebody leads in a later term, which must be this one."""
        pid = await eventually(
            lambda: execute(self.dsn, _HOLDER, after), timeout_s=STEP_S, what="another leader"
        )
        assert pid == replica.broker.pid

    async def steal(self) -> None:
        """End the time of whoever leads in the store alone, until another term begins."""
        before = await self.fence()

        async def expired() -> bool:
            await execute(self.dsn, _EXPIRE)
            return await self.fence() != before

        await eventually(expired, timeout_s=STEP_S, what="another term")

    async def told(self, event: str) -> object:
        """Return how many events of a type were told."""
        return await execute(self.dsn, _TOLD, event)

    async def live(self, name: str, replica: Replica) -> str:
        """Take one machine to Ready that registers with one replica; return its record."""
        stage = self.stage
        record = await stage.declare(name)
        token = await stage.token(record)
        await stage.compose(record)
        await stage.ready(record)
        await stage.until(record, lambda status: status.get("phase") == "Enrolling", "Enrolling")
        body = {
            "project_id": stage.project,
            "resource_handle": stage.status(record)["xrName"],
            "bootstrap_token": token,
            "nonce": secrets.token_hex(16),
            "public_key": base64.b64encode(secrets.token_bytes(32)).decode(),
        }
        async with aiohttp.ClientSession(replica.broker.node_url) as session:
            await Agents(session).register(json.dumps(body).encode())
        await stage.until(record, lambda status: status.get("phase") == "Ready", "Ready")
        return record


@asynccontextmanager
async def pair(plane: ControlPlane, folder: Path, **options: str) -> AsyncIterator[Pair]:
    """Start two replicas; both are ready, and one of them leads.

    Args:
        plane: Their API server.
        folder: Gets their logs.
        knobs: More of their settings.
    """
    async with AsyncExitStack() as stack:
        dsn = stack.enter_context(migrated_database())
        common = {"PLEXSPHERE_PROVISIONING_BROKER_ENROL_BASE_URL": "http://127.0.0.1:1", **options}
        one, two = [
            await _replica(stack, plane, folder / name, dsn, common) for name in ("one", "two")
        ]
        stage = await stack.enter_async_context(furnished(plane, one.broker))
        # Off the loop: while a replica ends, its wires must go on passing.
        stack.push_async_callback(asyncio.to_thread, two.broker.stop)
        await asyncio.to_thread(two.broker.start)
        yield Pair(stage=stage, replicas=(one, two), dsn=dsn)
        for replica in (one, two):
            replica.mend()


async def _replica(
    stack: AsyncExitStack, plane: ControlPlane, folder: Path, dsn: str, settings: dict[str, str]
) -> Replica:
    """Describe a replica; its wires end with the stack, its process does not run yet."""
    wire, store = await stack.enter_async_context(_wire(dsn))
    config = yaml.safe_load(reconciler_kubeconfig(plane).read_text(encoding="utf-8"))
    (cluster,), (user,) = config["clusters"], config["users"]
    api, server = await stack.enter_async_context(_wire(cluster["cluster"]["server"]))
    if plane.is_ours:
        # Another server's certificate need not bear the wire's name.
        cluster["cluster"]["server"] = server
    own = {
        "KUBECONFIG": str(kubeconfig.write(folder / "kubeconfig", config)),
        "PLEXSPHERE_DSN": store,
    }
    return Replica(
        broker=Broker(folder, {**settings, **own}),
        wire=wire,
        api=api,
        credential=_credential(user["user"]["token"]),
    )


def _credential(token: str) -> str:
    """Return the id of a service account's token, as the audit log has it."""
    payload = token.split(".")[1]
    return f"JTI={json.loads(base64.urlsafe_b64decode(payload + '=='))['jti']}"


@asynccontextmanager
async def _wire(url: str) -> AsyncIterator[tuple[Wire, str]]:
    """Yield a wire to a server, and the URL through it."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    async with wired(parts.hostname, parts.port or 443) as (wire, port):
        user, at, _ = parts.netloc.rpartition("@")
        yield wire, urlunsplit(parts._replace(netloc=f"{user}{at}127.0.0.1:{port}"))
