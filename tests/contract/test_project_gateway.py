"""What `ports.cluster.projects.ProjectGateway` promises, on the fake and on a real API server."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Final, Protocol
from uuid import uuid4

import pytest

from function.contract.catalog.tenancy import DomainSpec
from reconciler.adapters.kubernetes.namespaces.projects import KubernetesProjectGateway
from reconciler.domain import tenancy
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.errors import StaleAggregateError
from reconciler.ports.cluster.projects import ProjectGateway
from tests.contract.cluster_worlds import FOREIGN_FINALIZER
from tests.contract.published import Published
from tests.e2e.deploy.identity import BREAK_GLASS, MASTERS
from tests.fakes.project_gateway import InMemoryProjectGateway

pytestmark = pytest.mark.contract

Raw = dict[str, Any]

DOMAIN: Final = DomainSpec.model_validate({"region": "eu", "meshCIDR": "100.64.0.0/16"})
LABEL: Final = "tests.plexsphere.com/kept"


class World(Protocol):
    """A gateway, and what people do past it."""

    @property
    def gateway(self) -> ProjectGateway:
        """What is tried."""

    async def new_domain(self, name: str) -> None:
        """Publish a Domain."""

    async def new_project(self) -> Raw:
        """Make a Project, and return it as the caches hold it."""

    async def edit(self, project: Raw) -> None:
        """Write something else into a Project."""

    async def replace(self, project: Raw) -> None:
        """Take a Project away, and make another one of its name."""

    async def remove(self, project: Raw) -> None:
        """Take a Project away."""

    async def status(self, project: Raw) -> Raw | None:
        """Return the status that a Project of this name has; None without one."""

    async def end(self, namespace: str) -> None:
        """Delete a namespace, and have it stay for what is in it."""

    async def has(self, namespace: str) -> bool:
        """Tell whether a namespace is there."""


@dataclass
class MemoryWorld:
    gateway: InMemoryProjectGateway = field(default_factory=InMemoryProjectGateway)

    async def new_domain(self, name: str) -> None:
        self.gateway.domains[name] = DOMAIN

    async def new_project(self) -> Raw:
        return self._make(_name())

    def _make(self, name: str) -> Raw:
        metadata = {"name": name, "uid": str(uuid4()), "resourceVersion": "7"}
        self.gateway.projects[name] = {"metadata": metadata}
        return copy.deepcopy(self.gateway.projects[name])

    async def edit(self, project: Raw) -> None:
        self.gateway.projects[project["metadata"]["name"]]["metadata"]["resourceVersion"] = "8"

    async def replace(self, project: Raw) -> None:
        self._make(project["metadata"]["name"])

    async def remove(self, project: Raw) -> None:
        del self.gateway.projects[project["metadata"]["name"]]

    async def status(self, project: Raw) -> Raw | None:
        return self.gateway.projects[project["metadata"]["name"]].get("status")

    async def end(self, namespace: str) -> None:
        self.gateway.namespaces[namespace] = True

    async def has(self, namespace: str) -> bool:
        return namespace in self.gateway.namespaces


class RealWorld:
    """An API server, as the reconciler's account uses it."""

    def __init__(self, published: Published) -> None:
        self.published = published
        self.gateway = published.cluster.project_gateway
        self.admin = published.admin.as_user("tests", MASTERS, BREAK_GLASS)
        self.ended: set[str] = set()

    async def new_domain(self, name: str) -> None:
        spec = DOMAIN.model_dump(mode="json", by_alias=True, exclude_none=True)
        await self.published.write("Domain", name, spec)

    async def new_project(self) -> Raw:
        return await self.published.write("Project", _name(), {"domainRef": {"name": "acme"}})

    async def edit(self, project: Raw) -> None:
        path = self.published.path("Project", project["metadata"]["name"])
        assert self.admin.patch(path, {"metadata": {"labels": {LABEL: "edited"}}}).ok

    async def replace(self, project: Raw) -> None:
        name = project["metadata"]["name"]
        await self.remove(project)
        await self.published.write("Project", name, {"domainRef": {"name": "acme"}})

    async def remove(self, project: Raw) -> None:
        await self.published.withdraw("Project", project["metadata"]["name"])

    async def status(self, project: Raw) -> Raw | None:
        path = self.published.path("Project", project["metadata"]["name"])
        status: Raw | None = self.admin.get(path).body.get("status")
        return status

    async def end(self, namespace: str) -> None:
        path = f"/api/v1/namespaces/{namespace}"
        head = {"name": "holds", "finalizers": [FOREIGN_FINALIZER]}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": head}
        assert self.admin.create(f"{path}/configmaps", body).ok
        self.ended.add(namespace)
        assert self.admin.delete(path).ok

    async def has(self, namespace: str) -> bool:
        return self.admin.get(f"/api/v1/namespaces/{namespace}").ok

    def clear(self) -> None:
        """Let go of the namespaces that were held."""
        for namespace in self.ended:
            path = f"/api/v1/namespaces/{namespace}/configmaps/holds"
            self.admin.patch(path, {"metadata": {"finalizers": None}})


@pytest.fixture
async def real(published: Published) -> AsyncIterator[RealWorld]:
    world = RealWorld(published)
    yield world
    await asyncio.to_thread(world.clear)


@pytest.fixture(params=["memory", pytest.param("kubernetes", marks=pytest.mark.integration)])
def world(request: pytest.FixtureRequest) -> World:
    if request.param == "memory":
        return MemoryWorld()
    found: RealWorld = request.getfixturevalue("real")
    return found


def _name() -> str:
    return f"sample-{uuid4().hex[:10]}"


def _manifest() -> Raw:
    return tenancy.namespace_manifest("shop", ids.ProjectID(uuid4()))


async def test_a_domain_is_found_by_its_name_alone(world: World) -> None:
    name = _name()
    assert world.gateway.domain(name) is None

    await world.new_domain(name)

    assert world.gateway.domain(name) == DOMAIN
    assert world.gateway.domain(_name()) is None


async def test_a_namespace_that_is_absent_is_made_and_is_ready(world: World) -> None:
    manifest = _manifest()

    ready = [await world.gateway.ensure_namespace(manifest) for _ in range(2)]

    assert ready == [True, True]
    assert await world.has(manifest["metadata"]["name"])


async def test_a_namespace_that_goes_is_not_ready(world: World) -> None:
    manifest, other = _manifest(), _manifest()
    await world.gateway.ensure_namespace(manifest)
    await world.end(manifest["metadata"]["name"])

    assert not await world.gateway.ensure_namespace(manifest)
    assert await world.gateway.ensure_namespace(other)


async def test_a_status_is_replaced_as_a_whole(world: World) -> None:
    project = await world.new_project()
    await world.gateway.write_project_status(project, {"namespace": "a", "namespacePhase": "Ready"})
    assert await world.status(project) == {"namespace": "a", "namespacePhase": "Ready"}
    other = await world.new_project()

    await world.gateway.write_project_status(other, {"namespacePhase": "Ready"})

    assert await world.status(other) == {"namespacePhase": "Ready"}
    assert await world.status(project) == {"namespace": "a", "namespacePhase": "Ready"}


async def test_a_status_that_was_judged_on_what_is_no_more_is_refused(world: World) -> None:
    edited, replaced, removed = [await world.new_project() for _ in range(3)]
    await world.edit(edited)
    await world.replace(replaced)
    await world.remove(removed)

    for project in (edited, replaced, removed):
        with pytest.raises(StaleAggregateError):
            await world.gateway.write_project_status(project, {"namespacePhase": "Ready"})

    assert not await world.status(edited)
    assert not await world.status(replaced)


async def test_a_second_status_takes_what_the_first_one_left(world: World) -> None:
    project = await world.new_project()
    await world.gateway.write_project_status(project, {"namespacePhase": "Ready"})

    with pytest.raises(StaleAggregateError):
        await world.gateway.write_project_status(project, {"namespacePhase": "Terminating"})

    assert await world.status(project) == {"namespacePhase": "Ready"}


@pytest.mark.integration
async def test_an_existing_namespace_is_left_as_it_is(published: Published) -> None:
    manifest = _manifest()
    path = f"/api/v1/namespaces/{manifest['metadata']['name']}"
    gateway = published.cluster.project_gateway
    await gateway.ensure_namespace(manifest)
    assert published.admin.patch(path, {"metadata": {"labels": {LABEL: "yes"}}}).ok
    before = published.admin.get(path).body["metadata"]["resourceVersion"]

    await gateway.ensure_namespace(manifest)

    assert published.admin.get(path).body["metadata"]["resourceVersion"] == before


@pytest.mark.integration
async def test_a_namespace_that_somebody_made_meanwhile_is_ready_as_any(
    published: Published,
) -> None:
    manifest = _manifest()
    made = []

    def overtaken() -> None:
        made.append(published.admin.create("/api/v1/namespaces", manifest).ok)

    gateway = KubernetesProjectGateway(
        published.cluster.client, domains=published.cluster.caches["domains"], may_write=overtaken
    )

    assert await gateway.ensure_namespace(manifest)
    assert made == [True]
