"""The Function's and the Configuration's package, built by Crossplane's own command."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.render.conftest import COMPOSITION, ROOT, XRDS, Crossplane, loaded

pytestmark = pytest.mark.render


def test_the_functions_package_builds(command: Crossplane, tmp_path: Path) -> None:
    package = tmp_path / "function.xpkg"

    status, told = command.build(ROOT / "package", package)

    assert status == 0, told
    assert package.stat().st_size > 0


def test_the_configurations_package_builds_from_its_parts(
    command: Crossplane, tmp_path: Path
) -> None:
    stage = tmp_path / "stage"
    shutil.copytree(XRDS, stage / "xrds")
    shutil.copytree(COMPOSITION.parent, stage / "compositions")
    shutil.copy(ROOT / "crossplane.yaml", stage)

    status, told = command.build(stage, tmp_path / "configuration.xpkg")

    assert status == 0, told


def test_packages_state_one_metadata_object_each() -> None:
    function = loaded(ROOT / "package" / "crossplane.yaml")
    configuration = loaded(ROOT / "crossplane.yaml")

    assert (function["kind"], configuration["kind"]) == ("Function", "Configuration")
    assert function["metadata"]["name"].startswith("function-")
    (dependency,) = configuration["spec"]["dependsOn"]
    organisation, name = dependency["package"].split("/")[-2:]
    (step,) = loaded(COMPOSITION)["spec"]["pipeline"]
    assert step["functionRef"]["name"] == f"{organisation}-{name}"
    assert name == function["metadata"]["name"]
