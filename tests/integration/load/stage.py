"""What stands around a broker on a real API server: a Project, and the others' half of records.

What the function, Crossplane and a cloud would write, as an administrator writes it, and a
`broker serve` of its own that may be killed.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from dev.controlplane import ControlPlane
from dev.process import Child, Program, answers, free_port
from dev.stack import ROOT, script
from dev.supervisor import Supervisor
from function.contract import names
from function.contract.conditions import ConditionType, find
from reconciler.adapters.kubernetes.cache.object_cache import ObjectCache
from reconciler.adapters.kubernetes.cluster import open_client
from reconciler.adapters.kubernetes.transport.client import MERGE, KubernetesClient
from tests.contract.cluster_worlds import RECORD, VM, XR, reconciler_kubeconfig
from tests.e2e.deploy.identity import BREAK_GLASS, MASTERS, Caller
from tests.e2e.deploy.manifests import example
from tests.e2e.deploy.place import Kind, held
from tests.integration.load.agents import LONG, eventually, until

READY_S: Final = 60.0
"""The broker is ready within seconds; a loaded machine needs more."""
STEP_S: Final = 300.0 if LONG else 90.0
"""One step of one record, with all others beside it and restarts in between."""

Object = dict[str, Any]


class Broker:
    """One `broker serve` after the other, at the same addresses.

    Args:
        folder: Gets its logs.
        settings: Beside its listeners, in the environment.
    """

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        self.node_url = f"http://127.0.0.1:{free_port()}"
        self.operator_url = f"http://127.0.0.1:{free_port()}"
        self._supervisor = Supervisor(folder)
        self._settings = settings
        self._child: Child | None = None

    def start(self, *, ready_s: float = READY_S) -> None:
        """Start it and return once it is ready, which it must be in time."""
        prefix = "PLEXSPHERE_PROVISIONING_BROKER"
        program = Program(
            name="broker",
            argv=[script("broker"), "serve"],
            env={
                f"{prefix}_ENROL_BASE_URL": self.node_url,
                f"{prefix}_PLEXD_DOWNLOAD_URL": "https://downloads.example.org/plexd",
                f"{prefix}_PLEXD_IMAGE": "registry.example.org/plexd:v0.8.0",
                "PLEXSPHERE_NODE_LISTEN": self.node_url.removeprefix("http://"),
                "PLEXSPHERE_OPERATOR_LISTEN": self.operator_url.removeprefix("http://"),
                "PLEXSPHERE_REGISTER_RATE": "10000/s",
                **self._settings,
            },
            cwd=ROOT,
        )
        self._child = self._supervisor.start(program)
        self._child.await_ready(lambda: answers(f"{self.operator_url}/readyz"), timeout_s=ready_s)

    def kill(self) -> None:
        """Kill it as a crash would."""
        self.assert_running()
        assert self._child is not None
        self._child.kill()

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._child is not None
        return self._child.pid

    def pause(self) -> None:
        """Have it stand still, as on a machine that is suspended."""
        assert self._child is not None
        self._child.pause()

    def resume(self) -> None:
        """Let it go on. Idempotency: one that runs, or ended, stays so."""
        assert self._child is not None
        self._child.resume()

    def stop(self) -> None:
        """End it in good order. Idempotency: a second call ends nothing."""
        self._supervisor.stop()

    @property
    def is_running(self) -> bool:
        """Whether its process is there, standing still or not."""
        return self._child is not None and self._child.status is None

    def assert_running(self) -> None:
        """Assert that it did not end by itself."""
        assert self.is_running, "it ended by itself"


class Stage:
    """A Project on a real API server, and the records in its namespace."""

    def __init__(self, plane: ControlPlane, client: KubernetesClient) -> None:
        self.plane = plane
        self._client = client
        self._name = f"load-{uuid4().hex[:10]}"
        self._project = str(uuid4())
        self.namespace = f"plexsphere-project-{self._project}"
        self._records = ObjectCache(client, self._all(RECORD), on_change=lambda _key: None)

    @property
    def project(self) -> str:
        """The Project's id."""
        return self._project

    def install(self) -> None:
        """Make the tenancy and the catalogue that the records refer to."""
        made = {kind: example(kind, self._name) for kind in _CATALOGUE}
        made["Project"]["spec"] = {"id": self._project, "domainRef": {"name": self._name}}
        made["Cloud"]["spec"] = {"provider": "generic", "endpoint": {}}
        made["CloudCredential"]["spec"] = {
            "cloudRef": {"name": self._name},
            "vault": {"mount": "kv", "path": self._name},
            "projects": [self._name],
        }
        made["BlueprintVersion"]["spec"] |= {"providerKinds": ["generic"]}
        made["BlueprintVersion"]["spec"].pop("providerConfig")
        # The version before knows none, and is a program of these tests, too.
        made["BlueprintVersion"]["spec"].pop("constants")
        self.plane.apply(*made.values())

    async def declare(self, name: str) -> str:
        """Make an XR and its record, as the function's first run does; return the record's name."""
        xr = await self._create(XR, {"metadata": {"name": name}})
        owner = {key: xr[key] for key in ("apiVersion", "kind")}
        owner |= {key: xr["metadata"][key] for key in ("name", "uid")}
        record = example(names.RECORD_KIND, f"{name}-record")
        record["metadata"] |= {
            "ownerReferences": [{**owner, "controller": True}],
            "labels": {names.LABEL_XR: name},
        }
        declaration = record["spec"]["declaration"]
        declaration["parameters"].pop("namespace")
        declaration |= {
            "xr": owner,
            "blueprint": {"name": self._name, "version": "v1alpha1"},
            "provider": "generic",
            "cloudCredential": self._name,
        }
        substrate = [{"apiVersion": f"{VM[0]}/v1alpha1", "kind": VM[1], "name": ""}]
        record["spec"] = {"declaration": declaration, "substrate": substrate, "observed": {}}
        made = await self._create(RECORD, record)
        return str(made["metadata"]["name"])

    async def token(self, record: str) -> str:
        """Wait for a record's token and read it, as the function does."""
        await self.until(record, lambda status: secret_name(status) is not None, "its token")
        secret = await self._client.request(
            "GET",
            f"/api/v1/namespaces/{self.namespace}/secrets/{secret_name(self.status(record))}",
        )
        return base64.b64decode(secret["data"][names.TOKEN_SECRET_KEY]).decode()

    async def compose(self, record: str) -> None:
        """Make the substrate, and say in the record that it is there, not ready yet."""
        status = self.status(record)
        name, generation = status["xrName"], status["bootstrap"]["generation"]
        labels = held(**{names.LABEL_RECORD: record})
        annotations = {names.ANNOTATION_GENERATION: str(generation)}
        metadata = {"name": name, "labels": labels, "annotations": annotations}
        await self._create(VM, {"metadata": metadata})
        observed = {"exists": True, "ready": False, "bootstrapGeneration": generation}
        await self._say(record, observed)

    async def ready(self, record: str) -> None:
        """Say in the record that its substrate is ready."""
        await self._say(record, {"ready": True})

    def status(self, record: str) -> Object:
        """Return a record's status as far as it was heard."""
        return (self._records.get((self.namespace, record)) or {}).get("status") or {}

    def tokens(self) -> int:
        """Count the records that have a token to deliver."""
        found = [item.get("status") or {} for item in self._records.items().values()]
        return sum(secret_name(status) is not None for status in found)

    async def until(self, record: str, fact: Callable[[Object], bool], what: str) -> None:
        """Wait until a record's status says something."""
        try:
            await until(lambda: fact(self.status(record)), timeout_s=STEP_S, what=what)
        except AssertionError as error:
            error.add_note(f"{record}: {self.status(record)}")
            raise

    async def follow(self) -> None:
        """Keep `records` up to date until cancelled, as Crossplane's watch does."""
        await self._records.run()

    async def secrets(self) -> list[str]:
        """Name the token Secrets that are left."""
        listing = await self._client.request("GET", f"/api/v1/namespaces/{self.namespace}/secrets")
        return [
            item["metadata"]["name"]
            for item in listing["items"]
            if item["type"] == names.TOKEN_SECRET_TYPE
        ]

    async def namespace_is_there(self) -> None:
        """Wait until the broker made the Project's namespace."""
        path = f"/api/v1/namespaces/{self.namespace}"
        await eventually(lambda: self._client.get(path), timeout_s=STEP_S, what="the namespace")

    def clear(self) -> None:
        """Take away everything, whatever holds it."""
        admin = Caller(self.plane.kubeconfig).as_user("tests", MASTERS, BREAK_GLASS)
        for kind in (VM, XR, RECORD):
            for item in admin.get(self._all(kind)).body.get("items", []):
                path = f"{self._all(kind)}/{item['metadata']['name']}"
                admin.patch(path, {"metadata": {"finalizers": None}})
                admin.delete(path)
        for plural in _CATALOGUE.values():
            admin.delete(f"/apis/{names.API_VERSION}/{plural}/{self._name}")
        admin.delete(f"/api/v1/namespaces/{self.namespace}")

    async def _say(self, record: str, observed: Object) -> None:
        body = {"spec": {"observed": observed}}
        path = f"{self._all(RECORD)}/{record}"
        await self._client.request("PATCH", path, body=body, content_type=MERGE)

    async def _create(self, kind: Kind, body: Object) -> Object:
        whole = {"apiVersion": f"{kind[0]}/v1alpha1", "kind": kind[1], **body}
        return await self._client.request("POST", self._all(kind), body=whole)

    def _all(self, kind: Kind) -> str:
        return f"/apis/{kind[0]}/v1alpha1/namespaces/{self.namespace}/{kind[2]}"


_CATALOGUE: Final = {
    "Domain": "domains",
    "Project": "projects",
    "Cloud": "clouds",
    "CloudCredential": "cloudcredentials",
    "BlueprintVersion": "blueprintversions",
}


@asynccontextmanager
async def furnished(plane: ControlPlane, broker: Broker) -> AsyncIterator[Stage]:
    """Yield a Project that the broker has taken up; its records are followed."""
    client = await open_client(plane.kubeconfig)
    stage = Stage(plane, client)
    try:
        await asyncio.to_thread(stage.install)
        await asyncio.to_thread(broker.start)
        await stage.namespace_is_there()
        following = asyncio.create_task(stage.follow())
        try:
            yield stage
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
    finally:
        await asyncio.to_thread(broker.stop)
        await asyncio.to_thread(stage.clear)
        await client.close()


def cluster_settings(plane: ControlPlane) -> dict[str, str]:
    """Return the settings of a broker on this plane, under its own account."""
    return {"KUBECONFIG": str(reconciler_kubeconfig(plane))}


def secret_name(status: Object) -> str | None:
    """Return the Secret that a record's token is delivered in, or None."""
    reference = (status.get("bootstrap") or {}).get("secretRef")
    return None if reference is None else str(reference["name"])


def stalled(status: Object) -> str | None:
    """Return why a record is stalled, or None."""
    found = find(status, ConditionType.STALLED)
    return found.reason if found is not None and found.status == "True" else None
