"""What `ports.store.tenancy.TenancyRepository` promises."""

from __future__ import annotations

import asyncio

import pytest
from uuid_utils.compat import uuid7

from function.contract import names
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.errors import InvalidInputError
from tests.contract.worlds import MESH, World
from tests.unit.reconciler import samples

pytestmark = pytest.mark.contract


async def test_a_domain_is_minted_once(world: World) -> None:
    answers = await asyncio.gather(
        *(world.tenancy.ensure_domain("fresh", "10.0.0.0/8") for _ in range(5))
    )

    assert len(set(answers)) == 1


async def test_a_domain_keeps_its_range(world: World) -> None:
    with pytest.raises(InvalidInputError, match="meshCIDR is immutable"):
        await world.tenancy.ensure_domain("acme", "10.0.0.0/8")

    assert await world.tenancy.ensure_domain("acme", MESH)


@pytest.mark.parametrize("cidr", ["nonsense", "10.0.0.1/8", "10.0.0.0/33", ""])
async def test_a_range_must_be_a_network(world: World, cidr: str) -> None:
    with pytest.raises(InvalidInputError, match="meshCIDR"):
        await world.tenancy.ensure_domain("fresh", cidr)


async def test_a_project_may_bring_its_id(world: World) -> None:
    row = await world.tenancy.find_project("shop")

    assert row is not None
    assert (row.id, row.name, row.namespace) == (samples.PROJECT, "shop", samples.NAMESPACE)


async def test_a_project_without_an_id_gets_one_once(world: World) -> None:
    answers = await asyncio.gather(
        *(world.tenancy.ensure_project(None, "till", "acme") for _ in range(5))
    )

    assert len(set(answers)) == 1
    row = await world.tenancy.find_project("till")
    assert row is not None
    assert row.namespace == names.project_namespace(answers[0])


async def test_a_project_keeps_id_and_domain(world: World) -> None:
    await world.tenancy.ensure_domain("other", "10.0.0.0/8")

    assert await world.tenancy.ensure_project(None, "shop", "acme") == samples.PROJECT
    for project, domain in ((ids.ProjectID(uuid7()), "acme"), (None, "other")):
        with pytest.raises(InvalidInputError, match="immutable"):
            await world.tenancy.ensure_project(project, "shop", domain)


async def test_an_id_belongs_to_one_project(world: World) -> None:
    with pytest.raises(InvalidInputError, match="another Project"):
        await world.tenancy.ensure_project(samples.PROJECT, "thief", "acme")

    assert await world.tenancy.find_project("thief") is None


async def test_a_project_needs_its_domain(world: World) -> None:
    with pytest.raises(InvalidInputError, match="domainRef"):
        await world.tenancy.ensure_project(None, "till", "nowhere")


async def test_a_cluster_is_named_by_its_slug(world: World) -> None:
    first = await world.tenancy.ensure_cluster("eu-1", "Europe 1")
    again = await world.tenancy.ensure_cluster("eu-1", "Europe One")

    assert first == again == ids.management_cluster_id("eu-1")


async def test_a_cluster_that_many_bring_at_once_is_one(world: World) -> None:
    for number in range(50):
        found = await asyncio.gather(
            *(world.tenancy.ensure_cluster(f"eu-{number}", f"Europe {who}") for who in range(8))
        )

        assert set(found) == {ids.management_cluster_id(f"eu-{number}")}


async def test_a_project_that_many_place_at_once_is_placed(world: World) -> None:
    for number in range(50):
        project = await world.tenancy.ensure_project(None, f"at-once-{number}", "acme")
        namespace = names.project_namespace(project)

        await asyncio.gather(
            *(
                world.tenancy.assign_project(
                    project, samples.CLUSTER, namespace=namespace, phase=phase
                )
                for phase in ("Pending", "Ready", "Terminating") * 3
            )
        )


async def test_a_placement_may_be_repeated_and_changed(world: World) -> None:
    for phase in ("Pending", "Ready", "Ready"):
        await world.tenancy.assign_project(
            samples.PROJECT, samples.CLUSTER, namespace=samples.NAMESPACE, phase=phase
        )


@pytest.mark.parametrize("part", ["project", "cluster", "phase"])
async def test_a_placement_of_what_does_not_exist_is_refused(world: World, part: str) -> None:
    project = ids.ProjectID(uuid7()) if part == "project" else samples.PROJECT
    cluster = ids.management_cluster_id("nowhere") if part == "cluster" else samples.CLUSTER

    with pytest.raises(InvalidInputError, match="cannot assign project"):
        await world.tenancy.assign_project(
            project,
            cluster,
            namespace=samples.NAMESPACE,
            phase="Happy" if part == "phase" else "Ready",
        )
