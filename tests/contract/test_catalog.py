"""What `ports.cluster.catalog.Catalog` promises, on the fake and on caches of a real API server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol
from uuid import uuid4

import pytest

from function.contract import names
from function.contract.shape import Shape
from reconciler.domain.aggregate import ids
from reconciler.ports.cluster.catalog import Catalog, ProjectView
from tests.contract.published import Published
from tests.fakes.catalog import InMemoryCatalog
from tests.unit.reconciler import samples

pytestmark = pytest.mark.contract

PUBLISHED: Final[dict[str, Shape]] = {
    "BlueprintVersion": samples.BLUEPRINT,
    "CloudCredential": samples.CREDENTIAL,
    "Cloud": samples.CLOUD,
}
EDITED: Final[dict[str, Shape]] = {
    "BlueprintVersion": samples.BLUEPRINT.model_copy(update={"provisioning_timeout": "10m"}),
    "CloudCredential": samples.CREDENTIAL.model_copy(update={"projects": ("shop", "other")}),
    "Cloud": samples.CLOUD.model_copy(update={"endpoint": {"url": "https://new.test"}}),
}
KINDS = pytest.mark.parametrize("kind", PUBLISHED)


def asked(catalog: Catalog, kind: str, name: str) -> Shape | None:
    """Ask for what was published under a name."""
    looks: dict[str, Callable[[str], Shape | None]] = {
        "BlueprintVersion": catalog.blueprint,
        "CloudCredential": catalog.credential,
        "Cloud": catalog.cloud,
    }
    return looks[kind](name)


class World(Protocol):
    """A catalogue, and what people and the reconciler do to what it shows."""

    @property
    def catalog(self) -> Catalog:
        """What is tried."""

    async def publish(self, kind: str, name: str, spec: Shape) -> None:
        """Publish an object, or edit it."""

    async def withdraw(self, kind: str, name: str) -> None:
        """Take an object away."""

    async def place(self, view: ProjectView) -> None:
        """Say in a Project's status where it lives; an unplaced one has no namespace."""

    async def remove(self, view: ProjectView) -> None:
        """Take a Project away."""


@dataclass
class MemoryWorld:
    catalog: InMemoryCatalog = field(default_factory=InMemoryCatalog)

    async def publish(self, kind: str, name: str, spec: Shape) -> None:
        self._kept(kind)[name] = spec

    async def withdraw(self, kind: str, name: str) -> None:
        del self._kept(kind)[name]

    async def place(self, view: ProjectView) -> None:
        if view.namespace:
            self.catalog.projects[view.id] = view

    async def remove(self, view: ProjectView) -> None:
        del self.catalog.projects[view.id]

    def _kept(self, kind: str) -> dict[str, Any]:
        catalog = self.catalog
        kept: dict[str, dict[str, Any]] = {
            "BlueprintVersion": catalog.blueprints,
            "CloudCredential": catalog.credentials,
            "Cloud": catalog.clouds,
        }
        return kept[kind]


@dataclass
class RealWorld:
    published: Published

    @property
    def catalog(self) -> Catalog:
        return self.published.cluster.catalog

    async def publish(self, kind: str, name: str, spec: Shape) -> None:
        written = spec.model_dump(mode="json", by_alias=True, exclude_none=True)
        await self.published.write(kind, name, written)

    async def withdraw(self, kind: str, name: str) -> None:
        await self.published.withdraw(kind, name)

    async def place(self, view: ProjectView) -> None:
        if not self.published.wrote("Project", view.name):
            await self.published.write("Project", view.name, {"domainRef": {"name": "acme"}})
        status = {
            "id": str(view.id),
            "namespace": view.namespace,
            "namespacePhase": "Ready" if view.namespace_ready else "Terminating",
        }
        await self.published.say("Project", view.name, status)

    async def remove(self, view: ProjectView) -> None:
        await self.withdraw("Project", view.name)


@pytest.fixture(params=["memory", pytest.param("kubernetes", marks=pytest.mark.integration)])
def world(request: pytest.FixtureRequest) -> World:
    if request.param == "memory":
        return MemoryWorld()
    return RealWorld(request.getfixturevalue("published"))


def _name() -> str:
    return f"sample-{uuid4().hex[:10]}"


def _view(**changes: Any) -> ProjectView:
    project = ids.ProjectID(uuid4())
    view = ProjectView(
        id=project,
        name=_name(),
        namespace=names.project_namespace(project),
        namespace_ready=True,
    )
    return replace(view, **changes)


@KINDS
async def test_what_is_published_is_read_by_its_name_as_it_was_written(
    world: World, kind: str
) -> None:
    name = _name()

    await world.publish(kind, name, PUBLISHED[kind])

    assert asked(world.catalog, kind, name) == PUBLISHED[kind]


@KINDS
async def test_a_name_that_nobody_published_has_nothing(world: World, kind: str) -> None:
    await world.publish(kind, _name(), PUBLISHED[kind])

    assert asked(world.catalog, kind, _name()) is None


@KINDS
async def test_a_name_of_one_kind_is_no_name_of_another(world: World, kind: str) -> None:
    name = _name()

    await world.publish(kind, name, PUBLISHED[kind])

    found = {each for each in PUBLISHED if asked(world.catalog, each, name) is not None}
    assert found == {kind}


@KINDS
async def test_what_was_edited_is_read_as_it_is_now(world: World, kind: str) -> None:
    name = _name()
    await world.publish(kind, name, PUBLISHED[kind])

    await world.publish(kind, name, EDITED[kind])

    assert asked(world.catalog, kind, name) == EDITED[kind] != PUBLISHED[kind]


@KINDS
async def test_what_was_taken_away_is_absent(world: World, kind: str) -> None:
    name = _name()
    await world.publish(kind, name, PUBLISHED[kind])

    await world.withdraw(kind, name)

    assert asked(world.catalog, kind, name) is None


async def test_a_project_is_found_by_its_id_once_it_is_placed(world: World) -> None:
    view, other = _view(), _view()
    await world.place(other)
    assert world.catalog.project(view.id) is None

    await world.place(view)

    assert world.catalog.project(view.id) == view
    assert world.catalog.project(other.id) == other


async def test_one_without_a_namespace_is_not_placed(world: World) -> None:
    view = _view(namespace="", namespace_ready=False)

    await world.place(view)

    assert world.catalog.project(view.id) is None


async def test_it_tells_whether_the_namespace_is_ready_now(world: World) -> None:
    view = _view()
    await world.place(view)
    assert world.catalog.project(view.id) == view

    await world.place(replace(view, namespace_ready=False))

    assert world.catalog.project(view.id) == replace(view, namespace_ready=False)


async def test_a_project_that_is_gone_is_not_placed(world: World) -> None:
    view = _view()
    await world.place(view)
    assert world.catalog.project(view.id) == view

    await world.remove(view)

    assert world.catalog.project(view.id) is None


async def test_one_that_comes_again_under_another_name_is_found_under_it(world: World) -> None:
    view = _view()
    await world.place(view)
    assert world.catalog.project(view.id) == view
    await world.remove(view)

    renamed = replace(view, name=_name())
    await world.place(renamed)

    assert world.catalog.project(view.id) == renamed


@pytest.mark.integration
async def test_an_object_that_the_schema_admits_and_we_cannot_read_is_absent(
    published: Published, caplog: pytest.LogCaptureFixture
) -> None:
    name = _name()
    spec = samples.BLUEPRINT.model_dump(mode="json", by_alias=True, exclude_none=True)
    # The schema counts characters, we count bytes.
    spec["constants"] = [{"name": "motd", "value": "é" * 4000}]

    await published.write("BlueprintVersion", name, spec)

    assert published.cluster.catalog.blueprint(name) is None
    assert f"object_unreadable kind=BlueprintVersion name={name} faults=1" in caplog.messages
