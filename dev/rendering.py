"""Crossplane's own render and validation, with the functions as processes of this host.

One render, one validation, and starting the functions that a pipeline names. `dev.render`
and the tests use it. No container engine is involved: the engine is the core's own program.
Source: control-plane.md, "Render and validate"; reference, crossplane §1.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dev import binaries, pythonic
from dev.examples import ROOT
from dev.process import Child, ProcessError, Program, free_port
from dev.toolchain import Report

Object = dict[str, Any]

OURS = "plexsphere-function-provisioning-broker"
PATCHES = "crossplane-contrib-function-patch-and-transform"
READY = "crossplane-contrib-function-auto-ready"
TRANSFORMER = "crossplane-contrib-function-status-transformer"
"""What dependency resolution calls them; Compositions use these names."""

REAL_PATCHES = "PATCH_AND_TRANSFORM"
"""Variable that names a program of function-patch-and-transform. It cannot be had as a Go
module; without it a stand-in answers that knows what the examples use of it."""

RESOURCE_NAME = "crossplane.io/composition-resource-name"

START_TIMEOUT_S = 60
"""A function imports for two seconds on an idle core, several times that on a busy one."""

RENDER_TIMEOUT_S = 60
"""Render takes a fifth of a second; with a function that hangs it would wait forever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """What one render gave.

    Attributes:
        xr: the composite with its conditions; empty when the render failed.
        resources: by the name they are composed under.
        error: what the command said when it failed, as after a fatal result; else empty.
    """

    xr: Object
    resources: Mapping[str, Object]
    error: str = ""

    def conditions(self) -> Mapping[str, Object]:
        """Answer the composite's conditions by type."""
        listed = self.xr.get("status", {}).get("conditions", [])
        return {each["type"]: each for each in listed}


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What a render is made of besides the composite.

    Args:
        composition: its file.
        xrd: the definition's file, whose defaults are applied; `None` applies none.
        required: files and folders with what functions may ask for.
        observed: objects that exist, each with the annotation `RESOURCE_NAME`.
        context: the pipeline's first context.
    """

    composition: Path
    xrd: Path | None = None
    required: Sequence[Path] = ()
    observed: Sequence[Object] = ()
    context: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossplane:
    """The command line and its engine.

    Args:
        cli: Crossplane's command.
        core: Crossplane itself, which renders.
        folder: an empty one for the files in between.
        targets: address of each function by name.
    """

    cli: Path
    core: Path
    folder: Path
    targets: Mapping[str, str]

    def render(self, xr: Object, inputs: Inputs) -> Rendered:
        """Render a composite.

        Idempotency: reads only; equal input renders equal output.
        """
        flags = ["-x", "--crossplane-binary", str(self.core), "--timeout", "30s"]
        flags += ["--xrd", str(inputs.xrd)] if inputs.xrd else []
        for path in inputs.required:
            flags += ["-e", str(path)]
        if inputs.observed:
            flags += ["-o", str(self._file("observed", inputs.observed))]
        for key, value in (inputs.context or {}).items():
            flags += ["--context-values", f"{key}={json.dumps(value)}"]
        functions = [_function(name, at) for name, at in self.targets.items()]
        files = [self._file("xr", [xr]), inputs.composition, self._file("functions", functions)]
        done = self._run("render", *map(str, files), *flags)
        if done.returncode != 0:
            return Rendered(xr={}, resources={}, error=done.stderr.strip())
        own, *composed = [each for each in yaml.safe_load_all(done.stdout) if each]
        return Rendered(
            xr=own,
            resources={each["metadata"]["annotations"][RESOURCE_NAME]: each for each in composed},
        )

    def validate(self, objects: Sequence[Object], schemas: Iterable[Path]) -> list[Object]:
        """Judge objects by schemas, offline.

        Returns:
            One verdict per object, in their order: `status` is `valid`, `invalid` or
            `missingSchema`; `errors` have a `message` each. A Composition's step inputs have
            verdicts of their own.

        Raises:
            ProcessError: the command said nothing that can be read.
        """
        listed = ",".join(map(str, schemas))
        flags = ["--crossplane-image=", "-o", "json"]
        subject = str(self._file("subject", objects))
        done = self._run("resource", "validate", listed, subject, *flags)
        try:
            verdicts: list[Object] = json.loads(done.stdout)["resources"]
        except (ValueError, KeyError):
            message = f"cannot validate: {done.stderr.strip()}"
            raise ProcessError(message) from None
        return verdicts

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.cli), *arguments],
            capture_output=True,
            text=True,
            timeout=RENDER_TIMEOUT_S,
            check=False,
            # Its cache and settings are not the user's.
            env={"HOME": str(self.folder), "PATH": os.defpath},
        )

    def _file(self, name: str, objects: Sequence[Object]) -> Path:
        path = self.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump_all(objects), encoding="utf-8")
        return path


@contextlib.contextmanager
def crossplane(names: Iterable[str], folder: Path, report: Report) -> Iterator[Crossplane]:
    """Yield the command line beside the running functions of these names.

    Args:
        names: as Compositions name them.
        folder: an empty one, for logs and the files in between.
        report: gets a line when a program must be built or installed first.

    Raises:
        ProcessError: a function is not known here, or does not start.
    """
    programs = binaries.ensure(["crossplane", "crossplane-cli"], report=report)
    with contextlib.ExitStack() as stack:
        targets = {}
        wanted = sorted(set(names))
        if PATCHES in wanted and not os.environ.get(REAL_PATCHES):
            report(f"a stand-in for {PATCHES}: {REAL_PATCHES} names the real program")
        for name in wanted:
            port = free_port()
            targets[name] = f"127.0.0.1:{port}"
            argv = [*_command(name, report), "--insecure", "--address", targets[name]]
            # Ours has metrics at a fixed port unless it is told otherwise.
            program = Program(name=name, argv=argv, env={"METRICS_ADDRESS": ""}, cwd=ROOT)
            child = Child(program, folder / f"{name}.log")
            stack.callback(child.stop)
            child.await_ready(_listens(port), timeout_s=START_TIMEOUT_S)
        yield Crossplane(
            cli=programs["crossplane-cli"],
            core=programs["crossplane"],
            folder=folder,
            targets=targets,
        )


def _command(name: str, report: Report) -> list[str]:
    # While nothing is observed, auto-ready passes everything through, and so does the stand-in.
    stand_in = [sys.executable, "-m", "tests.render.patching"]
    if name == OURS:
        return [str(Path(sys.executable).parent / "function")]
    if name == pythonic.FUNCTION_NAME:
        return [str(pythonic.ensure(report=report))]
    if name == PATCHES:
        real = os.environ.get(REAL_PATCHES)
        return [real] if real else stand_in
    if name in (READY, TRANSFORMER):
        return stand_in
    message = f"cannot render: no program is known for function {name}"
    raise ProcessError(message)


def _listens(port: int) -> Callable[[], bool]:
    def listens() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    return listens


def _function(name: str, target: str) -> Object:
    return {
        "apiVersion": "pkg.crossplane.io/v1",
        "kind": "Function",
        "metadata": {
            "name": name,
            "annotations": {
                "render.crossplane.io/runtime": "Development",
                "render.crossplane.io/runtime-development-target": target,
            },
        },
        "spec": {"package": f"xpkg.example.org/development/{name}:v0.0.0"},
    }
