"""Renders of the published blueprints: from a ProvisionedResource to managed resources.

The chain of two renders, and the functions it needs.
"""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import yaml

from function.contract import names
from tests.integration.grpc.serving import COMMAND, READY_TIMEOUT_S, free_address, running
from tests.render.conftest import (
    COMPOSITION,
    FUNCTION,
    ROOT,
    TARGET,
    Crossplane,
    Object,
    every,
    loaded,
)

EXAMPLES = ROOT / "example" / "published"
XRDS = ROOT / "xrds" / "blueprints"
COMPOSITIONS = ROOT / "compositions" / "blueprints"

PATCHES = "crossplane-contrib-function-patch-and-transform"
READY = "crossplane-contrib-function-auto-ready"
TRANSFORMER = "crossplane-contrib-function-status-transformer"

REAL = "PATCH_AND_TRANSFORM"
"""Names a program of function-patch-and-transform v0.9.0 to use in place of the stand-in."""

REAL_TRANSFORMER = "STATUS_TRANSFORMER"
"""Names a program of function-status-transformer v0.4.0 to use in place of the stand-in."""

RESOURCE_NAME = "crossplane.io/composition-resource-name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """What a blueprint's Composition made, by composed-resource name."""

    xr: Object
    resources: Mapping[str, Object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Blueprints(Crossplane):
    """The command line beside the functions of both Configurations.

    Attributes:
        previewed: Renders that are done, by slug; each takes seconds on a busy machine.
    """

    previewed: dict[str, Object] = field(default_factory=dict)

    def substrate(self, slug: str) -> Object:
        """A fresh copy of the blueprint's XR, as the example's ProvisionedResource previews it."""
        if slug not in self.previewed:
            self.previewed[slug] = self._previewed(slug)
        return copy.deepcopy(self.previewed[slug])

    def _previewed(self, slug: str) -> Object:
        required = [loaded(EXAMPLES / slug / "blueprint.yaml"), *every(EXAMPLES / "clouds.yaml")]
        shown = self._rendered(
            loaded(EXAMPLES / slug / "resource.yaml"),
            COMPOSITION,
            "-e", self._file("required", required),
            "--context-values", f"{names.CONTEXT_PREVIEW}=true",
        )  # fmt: skip
        (made,) = (each for each in shown if group(each) == names.BLUEPRINTS_GROUP)
        return made

    def below(self, slug: str, xr: Object, *observed: Object) -> Composed:
        """What the blueprint's Composition makes of its XR beside what is there."""
        seen = ("-o", self._file("observed", list(observed))) if observed else ()
        shown = self._rendered(xr, COMPOSITIONS / f"{slug}.yaml", *seen)
        (own,) = (each for each in shown if each["kind"] == xr["kind"])
        made = [each for each in shown if each is not own]
        return Composed(
            xr=own,
            resources={each["metadata"]["annotations"][RESOURCE_NAME]: each for each in made},
        )

    def _rendered(self, xr: Object, composition: Path, *flags: str) -> list[Object]:
        listed = every(EXAMPLES / "functions.yaml")
        for each in listed:
            each["metadata"]["annotations"][TARGET] = self.targets[each["metadata"]["name"]]
        done = self._run(
            "render",
            self._file("xr", [xr]),
            str(composition),
            self._file("functions", listed),
            "--crossplane-binary", str(self.core),
            "-x", "--timeout", "30s",
            *flags,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return [each for each in yaml.safe_load_all(done.stdout) if each]


@contextmanager
def functions() -> Iterator[Mapping[str, str]]:
    """Serve our function and the other steps', by name and address."""
    with _served([COMMAND]) as ours, third_party() as others:
        yield {FUNCTION: ours, **others}


@contextmanager
def third_party() -> Iterator[Mapping[str, str]]:
    """Serve the other steps' functions: the real patching one when it is named."""
    stand_in = [sys.executable, "-m", "tests.render.patching"]
    with ExitStack() as stack:
        ready = stack.enter_context(_served(stand_in))
        named = {PATCHES: os.environ.get(REAL), TRANSFORMER: os.environ.get(REAL_TRANSFORMER)}
        served = {
            name: stack.enter_context(_served([real])) if real else ready
            for name, real in named.items()
        }
        yield {READY: ready, **served}


@contextmanager
def _served(command: Sequence[str]) -> Iterator[str]:
    address = free_address()
    arguments = (*command[1:], "--insecure", "--address", address)
    with running(*arguments, command=command[0]):
        with closing(grpc.insecure_channel(address)) as channel:
            grpc.channel_ready_future(channel).result(timeout=READY_TIMEOUT_S)
        yield address


def group(body: Object) -> str:
    """The API group of an object; its version for those of the core group."""
    return str(body["apiVersion"]).partition("/")[0]
