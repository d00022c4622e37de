"""The cloud and its machines: made, failing, made twice, going slowly; and the agents on them.

What a provider does for one substrate, and what an agent does with its token. As on the
documented agent: 401, 403, 409 and 422 are fatal, the same key and nonce are sent again
after a lost reply, and transient retries stop after five minutes.
"""

from __future__ import annotations

import asyncio
import base64
from collections import Counter
from dataclasses import dataclass
from typing import Final

from reconciler.app.registration.registration import RegistrationService
from reconciler.domain.identity.denial import Denial
from reconciler.domain.identity.registration_body import RegistrationBody
from reconciler.ports.cluster.substrates import LiveObject
from reconciler.ports.registration import Registered
from tests.simulation.ground import Ground, Row
from tests.simulation.schedule import Kind
from tests.unit.reconciler import samples

GIVES_UP_S: Final = 300.0
"""For how long an agent tries again what failed in passing."""

_FATAL: Final = frozenset({400, 401, 403, 404, 409, 410, 422})


class AwayError(Exception):
    """The listener cannot be reached, or its answer is lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Agent:
    row: Row
    name: str
    key: str
    nonce: str
    number: int


class Cloud:
    """All machines of a world."""

    def __init__(self, ground: Ground, enrolment: RegistrationService) -> None:
        self._ground = ground
        self._enrolment = enrolment
        self._made: Counter[int] = Counter()
        ground.built = self._built

    def deleting(self, live: LiveObject) -> None:
        """A substrate begins to go: its machines go, and then it."""
        self._ground.spawn(self._delete(self._ground.rows[live.uid]))

    def number_of(self, row: Row) -> int:
        """Return which XR a substrate belongs to."""
        live = self._ground.cluster.substrate(row.name)
        owner = None if live is None or live.controller is None else live.controller.name
        if owner is not None:
            return int(owner.rpartition("-")[2])
        for resource in self._ground.store.resources.values():
            if resource.xr_name == row.name:
                return int(resource.key.name.rpartition("-")[2])
        return 0

    def _built(self, row: Row) -> None:
        number = self.number_of(row)
        self._made[number] += 1
        self._ground.spawn(self._create(row, number, f"{number}.{self._made[number]}"))

    def _there(self, row: Row) -> bool:
        live = self._ground.cluster.substrate(row.name)
        return live is not None and live.uid == row.uid and not live.terminating

    async def _create(self, row: Row, number: int, made: str) -> None:
        ground = self._ground
        rng = ground.stream(f"cloud/{made}")
        slow = ground.active(Kind.CLOUD_SLOW, number)
        await asyncio.sleep(rng.uniform(100.0, 300.0) if slow else rng.uniform(1.0, 12.0))
        while ground.active(Kind.CREATE_FAILS, number) and self._there(row):
            if not row.failed:
                row.failed = True
                ground.note("cloud", f"{ground.short(row.name)} failed")
                ground.cluster.heard(row.name)
            await asyncio.sleep(5.0)
        if not self._there(row):
            return
        row.failed, row.ready = False, True
        row.machines = 2 if ground.active(Kind.TWICE_CREATED, number) else 1
        ground.note("cloud", f"{ground.short(row.name)} ready, machines {row.machines}")
        ground.cluster.heard(row.name)
        for machine in range(row.machines):
            self._boot(row, f"{made}/{machine}")
        if ground.active(Kind.AGENT_CLONED, number):
            self._boot(row, f"{made}/clone")
        while (
            self._there(row) and not ground.mended and ground.schedule.planned(Kind.FLAPS, number)
        ):
            await asyncio.sleep(rng.uniform(2.0, 10.0))
            flaps = ground.active(Kind.FLAPS, number)
            wanted = not row.ready if flaps else True
            if wanted is not row.ready and self._there(row):
                row.ready = wanted
                ground.cluster.heard(row.name)
        if self._there(row) and not row.ready:
            row.ready = True
            ground.cluster.heard(row.name)

    async def _delete(self, row: Row) -> None:
        ground = self._ground
        rng = ground.stream(f"cloud/delete/{row.uid}")
        await asyncio.sleep(rng.choice((0.1, 0.3, rng.uniform(0.2, 6.0))))
        number = self.number_of(row)
        await ground.over(Kind.DELETE_HANGS, number)
        row.machines = 0
        ground.note("cloud", f"{ground.short(row.name)} deleted")
        ground.cluster.drop_machine(row.name, row.uid)
        await asyncio.sleep(rng.uniform(0.01, 0.5))
        ground.cluster.drop_substrate(row.name, row.uid)

    def _boot(self, row: Row, name: str) -> None:
        rng = self._ground.stream(f"agent/{name}")
        agent = _Agent(
            row=row,
            name=name,
            key=base64.b64encode(rng.randbytes(31) + b"\x01").decode(),
            nonce=rng.randbytes(16).hex(),
            number=self.number_of(row),
        )
        self._ground.spawn(self._run(agent))

    async def _run(self, agent: _Agent) -> None:
        ground = self._ground
        rng = ground.stream(f"agent/run/{agent.name}")
        if agent.row.token is None or ground.active(Kind.AGENT_DEAD, agent.number):
            return
        slow = ground.active(Kind.AGENT_SLOW, agent.number)
        await asyncio.sleep(rng.uniform(60.0, 400.0) if slow else rng.uniform(1.0, 15.0))
        began = ground.now_s
        while agent.row.machines and ground.now_s - began < GIVES_UP_S:
            try:
                answer = await self._register(agent)
            except AwayError:
                await asyncio.sleep(rng.uniform(1.0, 20.0))
                continue
            if isinstance(answer, Registered):
                await self._report(agent, answer)
                return
            ground.note("agent", f"{agent.name} denied {answer.code}")
            if answer.status in _FATAL:
                return
            await asyncio.sleep(rng.uniform(1.0, 20.0))

    async def _register(self, agent: _Agent) -> Registered | Denial:
        ground = self._ground
        self._reachable()
        row = agent.row
        assert row.token is not None
        body = RegistrationBody(
            project_id=str(samples.PROJECT),
            resource_handle=row.name,
            bootstrap_token=row.token,
            nonce=agent.nonce,
            public_key=agent.key,
        )
        answer = await self._enrolment.register(body, remote_address="192.0.2.1")
        if ground.active(Kind.AGENT_REPLY_LOST, agent.number):
            ground.note("agent", f"{agent.name} lost a reply")
            raise AwayError
        if isinstance(answer, Registered):
            ground.note("agent", f"{agent.name} registered generation {row.generation}")
        return answer

    async def _report(self, agent: _Agent, node: Registered) -> None:
        raw = base64.urlsafe_b64encode(node.node_id.bytes + node.nsk).decode()
        while agent.row.machines:
            await asyncio.sleep(5.0)
            try:
                self._reachable()
            except AwayError:
                continue
            proved = await self._enrolment.authenticate(f"nsk_prod_{raw}", path_node=node.node_id)
            if isinstance(proved, Denial):
                self._ground.note("agent", f"{agent.name} report denied {proved.code}")
            return

    def _reachable(self) -> None:
        ground = self._ground
        if ground.active(Kind.NODES_CUT_OFF) or ground.active(Kind.POSTGRES_AWAY):
            raise AwayError
