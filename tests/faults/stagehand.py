"""One life on a real API server and a real Postgres, and everybody else's part in it.

A broker of one record that may be killed and begun anew, and what function, Crossplane,
collector and machine do meanwhile. Time passes by moving what the database remembers.
"""

from __future__ import annotations

import asyncio
import base64
import copy
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum, unique
from typing import Any, Final, LiteralString
from uuid import UUID, uuid4

from function.contract import names
from function.contract.secrets import TokenPlaintext
from function.contract.strategy import Phase
from reconciler.adapters.identity.secret_source import SystemSecretSource
from reconciler.adapters.kubernetes.gateway import KubernetesGateway
from reconciler.adapters.postgres.aggregates.broker_repository import PostgresBrokerRepository
from reconciler.adapters.postgres.aggregates.tenancy_repository import PostgresTenancyRepository
from reconciler.adapters.postgres.connection.fence import FencedStore
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.identity.registration_body import RegistrationBody
from reconciler.ports.cluster.catalog import ProjectView
from reconciler.ports.registration import Registered
from tests.contract.cluster_worlds import RECORD, VM, XR, await_rights
from tests.e2e.deploy.identity import Answer
from tests.e2e.deploy.manifests import example
from tests.e2e.deploy.place import Kind, held
from tests.faults.ground import Ground
from tests.faults.process import Catalogue, Process
from tests.faults.wire import KilledError, Wire
from tests.unit.reconciler import samples

ROUNDS_MAX: Final = 40
"""A life without faults takes a third of it; one fault costs a few rounds more."""
RESTART: Final = "31 seconds"
"""How long a process is away: longer than the pause between two generations."""
MESH: Final = "100.64.0.0/29"

_PASSED: Final[LiteralString] = """
UPDATE plexsphere.bootstrap_tokens
SET issued_at = issued_at - $2::text::interval, expires_at = expires_at - $2::text::interval
WHERE project_id = $1 AND consumed_at IS NULL AND revoked_at IS NULL
"""
_ROW: Final[LiteralString] = """
SELECT id FROM plexsphere.provisioned_resources
WHERE project_id = $1 ORDER BY created_at DESC, id DESC LIMIT 1
"""
_LIVE_NODES: Final[LiteralString] = """
SELECT count(*) FROM plexsphere.nodes WHERE project_id = $1 AND deregistered_at IS NULL
"""

CREDENTIAL: Final = "demo-main"
SECRET: Final = names.cloud_credentials_secret_name(mount="kv", path="acme/demo")

Object = dict[str, Any]


@unique
class Way(StrEnum):
    """Whose deletion begins a teardown: the record's, while its XR lives, or the XR's."""

    REPLACED = "replaced"
    XR_GONE = "xr-gone"


@dataclass(slots=True, kw_only=True)
class Machine:
    """A machine with the token it was booted with.

    Attributes:
        body: What it says when it registers, the same each time.
        nodes: The ids it was told that it is.
    """

    body: RegistrationBody
    nodes: set[UUID] = field(default_factory=set)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What stands on the API server and in the database at one moment."""

    record: Object | None
    substrate: Object | None
    resource: ProvisionedResource | None

    @property
    def phase(self) -> str | None:
        """The phase that the record shows."""
        return ((self.record or {}).get("status") or {}).get("phase")

    @property
    def versions(self) -> object:
        """What differs once anything was written."""
        objects = (self.record, self.substrate)
        read = [None if item is None else item["metadata"]["resourceVersion"] for item in objects]
        return read, None if self.resource is None else self.resource.version


class Life:
    """One record from its declaration to its end.

    Attributes:
        vm, xr: The kinds of its substrate and of its composite.
        errors: What rounds died of, oldest first; a worker would wait and begin anew.
        machine: The one that runs; None while there is none.
        given_up: A person gave its node up, so that nothing is promised of the order.
    """

    def __init__(self, ground: Ground, wire: Wire, *, vm: Kind = VM, xr: Kind = XR) -> None:
        self.ground = ground
        self.wire = wire
        self.vm, self.xr = vm, xr
        self.project = ids.ProjectID(uuid4())
        self.namespace = names.project_namespace(self.project)
        self.name = f"web-{self.project.hex[:10]}"
        self.view = ProjectView(
            id=self.project,
            name=f"shop-{self.project}",
            namespace=self.namespace,
            namespace_ready=True,
        )
        self.catalogue = Catalogue(self.view, kind=vm[1])
        self.process = Process(ground, self.catalogue, wire)
        self.errors: list[Exception] = []
        self.machine: Machine | None = None
        self.given_up = False
        self._admin = ground.admin
        self._crossplane = ground.crossplane
        self._xr: Object = {}
        self._way: Way | None = None
        self._seen: _Seen | None = None

    async def begin(self) -> None:
        """Make the Project, its credential's Secret, an XR and its record."""
        tenancy = PostgresTenancyRepository(
            FencedStore(self.ground.pool), SystemSecretSource(env="prod")
        )
        domain = f"domain-{self.project}"
        await tenancy.ensure_domain(domain, MESH)
        await tenancy.ensure_project(self.project, self.view.name, domain)
        await tenancy.ensure_cluster("local", "Local")
        await self._make("/api/v1/namespaces", {"metadata": {"name": self.namespace}}, "Namespace")
        # As with each Project's namespace, the account has its rights there before it is Ready.
        await KubernetesGateway(self.ground.client).namespaces.hold_namespace(
            self.namespace, records=0
        )
        await asyncio.to_thread(await_rights, self.ground.admin, self.namespace)
        secret = {"metadata": {"name": SECRET}, "stringData": {"token": "sample"}}
        await self._make(f"/api/v1/namespaces/{self.namespace}/secrets", secret, "Secret")
        self._xr = await self._create(self.xr, {"metadata": {"name": self.name}})
        await self.declare()

    async def declare(self) -> None:
        """Make the record, as the function's first run does; again after an earlier one went."""
        self._way, self._seen, self.machine = None, None, None
        await self._create(RECORD, self._record())

    async def until_ready(self) -> None:
        """Take it to Ready and to rest."""
        await self._until(lambda seen: seen.phase == "Ready", "Ready")

    async def until_gone(self) -> None:
        """Take it to its end and to rest, once it was deleted."""
        await self._until(lambda seen: seen.record is None, "gone")

    async def delete(self, way: Way) -> None:
        """Begin its end, as the collector would where the XR is what was deleted."""
        self._way, self._seen = way, None
        if way is Way.XR_GONE:
            await self.call("DELETE", self.path(self.xr))
        await self.call("DELETE", self.path(RECORD))

    async def vanish(self) -> None:
        """Have XR and record be gone at once, past the record's finalizer, as out of etcd."""
        self._way, self._seen = Way.XR_GONE, None
        await self.call("DELETE", self.path(self.xr))
        await self.call("PATCH", self.path(RECORD), {"metadata": {"finalizers": None}})
        await self.call("DELETE", self.path(RECORD))

    async def look(self) -> None:
        """Have the broker look at the record once, and nobody else do anything."""
        record = await self.record()
        assert record is not None
        await self.process.tick.run(record)
        self.forget()

    async def round(self) -> bool:
        """Do what each party would do next; tell whether nothing is left to do."""
        before, broken = self._seen or await self._look(), False
        try:
            await self._turn(before.record)
        except KilledError:
            self.process, broken = Process(self.ground, self.catalogue, self.wire), True
        except Exception as error:  # noqa: BLE001 - as a worker of the queue does
            self.errors.append(error)
            broken = True
        if broken:
            await self.ground.pool.execute(_PASSED, self.project, RESTART)
        seen = await self._look()
        self._seen = await self._look() if await self._react(seen) else seen
        await self._assert_order()
        return not broken and before.versions == self._seen.versions

    async def record(self) -> Object | None:
        """Return the record as it is."""
        return await self.find(self.path(RECORD))

    async def substrate(self) -> Object | None:
        """Return the substrate as it is."""
        return (await self._look()).substrate

    async def reasons(self) -> set[str]:
        """Return the reasons of the record's conditions; none of a record that is gone."""
        status = ((await self.record()) or {}).get("status") or {}
        return {item["reason"] for item in status.get("conditions") or []}

    async def messages(self) -> list[str]:
        """Return the messages of the record's conditions."""
        status = ((await self.record()) or {}).get("status") or {}
        return [item["message"] for item in status.get("conditions") or []]

    def forget(self) -> None:
        """Look again before the next round: somebody wrote to something."""
        self._seen = None

    async def resource(self) -> ProvisionedResource | None:
        """Return the aggregate as it is stored; None before the first."""
        found = await self.ground.pool.fetchval(_ROW, self.project)
        if found is None:
            return None
        whole = PostgresBrokerRepository(FencedStore(self.ground.pool), samples.CLUSTER)
        return await whole.get(ids.ProvisionedResourceID(UUID(int=found.int)))

    @property
    def path_of_record(self) -> str:
        """Where the record is."""
        return self.path(RECORD)

    def path(self, kind: Kind, name: str = "") -> str:
        """Return the path of this life's object of a kind."""
        return f"{self._all(kind)}/{name or self.name}"

    async def find(self, path: str) -> Object | None:
        """Return whatever is at a path."""
        return await self.ground.viewer.get(path)

    async def call(self, method: str, path: str, body: Object | None = None) -> None:
        """Ask for something whose object may have gone meanwhile."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        answer = await asyncio.to_thread(self._admin.request, method, path, body, content_type=kind)
        assert answer.ok or answer.status == 404, answer.message

    async def make_again(self) -> None:
        """Put another substrate in the place of the one that is there.

        So does a pipeline run in flight after break-glass; no node comes of its document.
        """
        substrate = await self.substrate()
        assert substrate is not None
        metadata = {key: substrate["metadata"][key] for key in ("name", "labels", "annotations")}
        path = self.path(self.vm, metadata["name"])
        await self.call("PATCH", path, {"metadata": {"finalizers": None}})
        await self.call("DELETE", path)
        await self._create(self.vm, {"metadata": metadata})
        self.forget()

    async def clear(self) -> None:
        """Take away everything, whatever holds it."""
        for kind in (self.vm, RECORD, self.xr):
            listing = await self.find(self._all(kind)) or {}
            for item in listing.get("items", []):
                path = self.path(kind, item["metadata"]["name"])
                await self.call("DELETE", path)
                await self.call("PATCH", path, {"metadata": {"finalizers": None}})
        await self.call("DELETE", f"/api/v1/namespaces/{self.namespace}")

    async def _until(self, fact: Callable[[_Seen], bool], what: str) -> None:
        for _ in range(ROUNDS_MAX):
            if await self.round() and self._seen is not None and fact(self._seen):
                return
        message = f"it does not come to rest {what}: {self.errors[-3:]} {self._seen}"
        raise AssertionError(message)

    async def _look(self) -> _Seen:
        record, resource = await self.record(), await self.resource()
        named = ((record or {}).get("status") or {}).get("xrName")
        name = named or (None if resource is None else resource.xr_name)
        substrate = None if name is None else await self.find(self.path(self.vm, name))
        return _Seen(record=record, substrate=substrate, resource=resource)

    async def _turn(self, record: Object | None) -> None:
        if record is not None:
            await self.process.tick.run(copy.deepcopy(record))
        else:
            resource = await self.resource()
            if resource is not None and resource.phase is not Phase.DELETED:
                await self.process.teardown.run_missing(resource)
            for namespace, credential in await self.process.tick.credentials.loose():
                if namespace == self.namespace:
                    await self.process.tick.credentials.settle(namespace, credential)
        await self._boot(record)

    async def _boot(self, record: Object | None) -> None:
        """Register the machine once its substrate is ready, until it is told that it is in."""
        phase = ((record or {}).get("status") or {}).get("phase")
        machine = self.machine
        if machine is None or machine.nodes or phase != "Enrolling":
            return
        answer = await self.process.enrolment.register(machine.body, remote_address="192.0.2.1")
        if isinstance(answer, Registered):
            machine.nodes.add(answer.node_id)
        else:
            assert answer.status == 503, answer

    async def _react(self, seen: _Seen) -> bool:
        """Do what function, Crossplane and collector do; tell whether there was anything."""
        record, vm = seen.record, seen.substrate
        acted = vm is not None and "deletionTimestamp" in vm["metadata"]
        if vm is not None and acted:
            path = self.path(self.vm, vm["metadata"]["name"])
            await self.call("PATCH", path, {"metadata": {"finalizers": None}})
            self.machine, vm = None, None
        if record is None:
            return acted
        composing = self._way is not Way.XR_GONE
        if (record.get("status") or {}).get("substrate") == "Absent":
            if composing:
                await self._drop(record, vm)
                acted, vm = True, None
        elif composing and record["spec"].get("released"):
            await self.call("PATCH", self.path(RECORD), {"spec": {"released": None}})
            acted = True
        elif composing and vm is None and "deletionTimestamp" not in record["metadata"]:
            vm = await self._compose(record)
        return await self._observe(record, vm) or acted

    async def _drop(self, record: Object, vm: Object | None) -> None:
        if not record["spec"].get("released"):
            await self.call("PATCH", self.path(RECORD), {"spec": {"released": True}})
        if vm is not None:
            path = self.path(self.vm, vm["metadata"]["name"])
            options = {"propagationPolicy": "Foreground"}
            _ok(await asyncio.to_thread(self._crossplane.request, "DELETE", path, options))

    async def _compose(self, record: Object) -> Object | None:
        status = record.get("status") or {}
        bootstrap = status.get("bootstrap") or {}
        named = (bootstrap.get("secretRef") or {}).get("name")
        path = f"/api/v1/namespaces/{self.namespace}/secrets/{named}"
        secret = None if named is None else await self.find(path)
        if secret is None:
            return None
        token = base64.b64decode(secret["data"][names.TOKEN_SECRET_KEY]).decode()
        metadata = {
            "name": status["xrName"],
            "labels": held(**{names.LABEL_RECORD: record["metadata"]["name"]}),
            "annotations": {names.ANNOTATION_GENERATION: str(bootstrap["generation"])},
        }
        body = RegistrationBody(
            project_id=str(self.project),
            resource_handle=status["xrName"],
            bootstrap_token=TokenPlaintext(token),
            nonce=secrets.token_hex(16),
            public_key=base64.b64encode(secrets.token_bytes(32)).decode(),
        )
        self.machine = Machine(body=body)
        return await self._create(self.vm, {"metadata": metadata})

    async def _observe(self, record: Object, vm: Object | None) -> bool:
        observed: Object = {"exists": vm is not None, "ready": vm is not None}
        if vm is not None:
            generation = vm["metadata"]["annotations"][names.ANNOTATION_GENERATION]
            observed["bootstrapGeneration"] = int(generation)
            observed["uid"] = vm["metadata"]["uid"]
        if record["spec"]["observed"] == observed:
            return False
        fresh = {"bootstrapGeneration": None, "uid": None, **observed}
        await self.call("PATCH", self.path(RECORD), {"spec": {"observed": fresh}})
        return True

    async def _assert_order(self) -> None:
        """Assert that no substrate goes while its node is in the mesh (promise 3)."""
        if self._way is None or self._seen is None or self._seen.substrate is not None:
            return
        if self.given_up:
            return
        assert await self.ground.pool.fetchval(_LIVE_NODES, self.project) == 0

    def _record(self) -> Object:
        owner = {key: self._xr[key] for key in ("apiVersion", "kind")}
        owner |= {key: self._xr["metadata"][key] for key in ("name", "uid")}
        record = example(names.RECORD_KIND, self.name)
        record["metadata"] |= {
            "ownerReferences": [{**owner, "controller": True}],
            "labels": {names.LABEL_XR: self.name},
            "finalizers": [names.FINALIZER],
        }
        declaration = samples.DECLARATION.model_dump(mode="json", by_alias=True, exclude_none=True)
        substrate = [{"apiVersion": f"{self.vm[0]}/v1alpha1", "kind": self.vm[1], "name": ""}]
        observed = {"exists": False, "ready": False}
        record["spec"] = {
            "declaration": {**declaration, "xr": owner},
            "substrate": substrate,
            "observed": observed,
        }
        return record

    def _all(self, kind: Kind) -> str:
        return f"/apis/{kind[0]}/v1alpha1/namespaces/{self.namespace}/{kind[2]}"

    async def _create(self, kind: Kind, body: Object) -> Object:
        version = f"{kind[0]}/v1alpha1"
        return await self._make(self._all(kind), {**body, "apiVersion": version}, kind[1])

    async def _make(self, path: str, body: Object, kind: str) -> Object:
        whole = {"apiVersion": "v1", **body, "kind": kind}
        return _ok(await asyncio.to_thread(self._admin.create, path, whole))


def _ok(answer: Answer) -> Object:
    assert answer.ok, answer.message
    return answer.body
