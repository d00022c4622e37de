"""What all parts of a world share: its plans, clock, store, objects and trace.

The ground they stand on. Everything random is drawn from a stream that is named after who
draws, so that one part's draws never move another's.
"""

from __future__ import annotations

import asyncio
import copy
import hashlib
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from function.contract.catalog.tenancy import DomainSpec
from function.contract.record import XRReference
from function.contract.secrets import TokenPlaintext
from reconciler.domain.aggregate import ids
from reconciler.domain.identity import token
from reconciler.ports.cluster.substrates import LiveObject
from reconciler.ports.registration import SigningKey
from reconciler.ports.store.aggregates import DrawnToken
from tests.fakes.memory import FrozenClock, MemoryStore
from tests.fakes.project_gateway import InMemoryProjectGateway
from tests.simulation.cluster import SUBSTRATE_KIND, Raw, SimulatedCluster
from tests.simulation.composing import Composed, Machine, Seen
from tests.simulation.schedule import Kind, Plan, Schedule
from tests.unit.reconciler import samples

RECREATE: Final[Raw] = {"registration": {"policy": "Recreate", "timeout": "2m", "attempts": 5}}


_DOMAIN: Final = DomainSpec.model_validate({"meshCIDR": "100.64.0.0/16"})
_PROJECT: Final[Raw] = {
    "apiVersion": samples.XR["apiVersion"],
    "kind": "Project",
    "metadata": {"name": "shop", "uid": "project-1", "generation": 1},
    "spec": {"domainRef": {"name": "acme"}, "id": str(samples.PROJECT)},
}


class LoopClock(FrozenClock):
    """The loop's time as a wall clock.

    Args:
        skew: How far it is from the database's.
    """

    def __init__(self, skew: timedelta = timedelta()) -> None:
        super().__init__(samples.NOW)
        self.skew = skew

    def now(self) -> datetime:
        """Return the time."""
        return self.at + self.skew + timedelta(seconds=asyncio.get_running_loop().time())


class SeededIDs:
    """UUIDv7s of virtual time; and the secrets, from the same stream."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        # Of its own, so that a key that is drawn changes no other draw of a seed.
        self._keys = random.Random(0)  # noqa: S311 - a simulation
        self.minted: list[str] = []

    @property
    def env(self) -> str:
        """The environment segment of tokens."""
        return "prod"

    def uuid(self) -> UUID:
        """Mint one."""
        milliseconds = 1_795_000_000_000 + int(asyncio.get_running_loop().time() * 1000)
        bits = self._rng.getrandbits(74)
        value = (milliseconds << 80) | (7 << 76) | ((bits >> 62) << 64)
        return UUID(int=value | (2 << 62) | (bits & ((1 << 62) - 1)))

    def provisioned_resource_id(self) -> ids.ProvisionedResourceID:
        """Mint an aggregate's id."""
        return ids.ProvisionedResourceID(self.uuid())

    def node_id(self) -> ids.NodeID:
        """Mint a node's id."""
        return ids.NodeID(self.uuid())

    def token(self, project_id: ids.ProjectID) -> TokenPlaintext:
        """Mint a token's text."""
        entropy = self._rng.randbytes(token.ENTROPY_BYTES)
        minted = token.compose(env=self.env, project_id=project_id, entropy=entropy)
        self.minted.append(minted.reveal())
        return minted

    def node_secret(self) -> bytes:
        """Mint a node's secret key."""
        return self._rng.randbytes(32)

    def signing_key(self) -> SigningKey:
        """Mint a Domain's pair."""
        private = Ed25519PrivateKey.from_private_bytes(self._keys.randbytes(32))
        public = private.public_key().public_bytes_raw()
        return SigningKey(private=private.private_bytes_raw(), public=public)


@dataclass(slots=True, kw_only=True)
class Row:
    """What Crossplane's provider knows of one substrate.

    Attributes:
        machines: Machines in the cloud, each with the bootstrap that is in the substrate.
    """

    uid: str
    name: str
    generation: int | None
    token: TokenPlaintext | None
    ready: bool = False
    failed: bool = False
    machines: int = 0


class Ground:
    """The shared state of one world."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.clock = LoopClock()
        self.ids = SeededIDs(self.stream("ids"))
        self.store = MemoryStore(clock=self.clock)
        self.cluster = SimulatedCluster()
        self.projects = InMemoryProjectGateway(
            domains={"acme": _DOMAIN}, projects={"shop": copy.deepcopy(_PROJECT)}
        )
        self.rows: dict[str, Row] = {}
        self.trace: list[str] = []
        self.tasks: set[asyncio.Task[None]] = set()
        self.built: Callable[[Row], None]
        self.observer: Callable[[str, Seen, Composed], None] | None = None
        self.mended = False
        self._digest = hashlib.sha256()

    def stream(self, name: str) -> random.Random:
        """Return the stream of random numbers of one part."""
        return random.Random(f"{self.schedule.seed}/{name}")  # noqa: S311 - a simulation

    @property
    def now_s(self) -> float:
        """Return the virtual time in seconds."""
        return asyncio.get_running_loop().time()

    def active(self, kind: Kind, target: int | None = None) -> Plan | None:
        """Return the plan of a kind that lasts now."""
        return None if self.mended else self.schedule.active(kind, self.now_s, target)

    async def over(self, kind: Kind, target: int | None = None) -> None:
        """Wait until nothing of a kind lasts any more."""
        while (plan := self.active(kind, target)) is not None:
            left = min(plan.at + plan.length_s, self.schedule.horizon_s + 1.0) - self.now_s
            await asyncio.sleep(max(0.5, left))

    def note(self, who: str, what: str) -> None:
        """Write one line of the trace."""
        line = f"{self.now_s:10.3f} {who}: {what}"
        self.trace.append(line)
        self._digest.update(line.encode())

    def digest(self) -> str:
        """Return a digest of the whole trace."""
        return self._digest.hexdigest()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something beside the rest of the world."""
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def registration(self, number: int) -> Raw:
        """Return an XR's registration policy, as a declaration holds it."""
        return RECREATE if self.schedule.recreate[number] else {}

    def machine(self, name: str) -> Machine | None:
        """Return a substrate as Crossplane shows it."""
        live = self.cluster.substrate(name)
        return None if live is None else self._shown(name, live)

    def machines(self) -> list[Machine]:
        """Return every substrate."""
        return [
            self._shown(ref[2], live)
            for ref, live in self.cluster.objects.items()
            if ref[1] == SUBSTRATE_KIND
        ]

    def build(
        self, name: str, xr: XRReference, *, born: DrawnToken | None, kept: Machine | None
    ) -> None:
        """Make a substrate, with a bootstrap or with that of one that just went."""
        uid = self.cluster.create_substrate(name, xr)
        row = Row(uid=uid, name=name, generation=None, token=None)
        if born is not None:
            row.generation, row.token = born.generation, born.plaintext
        elif kept is not None:
            row.generation, row.token = kept.generation, kept.token
        self.rows[uid] = row
        again = "" if born is not None else " again"
        self.note("crossplane", f"made {self.short(name)}{again} generation {row.generation}")
        self.cluster.heard(name)
        self.built(row)

    def ran(self, who: str, seen: Seen, composed: Composed) -> None:
        """Hear what a run of the function answered."""
        if self.observer is not None:
            self.observer(who, seen, composed)

    def short(self, name: str) -> str:
        """Return a short name for the trace."""
        return name[-6:]

    def _shown(self, name: str, live: LiveObject) -> Machine:
        row = self.rows[live.uid]
        return Machine(
            live=live,
            name=name,
            ready=row.ready,
            failed=row.failed,
            generation=row.generation,
            token=row.token,
        )

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.failed = task.exception()

    failed: BaseException | None = None
