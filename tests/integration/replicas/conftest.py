"""The session's control plane, which the contract tests use too."""

from __future__ import annotations

import pytest

from dev.controlplane import ControlPlane
from tests.contract.cluster_worlds import shared_control_plane


@pytest.fixture(scope="session")
def control_plane(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> ControlPlane:
    return shared_control_plane(request.config, tmp_path_factory)
