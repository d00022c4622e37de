"""The real `crossplane render`, without Docker: its engine is the core's own binary."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml

from dev import binaries, pythonic
from tests.integration.grpc.serving import COMMAND, READY_TIMEOUT_S, free_address, running
from tests.unit.function import given

ROOT = Path(__file__).parents[2]
COMPOSITION = ROOT / "compositions" / "provisionedresource.yaml"
XRDS = ROOT / "xrds"
INPUTS = ROOT / "package" / "input"
FUNCTIONS = ROOT / "example" / "functions.yaml"
FUNCTION = "plexsphere-function-provisioning-broker"
TARGET = "render.crossplane.io/runtime-development-target"
RENDER_TIMEOUT_S = 60
"""Render takes a fifth of a second; a function that does not answer hangs until its limit."""

Object = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """What one render printed.

    Attributes:
        objects: Every document but the results, by kind.
        results: The function's results.
        errors: What stood on stderr.
    """

    status: int
    objects: Mapping[str, Object]
    results: Sequence[Object]
    errors: str

    @property
    def conditions(self) -> dict[str, Object]:
        """The XR's conditions by type."""
        listed = self.objects["ProvisionedResource"]["status"]["conditions"]
        return {each["type"]: each for each in listed}


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossplane:
    """The command line, its engine, and the functions it calls, by name and address."""

    cli: Path
    core: Path
    folder: Path
    targets: Mapping[str, str]

    def render(
        self,
        xr: Object,
        required: Sequence[Object] = (),
        observed: Sequence[Object] = (),
        context: Mapping[str, object] | None = None,
        composition: Path = COMPOSITION,
    ) -> Rendered:
        """Render one XR through a Composition, by default ours, and the running functions."""
        files = [
            self._file("xr", [xr]),
            str(composition),
            self._file("functions", self._functions()),
        ]
        flags = ["--crossplane-binary", str(self.core), "-r", "-x", "--timeout", "30s"]
        if required:
            flags += ["-e", self._file("required", required)]
        if observed:
            flags += ["-o", self._file("observed", observed)]
        for key, value in (context or {}).items():
            flags += ["--context-values", f"{key}={json.dumps(value)}"]
        done = self._run("render", *files, *flags)
        documents = [each for each in yaml.safe_load_all(done.stdout) if each]
        return Rendered(
            status=done.returncode,
            objects={each["kind"]: each for each in documents if each["kind"] != "Result"},
            results=[each for each in documents if each["kind"] == "Result"],
            errors=done.stderr,
        )

    def validate(self, objects: Sequence[Object], *schemas: Path) -> tuple[int, str]:
        """Validate objects against schemas, offline."""
        listed = ",".join(str(schema) for schema in schemas)
        subject = self._file("subject", objects)
        flags = ["--crossplane-image=", "--error-on-missing-schemas"]
        done = self._run("resource", "validate", listed, subject, *flags)
        return done.returncode, done.stdout + done.stderr

    def build(self, root: Path, package: Path) -> tuple[int, str]:
        """Build a package from a folder."""
        done = self._run("xpkg", "build", "-f", str(root), "-o", str(package))
        return done.returncode, done.stdout + done.stderr

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.cli), *arguments],
            capture_output=True,
            text=True,
            timeout=RENDER_TIMEOUT_S,
            check=False,
            cwd=self.folder,
            env={"HOME": str(self.folder), "PATH": "/usr/bin:/bin"},
        )

    def _file(self, name: str, objects: Sequence[Object]) -> str:
        path = self.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump_all(objects))
        return str(path)

    def _functions(self) -> list[Object]:
        """The example's Functions that run, at the free ports they were given."""
        listed = {each["metadata"]["name"]: each for each in every(FUNCTIONS)}
        for name, target in self.targets.items():
            listed[name]["metadata"]["annotations"][TARGET] = target
        return [listed[name] for name in self.targets]


@pytest.fixture(scope="session")
def programs() -> Mapping[str, Path]:
    """Crossplane's core and command line, built when they are missing."""
    return binaries.ensure(["crossplane", "crossplane-cli"], report=_report)


@pytest.fixture
def crossplane(programs: Mapping[str, Path], tmp_path: Path) -> Iterator[Crossplane]:
    with _served(COMMAND) as address:
        yield Crossplane(
            cli=programs["crossplane-cli"],
            core=programs["crossplane"],
            folder=tmp_path,
            targets={FUNCTION: address},
        )


@pytest.fixture
def with_pythonic(crossplane: Crossplane) -> Iterator[Crossplane]:
    """The same beside the third-party function that the example's blueprint uses."""
    program = pythonic.ensure(report=_report)
    with _served(str(program)) as address:
        targets = {**crossplane.targets, pythonic.FUNCTION_NAME: address}
        yield replace(crossplane, targets=targets)


@contextmanager
def _served(command: str) -> Iterator[str]:
    address = free_address()
    with running("--insecure", "--address", address, command=command):
        with closing(grpc.insecure_channel(address)) as channel:
            grpc.channel_ready_future(channel).result(timeout=READY_TIMEOUT_S)
        yield address


def every(path: Path) -> list[Object]:
    """A file's documents."""
    return [body for body in yaml.safe_load_all(path.read_text()) if body]


def loaded(path: Path) -> Object:
    """A file's one document."""
    (body,) = every(path)
    return body


def composed(name: str, made: Object) -> Object:
    """An observed object as render wants it: with the name it is composed under."""
    annotations = made["metadata"].setdefault("annotations", {})
    annotations["crossplane.io/composition-resource-name"] = name
    return made


def catalogue() -> list[Object]:
    """What a platform team publishes."""
    return [given.blueprint(), given.credential(), given.cloud()]


@pytest.fixture
def command(programs: Mapping[str, Path], tmp_path: Path) -> Crossplane:
    """The command line alone: building and validating call no function."""
    return Crossplane(
        cli=programs["crossplane-cli"], core=programs["crossplane"], folder=tmp_path, targets={}
    )


@pytest.fixture(scope="session")
def core_crds() -> Path:
    """The folder of Crossplane's own CRDs."""
    return binaries.core_manifests(report=_report).crds


def _report(line: str) -> None:
    print(line, file=sys.stderr)
