"""One life on the stage: what function, Crossplane, collector and machine do in it.

Taking a record to Ready and to its end.
"""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
from dataclasses import dataclass
from typing import Any, Self

from tests.contract.cluster_worlds import RECORD, VM, XR
from tests.e2e.deploy.identity import BREAK_GLASS, MASTERS, Caller
from tests.e2e.deploy.place import Kind
from tests.integration.load.agents import Agents, Reply, eventually
from tests.integration.load.stage import STEP_S, Stage


@dataclass(slots=True, kw_only=True)
class Life:
    """One record and its machine.

    Attributes:
        record: Its name.
        handle: Name of its substrate.
        body: The machine's registration, the same each time.
        reply: What it was told; empty before.
    """

    stage: Stage
    name: str
    record: str = ""
    handle: str = ""
    body: bytes = b""
    reply: Reply

    @classmethod
    async def begun(cls, stage: Stage, name: str) -> Self:
        """Declare it and compose its substrate, ready and with the token in it."""
        life = cls(stage=stage, name=name, reply={})
        life.record = await stage.declare(name)
        token = await stage.token(life.record)
        life.handle = str(life.status["xrName"])
        await stage.compose(life.record)
        await stage.ready(life.record)
        await life.until_phase("Enrolling")
        body = {
            "project_id": stage.project,
            "resource_handle": life.handle,
            "bootstrap_token": token,
            "nonce": secrets.token_hex(16),
            "public_key": base64.b64encode(secrets.token_bytes(32)).decode(),
        }
        life.body = json.dumps(body).encode()
        return life

    @property
    def status(self) -> dict[str, Any]:
        """The record's status as far as it was heard."""
        return self.stage.status(self.record)

    async def until_phase(self, phase: str) -> None:
        """Wait for a phase."""
        await self.stage.until(self.record, lambda status: status.get("phase") == phase, phase)

    async def registers(self, agents: Agents) -> None:
        """Boot the machine and see it Ready."""
        self.reply = await agents.register(self.body)
        await self.until_phase("Ready")

    async def ends(self) -> None:
        """Delete the XR as a user does, and do the collector's part until all is gone."""
        await self._admin("DELETE", self._path(XR, self.name))
        await self._admin("DELETE", self._path(RECORD, self.record))
        await eventually(self._has_ended, timeout_s=STEP_S, what=f"the end of {self.record}")

    async def observes(self, **observed: Any) -> None:
        """Say in the record what is seen of the substrate, as the function does."""
        await self._admin(
            "PATCH", self._path(RECORD, self.record), {"spec": {"observed": observed}}
        )

    async def retries(self) -> None:
        """Raise the declared `retry`, as the function does when the user raised the XR's."""
        accepted = int(self.status["accepted"].get("retry", 0))
        body = {"spec": {"declaration": {"retry": accepted + 1}}}
        await self._admin("PATCH", self._path(RECORD, self.record), body)

    async def loses_status(self) -> None:
        """Take the record's status away, as a restore of the cluster without it does."""
        path = f"{self._path(RECORD, self.record)}/status"
        await self._admin("PATCH", path, {"status": None})

    async def _has_ended(self) -> bool:
        path = self._path(VM, self.handle)
        found = await self._admin("GET", path)
        if found and "deletionTimestamp" in found["metadata"]:
            await self._admin("PATCH", path, {"metadata": {"finalizers": None}})
        return await self._admin("GET", self._path(RECORD, self.record)) is None

    def _path(self, kind: Kind, name: str) -> str:
        return f"/apis/{kind[0]}/v1alpha1/namespaces/{self.stage.namespace}/{kind[2]}/{name}"

    async def _admin(
        self, method: str, path: str, body: dict[str, Any] | None = None
    ) -> dict[str, Any] | None:
        """Call as somebody whom nothing is refused; None where there is nothing."""
        caller = Caller(self.stage.plane.kubeconfig).as_user("tests", MASTERS, BREAK_GLASS)
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        answer = await asyncio.to_thread(caller.request, method, path, body, content_type=kind)
        assert answer.ok or answer.status == 404, answer.message
        return answer.body if answer.ok else None
