"""One control plane with our kinds, roles and policies for the tests of `deploy/`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dev import binaries, chart
from dev.controlplane import ControlPlane
from tests.e2e.deploy import holding
from tests.e2e.deploy.identity import Caller
from tests.e2e.deploy.place import (
    Place,
)


@pytest.fixture(scope="package")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Give a control plane without our processes, which would act on what tests make."""
    with ControlPlane.from_environment(tmp_path_factory.mktemp("plane")) as plane:
        yield plane


@pytest.fixture(scope="package")
def deployed(control_plane: ControlPlane) -> ControlPlane:
    """Crossplane's accounts and roles as its chart makes them, and all of ours."""
    manifests = binaries.core_manifests(report=lambda _line: None)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": chart.NAMESPACE}}
    control_plane.apply(namespace, *chart.rbac_objects(manifests.chart_templates))
    holding.apply_kinds(control_plane)
    holding.apply_policies(control_plane, "account", "hold", "hold-children", "hold-records")
    return control_plane


@pytest.fixture
def admin(deployed: ControlPlane) -> Caller:
    return Caller(deployed.kubeconfig)


@pytest.fixture
def place(admin: Caller) -> Iterator[Place]:
    place = Place(admin)
    yield place
    place.clear()
