"""The two worlds that most contracts run in, and what several find on a real API server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.contract.cluster_worlds import shared_control_plane
from tests.contract.published import Published, publishing
from tests.contract.worlds import World, memory_world, postgres_world
from tests.fakes.databases import migrated_database


@pytest.fixture(params=["memory", pytest.param("postgres", marks=pytest.mark.integration)])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    if request.param == "memory":
        yield await memory_world()
        return
    with migrated_database() as dsn:
        async with postgres_world(dsn) as real:
            yield real


@pytest.fixture
async def published(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Published]:
    async with publishing(shared_control_plane(request.config, tmp_path_factory)) as found:
        yield found
