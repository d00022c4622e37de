"""A stack with the published blueprints installed as a user does: the second Configuration.

What it depends on and cannot be pulled here, the providers' CRDs, and the rights on their
kinds. The two functions that the Configuration needs are packages of our own making under
the names and versions it asks for, so that Crossplane resolves and installs its real
dependencies.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

import yaml

from dev import revisions, schemas
from dev.packages import BLUEPRINTS, ROOT, Package, Release
from dev.process import free_port
from function.contract import names
from tests.e2e.packaged import PackagedStack
from tests.e2e.world import Object, condition_of, wait_for
from tests.render.published import (
    PATCHES,
    READY,
    REAL,
    REAL_TRANSFORMER,
    TRANSFORMER,
    XRDS,
)

XRD_API: Final = "apiextensions.crossplane.io/v2"
PREFIX: Final = "xpkg.crossplane.io/crossplane-contrib"
"""Where the Configuration says that its functions are."""

REAL_READY: Final = "AUTO_READY"
"""Names a program of function-auto-ready v0.6.6 to use in place of the stand-in."""

KUBERNETES: Final = ("github.com/crossplane-contrib/provider-kubernetes", "v1.2.1")
HELM: Final = ("github.com/crossplane-contrib/provider-helm", "v1.3.0")
AWS: Final = ("github.com/upbound/provider-aws/v2", "v2.5.0")
PROVIDER_CRDS: Final = (
    (*KUBERNETES, "kubernetes.m.crossplane.io_objects"),
    (*KUBERNETES, "kubernetes.m.crossplane.io_providerconfigs"),
    (*HELM, "helm.m.crossplane.io_releases"),
    (*HELM, "helm.m.crossplane.io_providerconfigs"),
    (*AWS, "ec2.aws.m.upbound.io_instances"),
    (*AWS, "aws.m.upbound.io_providerconfigs"),
)


class BlueprintStack(PackagedStack):
    """The whole product and its published blueprints, from packages."""

    def install_blueprints(self) -> None:
        """Install the providers' kinds and the second Configuration with what it needs."""
        self.plane.apply(*(_definition(*each) for each in PROVIDER_CRDS), _rights())
        for dependency in dependencies():
            self._publish_function(dependency)
        rewritten = self.registry.image_config(PREFIX)
        rewritten["metadata"]["name"] = "tests-crossplane-contrib"
        self.plane.apply(rewritten)
        self.command("install", "configuration", Release().reference(BLUEPRINTS), "--wait=2m")
        steps = [sys.executable, "-m", "tests.e2e.ready_function"]
        for function, real in (
            (PATCHES, REAL),
            (READY, REAL_READY),
            (TRANSFORMER, REAL_TRANSFORMER),
        ):
            named = os.environ.get(real)
            self._serve_steps(function, [named] if named else steps)
        for name in definitions():
            wait_for(lambda name=name: self.is_established(name), f"{name} Established")  # type: ignore[misc]  # mypy cannot type a default in a lambda

    def is_established(self, name: str) -> bool:
        """Whether an XRD is served."""
        found = self.plane.cluster.get(XRD_API, "CompositeResourceDefinition", name)
        return condition_of(found, "Established").get("status") == "True"

    def _publish_function(self, dependency: Object) -> None:
        name = dependency["package"].rpartition("/")[2]
        body = {
            "apiVersion": "meta.pkg.crossplane.io/v1",
            "kind": "Function",
            "metadata": {"name": name},
            "spec": {"capabilities": ["composition"]},
        }
        file = self.run_dir / f"{name}.yaml"
        file.write_text(yaml.safe_dump(body), encoding="utf-8")
        package = Package(name=name, metadata=str(file), parts=(), kinds=frozenset())
        self.publish(package, Release(version=dependency["version"], prefix=PREFIX))

    def _serve_steps(self, function: str, argv: list[str]) -> None:
        revision = wait_for(lambda: revisions.active(self.plane.cluster, function), function)
        port, name = free_port(), revision["metadata"]["name"]
        self.run_function(function, argv, port)
        certificates = self.core.function_certificates(f"{function}-shown")
        revisions.serve(self.plane.cluster, name, port, certificates)


def dependencies() -> list[Object]:
    """Return the functions of others that the second Configuration needs."""
    text = (ROOT / BLUEPRINTS.metadata).read_text(encoding="utf-8")
    listed: list[Object] = yaml.safe_load(text)["spec"]["dependsOn"]
    return [each for each in listed if each["kind"] == "Function"]


def definitions() -> list[str]:
    """Name the XRDs of the published blueprints."""
    return [_loaded(path)["metadata"]["name"] for path in sorted(XRDS.glob("*.yaml"))]


def _loaded(path: Path) -> Object:
    found: Object = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


def _definition(module: str, version: str, name: str) -> Object:
    """Return a provider's CRD, held as docs/blueprints.md tells platform teams to."""
    found: Object = yaml.safe_load(
        schemas.module_file(module, version, f"package/crds/{name}.yaml")
    )
    found["metadata"].setdefault("labels", {})[names.LABEL_HOLD] = "true"
    return found


def _rights() -> Object:
    """Return what Crossplane's rbac manager grants for the kinds of installed providers."""
    kinds = {"kubernetes.m.crossplane.io": "objects", "helm.m.crossplane.io": "releases"}
    kinds["ec2.aws.m.upbound.io"] = "instances"
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {
            "name": "tests-providers",
            "labels": {"rbac.crossplane.io/aggregate-to-crossplane": "true"},
        },
        "rules": [
            {"apiGroups": [group], "resources": [plural], "verbs": ["*"]}
            for group, plural in kinds.items()
        ],
    }
