"""A crowd: thousands of nodes that are Ready, made from one that went the whole way.

Copying that one's record and rows. The copies differ in names and ids alone, so that a
reconciler which looks at them finds nothing to do, as it would after a restart beside a
fleet. Function, Crossplane and cloud are not there: their half of the records is written by
an administrator, and no object of theirs stands behind them.
"""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Any, Final, LiteralString, TypeVar
from uuid import UUID, uuid4

import aiohttp
import asyncpg
from uuid_utils.compat import uuid7

from dev.controlplane import ControlPlane
from function.contract import names
from reconciler.adapters.kubernetes.cluster import open_client
from reconciler.adapters.kubernetes.transport.client import MERGE, KubernetesClient
from tests.contract.cluster_worlds import RECORD, VM, XR
from tests.e2e.deploy import holding
from tests.e2e.deploy.place import definition
from tests.integration.load.agents import Agents, eventually
from tests.integration.load.stage import Broker, Stage, furnished

Object = dict[str, Any]

CONNECTIONS: Final = 16
"""Requests at once: what one client of an API server is given."""

TEMPLATE: Final = "template"
MESH_BASE: Final = int(IPv4Address("100.64.16.0"))
"""Past what the first node got."""

PLACED_S: Final = 120.0
"""Until the broker made every Project's namespace."""

WRITERS: Final = 16
"""Writes to etcd at once; each has a revision of its own, as every API server's has. Of several
objects in one revision a watch that breaks in their midst would miss some for good."""

BATCH: Final = 1000
"""Rows of one statement."""

T = TypeVar("T")

_COPY: LiteralString = """
INSERT INTO plexsphere.{table}
SELECT (jsonb_populate_record(null::plexsphere.{table}, row)).* FROM unnest($1::jsonb[]) AS row
"""
_READ: LiteralString = "SELECT to_jsonb(row) FROM plexsphere.{table} AS row WHERE {key} = $1"
_TOLD: LiteralString = """
UPDATE plexsphere.outbox_events SET published_at = now() WHERE published_at IS NULL
"""
"""What the copies' rows told by triggers is of a life that nobody measures."""
_SPENT: LiteralString = """
UPDATE plexsphere.provisioned_resources AS resource SET bootstrap_token_id = token.id
FROM plexsphere.bootstrap_tokens AS token
WHERE token.provisioned_resource_id = resource.id AND resource.bootstrap_token_id IS NULL
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One copy: where its record is, and the ids of its rows."""

    project: UUID
    name: str
    resource: UUID
    uid: str
    node: str
    mesh_ip: str

    @property
    def namespace(self) -> str:
        """Return where its record is."""
        return names.project_namespace(self.project)

    @property
    def xr(self) -> str:
        """Return the name of its composite."""
        return self.name.removesuffix("-record")

    @property
    def path(self) -> str:
        """Return the path of its record."""
        kind = f"/apis/{RECORD[0]}/v1alpha1/namespaces/{self.namespace}/{RECORD[2]}"
        return f"{kind}/{self.name}"


class Crowd:
    """What is copied, and where to.

    Args:
        plane: An API server with our kinds; its controllers are stopped before copies are made.
        dsn: The database of the broker.
        broker: Stopped once the template is Ready.
    """

    def __init__(self, plane: ControlPlane, dsn: str, broker: Broker) -> None:
        self._plane = plane
        self._dsn = dsn
        self._broker = broker
        self._record: Object = {}
        self._project = ""

    def furnish(self) -> None:
        """Apply our kinds and policies, and kinds for what stands behind a record."""
        holding.apply_kinds(self._plane)
        holding.apply_policies(self._plane, "hold", "hold-children", "hold-records")
        self._plane.apply(definition(VM), definition(XR))

    @asynccontextmanager
    async def made(self, *, count: int, projects: int) -> AsyncIterator[list[Member]]:
        """Make so many members, spread over so many Projects; the broker is stopped inside.

        Everything is taken away behind the block.
        """
        client = await open_client(self._plane.kubeconfig)
        try:
            async with furnished(self._plane, self._broker) as stage:
                self._project = stage.project
                self._record = await self._template(stage, client)
                places = [str(uuid4()) for _ in range(projects)]
                await self._place(client, places)
                await self._credentials(client, [self._project, *places])
                await asyncio.to_thread(self._broker.stop)
                self._plane.stop_controllers()
                members = self._members(places, count)
                await self._rows(members)
                await self._records(members)
                yield members
        finally:
            await client.close()

    async def _template(self, stage: Stage, client: KubernetesClient) -> Object:
        record = await stage.declare(TEMPLATE)
        token = await stage.token(record)
        await stage.compose(record)
        await stage.ready(record)
        body = {
            "project_id": stage.project,
            "resource_handle": stage.status(record)["xrName"],
            "bootstrap_token": token,
            "nonce": secrets.token_hex(16),
            "public_key": base64.b64encode(secrets.token_bytes(32)).decode(),
        }
        async with aiohttp.ClientSession(self._broker.node_url) as session:
            await Agents(session).register(json.dumps(body).encode())
        await stage.until(record, lambda status: status.get("phase") == "Ready", "Ready")
        path = f"/apis/{RECORD[0]}/v1alpha1/namespaces/{stage.namespace}/{RECORD[2]}/{record}"
        return await client.request("GET", path)

    async def _place(self, client: KubernetesClient, places: Sequence[str]) -> None:
        """Make the Projects, and wait until the broker made their namespaces."""
        domain = self._record["spec"]["declaration"]["cloudCredential"]

        async def place(project: str) -> None:
            body = {
                "apiVersion": names.API_VERSION,
                "kind": "Project",
                "metadata": {"name": f"crowd-{project}"},
                "spec": {"id": project, "domainRef": {"name": domain}},
            }
            await client.request("POST", f"/apis/{names.API_VERSION}/projects", body=body)
            path = f"/api/v1/namespaces/{names.project_namespace(UUID(project))}"
            await eventually(lambda: client.get(path), timeout_s=PLACED_S, what="a namespace")

        await _side_by_side([place(project) for project in places])
        credential = f"/apis/{names.API_VERSION}/cloudcredentials/{domain}"
        allowed = {"spec": {"projects": [domain, *(f"crowd-{project}" for project in places)]}}
        await client.request("PATCH", credential, body=allowed, content_type=MERGE)

    async def _credentials(self, client: KubernetesClient, places: Sequence[str]) -> None:
        """Put the cloud's Secret into each Project's namespace, as a secret store would."""
        own = self._record["spec"]["declaration"]["cloudCredential"]
        name = names.cloud_credentials_secret_name(mount="kv", path=own)
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}
        spaces = (names.project_namespace(UUID(project)) for project in places)
        paths = (f"/api/v1/namespaces/{space}/secrets" for space in spaces)
        await _side_by_side([client.request("POST", path, body=body) for path in paths])

    def _members(self, places: Sequence[str], count: int) -> list[Member]:
        return [
            Member(
                project=UUID(places[number % len(places)]),
                name=f"node-{number:05}-record",
                resource=UUID(int=uuid7().int),
                uid=str(uuid4()),
                node=str(uuid7()),
                mesh_ip=str(IPv4Address(MESH_BASE + number)),
            )
            for number in range(count)
        ]

    async def _records(self, members: Sequence[Member]) -> None:
        """Write the records into etcd as the API server would: it watches, and serves them."""
        left = iter(members)

        async def write() -> None:
            for member in left:
                async with session.post("/v3/kv/put", json=self._put(member)) as response:
                    response.raise_for_status()

        async with (
            aiohttp.ClientSession(self._plane.etcd) as session,
            asyncio.TaskGroup() as group,
        ):
            for _ in range(WRITERS):
                group.create_task(write())

    def _put(self, member: Member) -> Object:
        body: Object = json.loads(self._renamed(json.dumps(self._record), member))
        body["metadata"] |= {"uid": member.uid, "generation": 1}
        del body["metadata"]["resourceVersion"]
        for each in (body["status"], *body["status"].get("conditions", [])):
            if "observedGeneration" in each:
                each["observedGeneration"] = 1
        key = f"/registry/{RECORD[0]}/{RECORD[2]}/{member.namespace}/{member.name}"
        return {"key": _base64(key), "value": _base64(json.dumps(body))}

    def _renamed(self, text: str, member: Member) -> str:
        """Return a text about the template under a member's names and ids."""
        status = self._record["status"]
        for was, now in (
            (status["provisionedResourceID"], str(member.resource)),
            (status["node"]["id"], member.node),
            (status["node"]["meshIP"], member.mesh_ip),
            (self._project, str(member.project)),
            (f"{TEMPLATE}-record", member.name),
            (f'"{TEMPLATE}"', f'"{member.xr}"'),
        ):
            text = text.replace(was, now)
        return text

    async def _rows(self, members: Sequence[Member]) -> None:
        connection = await asyncpg.connect(self._dsn)
        try:
            await self._copy(connection, "provisioned_resources", "id", [
                (member, {"record_uid": member.uid, "resource_id": str(uuid4()),
                          "bootstrap_token_id": None})
                for member in members
            ])  # fmt: skip
            tokens = {member.name: str(uuid4()) for member in members}
            await self._copy(connection, "bootstrap_tokens", "provisioned_resource_id", [
                (member, {"id": tokens[member.name], "token_hash": _bytes32()})
                for member in members
            ])  # fmt: skip
            await self._copy(connection, "nodes", "provisioned_resource_id", [
                (member, {"id": member.node, "bootstrap_token_id": tokens[member.name],
                          "public_key": _bytes32(), "nsk_hash": _bytes32(),
                          "mesh_ip": member.mesh_ip, "reported_at": "now"})
                for member in members
            ])  # fmt: skip
            await connection.execute(_SPENT)
            await connection.execute(_TOLD)
            await connection.execute("VACUUM ANALYZE")
        finally:
            await connection.close()

    async def _copy(
        self,
        connection: asyncpg.Connection,
        table: str,
        key: str,
        changes: Sequence[tuple[Member, Object]],
    ) -> None:
        old = UUID(self._record["status"]["provisionedResourceID"])
        text = await connection.fetchval(_READ.format(table=table, key=key), old)
        rows = [
            json.dumps(json.loads(self._renamed(text, member)) | changed)
            for member, changed in changes
        ]
        for start in range(0, len(rows), BATCH):
            await connection.execute(_COPY.format(table=table), rows[start : start + BATCH])


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _bytes32() -> str:
    return "\\x" + secrets.token_hex(32)


async def _side_by_side(works: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Do all, CONNECTIONS at once; return what they return, in order."""
    turns = asyncio.Semaphore(CONNECTIONS)

    async def one(work: Coroutine[Any, Any, T]) -> T:
        async with turns:
            return await work

    return list(await asyncio.gather(*(one(work) for work in works)))
