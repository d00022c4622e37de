"""The two worlds every contract runs in."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

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
