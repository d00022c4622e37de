"""A stack whose product came as packages from a registry, as a user installs it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Final
from urllib.request import urlopen

from dev import packages, revisions, xpkg
from dev.packages import CONFIGURATION, FUNCTION, PACKAGES, PREFIX, Package, Release
from dev.process import Child, free_port
from dev.registry import Registry
from dev.stack import FUNCTION_NAME, Stack, function_command
from dev.toolchain import Report
from tests.e2e.world import API, condition_of, wait_for

PACKAGE_API: Final = "pkg.crossplane.io/v1"
XRD: Final = "provisionedresources.provisioning.plexsphere.com"
INSTALL_TIMEOUT_S: Final = 120.0
"""Pulled over loopback in a second; the package manager backs off now and then."""

_SAMPLE: Final = re.compile(r"(\w+)\{(.*)\} (\S+)")
_LABEL: Final = re.compile(r'(\w+)="([^"]*)"')


class PackagedStack(Stack):
    """The whole product, its function, XRD and Composition from a registry of its own."""

    def __init__(self, run_dir: Path, *, report: Report) -> None:
        super().__init__(run_dir, report=report)
        self.registry = Registry(self.run_dir / "registry")
        self.served: dict[str, Child] = {}
        self._ports: dict[str, int] = {}

    def install_product(self) -> None:
        """Push the packages, install the Configuration, and serve the Function it brings."""
        self.registry.start(self.plane.supervisor, report=self.report)
        first = Release()
        for package in PACKAGES:
            self.publish(package, first)
        self.plane.apply(self.registry.image_config(PREFIX))
        self.command("install", "configuration", first.reference(CONFIGURATION), "--wait=2m")
        revision = wait_for(
            lambda: revisions.active(self.plane.cluster, FUNCTION_NAME), "the Function it needs"
        )
        self.serve(revision["metadata"]["name"])
        wait_for(self._is_established, "the XRD Established")

    def publish(self, package: Package, release: Release) -> str:
        """Build and push a package; return its manifest's digest."""
        file = self.run_dir / "dist" / f"{package.name}-{release.version}.xpkg"
        packages.build(package, release, file)
        return self.registry.push(file, release.reference(package))

    def command(self, *arguments: str) -> str:
        """Run `crossplane xpkg …` as the control plane's administrator."""
        return xpkg.crossplane(
            "xpkg",
            *arguments,
            cwd=self.run_dir,
            env={"KUBECONFIG": str(self.plane.kubeconfig)},
            timeout_s=INSTALL_TIMEOUT_S,
        )

    def update_function(self, release: Release) -> None:
        """Ask for another version of the Function."""
        self.command("update", "function", release.reference(FUNCTION), FUNCTION_NAME)

    def serve(self, revision: str) -> None:
        """Start a process for a revision of the Function, and tell core of it."""
        port = self._ports.setdefault(revision, free_port())
        self.served[revision] = self.run_function(revision, function_command(), port)
        certificates = self.core.function_certificates(f"{revision}-shown")
        revisions.serve(self.plane.cluster, revision, port, certificates)

    def is_healthy(self) -> bool:
        """Whether the Function is Healthy."""
        found = self.plane.cluster.get(PACKAGE_API, "Function", FUNCTION_NAME)
        return condition_of(found, "Healthy").get("status") == "True"

    def calls(self) -> Counter[tuple[str, str]]:
        """Count core's calls of the Function so far, by revision and gRPC code."""
        served = {str(port): revision for revision, port in self._ports.items()}
        told: Counter[tuple[str, str]] = Counter()
        for name, labels, value in self._metrics():
            if name == "function_run_function_response_total":
                port = labels["grpc_target"].rpartition(":")[2]
                if port in served:
                    told[served[port], labels["grpc_code"]] += int(value)
        return told

    def failed_reconciles(self) -> int:
        """Count reconciles of ProvisionedResources that failed so far."""
        return sum(
            int(value)
            for name, labels, value in self._metrics()
            if name == "controller_runtime_reconcile_errors_total"
            and labels["controller"] == f"composite/{XRD}"
        )

    def complaints(self) -> Counter[str]:
        """Count the warnings about composing so far, by XR."""
        told: Counter[str] = Counter()
        for event in self.plane.cluster.list("v1", "Event"):
            subject = event["involvedObject"]
            ours = (subject.get("apiVersion"), subject["kind"]) == (API, "ProvisionedResource")
            if ours and event["type"] == "Warning" and event["reason"] == "ComposeResources":
                told[subject["name"]] += event.get("count") or 1
        return told

    def _is_established(self) -> bool:
        found = self.plane.cluster.get(
            "apiextensions.crossplane.io/v2", "CompositeResourceDefinition", XRD
        )
        return condition_of(found, "Established").get("status") == "True"

    def _metrics(self) -> list[tuple[str, dict[str, str], float]]:
        with urlopen(self.core.metrics_url, timeout=10) as answer:  # noqa: S310 - our own loopback
            text = answer.read().decode()
        return [
            (found[1], dict(_LABEL.findall(found[2])), float(found[3]))
            for line in text.splitlines()
            if (found := _SAMPLE.fullmatch(line))
        ]
