"""The session's control plane, one database for all lives of a module, lives without faults."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from dev.controlplane import ControlPlane
from tests.contract.cluster_worlds import shared_control_plane
from tests.fakes.databases import migrated_database
from tests.faults.cases import Plain
from tests.faults.ground import Ground, grounded


@pytest.fixture(scope="session")
def control_plane(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> ControlPlane:
    return shared_control_plane(request.config, tmp_path_factory)


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with migrated_database() as dsn:
        yield dsn


@pytest.fixture
async def ground(control_plane: ControlPlane, database: str) -> AsyncIterator[Ground]:
    async with grounded(control_plane, database) as opened:
        yield opened


@pytest.fixture(scope="session")
def plain() -> Plain:
    return Plain()
