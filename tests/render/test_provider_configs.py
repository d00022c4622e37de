"""What the broker makes for a published blueprint, judged by its provider's own definition."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev import schemas
from tests.render.conftest import Crossplane
from tests.render.test_blueprints import AWS, HELM, KUBERNETES
from tests.unit.reconciler.domain.test_provider_config import published

pytestmark = pytest.mark.render

MODULES = {
    "aws-ec2-instance": (*AWS, "aws.m.upbound.io_providerconfigs"),
    "generic-vm": (*KUBERNETES, "kubernetes.m.crossplane.io_providerconfigs"),
    "kubernetes-daemonset": (*KUBERNETES, "kubernetes.m.crossplane.io_providerconfigs"),
    "kubernetes-helm": (*HELM, "helm.m.crossplane.io_providerconfigs"),
}
"""The other two providers' definitions are in no Go module (docs/blueprints.md)."""


@pytest.mark.parametrize("slug", sorted(MODULES))
def test_a_provider_takes_its_config(command: Crossplane, slug: str, tmp_path: Path) -> None:
    module, version, name = MODULES[slug]
    content = schemas.module_file(module, version, f"package/crds/{name}.yaml")
    (tmp_path / f"{name}.yaml").write_bytes(content)

    status, told = command.validate([published(slug)], tmp_path)

    assert status == 0, told


def test_one_without_a_key_is_refused(command: Crossplane, tmp_path: Path) -> None:
    module, version, name = MODULES["aws-ec2-instance"]
    content = schemas.module_file(module, version, f"package/crds/{name}.yaml")
    (tmp_path / f"{name}.yaml").write_bytes(content)
    config = published("aws-ec2-instance")
    del config["spec"]["credentials"]["secretRef"]["key"]

    status, told = command.validate([config], tmp_path)

    assert status == 1, told
