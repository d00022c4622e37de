"""What people publish on a real API server, as the reconciler's caches hold it.

Writing an object of ours that has no namespace, and waiting until it was heard.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from dev.controlplane import ControlPlane
from function.contract import names
from reconciler.adapters.kubernetes.cluster import Cluster, open_client
from tests.contract.cluster_worlds import reconciler_kubeconfig
from tests.e2e.deploy.identity import Answer, Caller

Raw = dict[str, Any]
HEARD_S: Final = 30.0


class Published:
    """The caches of a real API server, and an administrator who writes what they hold."""

    def __init__(self, cluster: Cluster, admin: Caller) -> None:
        self.cluster = cluster
        self.admin = admin
        self._made: set[str] = set()

    async def write(self, kind: str, name: str, spec: Raw) -> Raw:
        """Make an object, or edit it."""
        path = self.path(kind, name)
        if path in self._made:
            answer = self.admin.patch(path, {"spec": spec})
        else:
            head = {"apiVersion": names.API_VERSION, "kind": kind, "metadata": {"name": name}}
            answer = self.admin.create(self.path(kind), {**head, "spec": spec})
            self._made.add(path)
        return await self._heard(kind, name, answer)

    async def say(self, kind: str, name: str, status: Raw) -> Raw:
        """Write an object's status."""
        path = f"{self.path(kind, name)}/status"
        return await self._heard(kind, name, self.admin.patch(path, {"status": status}))

    async def withdraw(self, kind: str, name: str) -> None:
        """Take an object away."""
        path = self.path(kind, name)
        assert self.admin.delete(path).ok
        self._made.discard(path)
        await self._until(kind, name, None)

    def wrote(self, kind: str, name: str) -> bool:
        """Tell whether an object is there by our hand."""
        return self.path(kind, name) in self._made

    @staticmethod
    def path(kind: str, name: str = "") -> str:
        """Return an object's path, or that of its kind's collection."""
        collection = f"/apis/{names.API_VERSION}/{kind.lower()}s"
        return f"{collection}/{name}" if name else collection

    def clear(self) -> None:
        """Take away what a test left."""
        for path in self._made:
            self.admin.delete(path)

    async def _heard(self, kind: str, name: str, answer: Answer) -> Raw:
        assert answer.ok, answer.message
        await self._until(kind, name, answer.body["metadata"]["resourceVersion"])
        return answer.body

    async def _until(self, kind: str, name: str, version: str | None) -> None:
        cache = self.cluster.caches[f"{kind.lower()}s"]
        async with asyncio.timeout(HEARD_S):
            while cache.version(("", name)) != version:  # noqa: ASYNC110 - a cache tells a key and not us
                await asyncio.sleep(0.01)


@asynccontextmanager
async def publishing(plane: ControlPlane) -> AsyncIterator[Published]:
    """Follow a control plane as the reconciler's account; what was written goes again."""
    client = await open_client(reconciler_kubeconfig(plane))
    cluster = Cluster(client, on_change=lambda _kind, _key: None)
    following = asyncio.create_task(cluster.run())
    await cluster.wait_synced()
    found = Published(cluster, Caller(plane.kubeconfig))
    try:
        yield found
    finally:
        found.clear()
        # Connections first: that takes leave of the server, and a cancelled watch does not.
        await client.close()
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
