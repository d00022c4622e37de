"""`make render`: every example through Crossplane's own render, down to managed resources.

The chain of renders, what makes an example wrong, and the lines people read. The Makefile
and the tests use it.

`python -m dev.render [FILE …]` renders the examples below these paths, all without any, in
preview: no reconciler is asked. A composed resource that has a Composition here is rendered
in turn, and everything is judged by the schemas that are at hand. `PROVIDER_CRDS` names a
folder with CRDs of further providers. Exit status 1: an example is wrong.
"""

import argparse
import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from dev import schemas
from dev.binaries import console, core_manifests
from dev.examples import ROOT, Example, examples
from dev.process import ProcessError, reach_loopback_directly
from dev.rendering import Crossplane, Inputs, Object, Rendered, crossplane
from function.contract import names
from function.contract.conditions import ConditionType, Reason

INPUTS = ROOT / "package" / "input"

PROVIDER_CRDS = "PROVIDER_CRDS"

DEPTH_MAX = 3
"""Composites below one another: ours, a blueprint's, and one that should not be there."""

PROVIDERS: Mapping[str, str] = {
    "ec2.aws.m.upbound.io": "github.com/upbound/provider-aws/v2",
    "kubernetes.m.crossplane.io": "github.com/crossplane-contrib/provider-kubernetes",
    "helm.m.crossplane.io": "github.com/crossplane-contrib/provider-helm",
}
"""The Go module that brings a group's definitions; not every provider is one."""

PREVIEW: Mapping[str, object] = {names.CONTEXT_PREVIEW: True}

WANTED: Mapping[str, str] = {
    "Synced": "True",
    ConditionType.ADMITTED: "True",
    ConditionType.BOOTSTRAP_INJECTED: "True",
    ConditionType.PROVISIONING_FAILED: "False",
}
"""What the conditions of a composite say that would come to be, the cause before its effects."""

SAID: Mapping[str, str] = {
    "valid": "valid",
    "invalid": "WRONG",
    "missingSchema": "not judged: its definition is not here",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of an example.

    Attributes:
        lines: what was composed, one line each, indented by depth.
        faults: what is wrong, a line each; none: the example is right.
    """

    lines: Sequence[str]
    faults: Sequence[str]


def judged(example: Example, command: Crossplane, core_crds: Path) -> Outcome:
    """Render an example down to what has no Composition, and judge all of it.

    A composite that is not admitted, or whose document cannot be made, is wrong, although
    `crossplane render` exits with 0 for it.

    Args:
        example: what is rendered.
        command: beside the functions of its pipelines.
        core_crds: folder of Crossplane's own definitions, which judge its Compositions.

    Raises:
        ProcessError: a program failed for a reason that is none of the example's.
    """
    compositions = [_loaded(path) for path in example.compositions]
    verdicts = command.validate(compositions, [core_crds, INPUTS, *example.schemas])
    found = _below(example, command, _loaded(example.xr), 0)
    return Outcome(
        lines=found.lines,
        faults=[*(fault for each in verdicts for fault in _invalid(each)), *found.faults],
    )


def _below(example: Example, command: Crossplane, xr: Object, depth: int) -> Outcome:
    """Judge what a composite composes, level by level; nothing for what is none here."""
    inputs = _inputs(example, xr, first=depth == 0)
    if inputs is None or depth > DEPTH_MAX:
        return Outcome(lines=(), faults=())
    found = command.render(xr, inputs)
    if found.error:
        return Outcome(lines=(), faults=[f"{_label(xr)}: {found.error}"])
    bodies = [found.xr, *found.resources.values()]
    definitions = [*example.schemas, *_provider_definitions(bodies, command.folder)]
    lines: list[str] = []
    faults = _refused(found)
    verdicts = command.validate(bodies, definitions)
    for name, body, verdict in zip(["", *found.resources], bodies, verdicts, strict=True):
        faults += _invalid(verdict)
        if name or depth == 0:
            lines.append(_line(depth + bool(name), name, body, str(verdict["status"])))
        if name:
            below = _below(example, command, body, depth + 1)
            lines += below.lines
            faults += below.faults
    return Outcome(lines=[*lines, *_notes(found)], faults=faults)


def _inputs(example: Example, xr: Object, *, first: bool) -> Inputs | None:
    kind = (xr["apiVersion"], xr["kind"])
    for path in example.compositions:
        wanted = _loaded(path)["spec"]["compositeTypeRef"]
        if (wanted["apiVersion"], wanted["kind"]) == kind:
            return Inputs(
                composition=path,
                xrd=_definition(example, xr),
                required=example.required if first else (),
                context=PREVIEW if first else None,
            )
    return None


def _definition(example: Example, xr: Object) -> Path | None:
    """Find the file of a composite's definition."""
    for path in (each for each in example.schemas if each.is_file()):
        spec = _loaded(path)["spec"]
        if (spec["group"], spec["names"]["kind"]) == (_group(xr), xr["kind"]):
            return path
    return None


def _provider_definitions(bodies: Sequence[Object], folder: Path) -> Iterator[Path]:
    """Yield the folders with definitions of managed resources, as far as there are any."""
    target = folder / "providers"
    target.mkdir(exist_ok=True)
    pinned = [line.split() for line in schemas.pinned_sums(schemas.SUMS.read_text("utf-8"))]
    versions = dict(each for each in pinned)
    for body in bodies:
        module = PROVIDERS.get(_group(body))
        file = f"{_group(body)}_{body['kind'].lower()}s.yaml"
        if module in versions and not (target / file).exists():
            with contextlib.suppress(KeyError):
                content = schemas.module_file(module, versions[module], f"package/crds/{file}")
                (target / file).write_bytes(content)
    yield target
    if os.environ.get(PROVIDER_CRDS):
        yield Path(os.environ[PROVIDER_CRDS])


def _refused(found: Rendered) -> list[str]:
    """Say the first condition that means a composite would not come to be."""
    for kind, good in WANTED.items():
        condition = found.conditions().get(kind)
        if condition and condition["status"] != good and condition["reason"] != Reason.NOT_EXPECTED:
            # What follows from it is not told as well.
            return [f"{_label(found.xr)}: {_told(condition)}"]
    return []


def _notes(found: Rendered) -> list[str]:
    condition = found.conditions().get(ConditionType.CLOUD_TAGS_COMPLETE)
    if condition is None or condition["status"] == "True":
        return []
    return [f"  note: {_told(condition)}"]


def _told(condition: Object) -> str:
    kind, status = condition["type"], condition["status"]
    return f"{kind} is {status}, {condition['reason']}: {condition.get('message', '')}"


def _invalid(verdict: Object) -> list[str]:
    label = f"{verdict['kind']}/{verdict.get('name', '')}".rstrip("/")
    return [f"{label}: {each['message']}" for each in verdict.get("errors", [])]


def _line(depth: int, name: str, body: Object, verdict: str) -> str:
    shown = SAID.get(verdict, verdict)
    return f"{'  ' * depth}  {name or '.':<{24 - 2 * depth}} {_label(body):<62} {shown}"


def _label(body: Object) -> str:
    return f"{body['kind']}/{body['metadata']['name']}"


def _group(body: Object) -> str:
    return names.group_of(str(body["apiVersion"]))


def _loaded(path: Path) -> Object:
    body: Object = yaml.safe_load(path.read_text(encoding="utf-8"))
    return body


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m dev.render", description="Render examples.")
    parser.add_argument("path", nargs="*", type=Path, help="only the examples below these paths")
    wanted = [path.resolve() for path in parser.parse_args().path]
    chosen = [
        example
        for example in examples()
        if not wanted or any(example.xr.is_relative_to(path) for path in wanted)
    ]
    if not chosen:
        print("no example is there")
        return 1
    report = console()
    core_crds = core_manifests(report=report).crds
    functions = {name for example in chosen for name in example.functions()}
    wrong = 0
    with (
        tempfile.TemporaryDirectory() as folder,
        crossplane(functions, Path(folder), report) as command,
    ):
        for example in chosen:
            outcome = judged(example, command, core_crds)
            wrong += bool(outcome.faults)
            _show(example, outcome)
    print(f"{len(chosen)} examples, {wrong} wrong")
    return 1 if wrong else 0


def _show(example: Example, outcome: Outcome) -> None:
    print(f"{example.xr.relative_to(ROOT)}: {'WRONG' if outcome.faults else 'ok'}")
    for line in [*outcome.lines, *(f"  wrong: {fault}" for fault in outcome.faults)]:
        print(line)


if __name__ == "__main__":
    reach_loopback_directly()
    try:
        sys.exit(main())
    except ProcessError as failure:
        sys.exit(str(failure))
