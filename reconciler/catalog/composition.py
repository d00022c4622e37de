"""`composition.yaml`: how the blueprint's kind becomes managed resources.

The rules for the Composition, alone and against the XRD. Source: contracts §4.4 and §6
items 6, 7 and 14; design §2 on nesting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from function.contract import names
from reconciler.catalog import decoding, schema_path
from reconciler.catalog.definition import Definition
from reconciler.catalog.findings import Report
from reconciler.catalog.pipeline import Base, Pipeline, Touch, take_apart

STEPS_MAX: Final = 99
"""Crossplane's own limit of a pipeline."""

_API: Final = "apiextensions.crossplane.io/"
_LEGACY: Final = (".crossplane.io", ".upbound.io")
_NAMESPACED: Final = frozenset({"protection.crossplane.io"})
_CLUSTER_KINDS: Final = frozenset(
    {"Namespace", "ClusterRole", "ClusterRoleBinding", "PersistentVolume", "StorageClass",
     "CustomResourceDefinition", "ClusterProviderConfig"}
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """The parts of a Composition that other checks use.

    Attributes:
        name: Its name, empty when it has none.
        api_version: Group and version of the XR it composes.
        kind: Kind of that XR.
        pipeline: What its steps touch.
    """

    name: str
    api_version: str
    kind: str
    pipeline: Pipeline


def parse(content: bytes, report: Report) -> Composition | None:
    """Return the Composition, or None after what makes it unusable was reported."""
    try:
        body = decoding.from_yaml(content)
    except decoding.DecodeError as error:
        report.add("", str(error))
        return None
    if not str(body.get("apiVersion", "")).startswith(_API):
        report.add("apiVersion", f"is not of group {_API.removesuffix('/')}")
    if body.get("kind") != "Composition":
        report.add("kind", "is not Composition")
    spec = _mapping(body.get("spec"))
    if spec.get("mode") != "Pipeline":
        report.add("spec.mode", "is not Pipeline")
    steps = spec.get("pipeline")
    if not isinstance(steps, list) or not 0 < len(steps) <= STEPS_MAX:
        report.add("spec.pipeline", f"must hold 1 to {STEPS_MAX} steps")
        return None
    _check_steps(steps, report)
    pipeline = take_apart(steps)
    for at in pipeline.missing_sets:
        report.add(at, "names a patch set that does not exist")
    for base in pipeline.bases:
        _check_base(base, report)
    wanted = _mapping(spec.get("compositeTypeRef"))
    return Composition(
        name=str(_mapping(body.get("metadata")).get("name", "")),
        api_version=str(wanted.get("apiVersion", "")),
        kind=str(wanted.get("kind", "")),
        pipeline=pipeline,
    )


def check_against(definition: Definition, made: Composition, report: Report) -> None:
    """Report where a Composition and its XRD disagree."""
    if made.api_version != definition.api_version:
        rule = f"is not {definition.api_version}, the first served version"
        report.add("spec.compositeTypeRef.apiVersion", rule)
    if made.kind != definition.kind:
        report.add("spec.compositeTypeRef.kind", f"is not {definition.kind}")
    for touch in made.pipeline.reads:
        _check_declared(touch, definition, report)
    for touch in made.pipeline.writes:
        path = _check_declared(touch, definition, report)
        if path is not None and path[0] != "status":
            report.add(
                touch.at, "is outside status, the only part of its XR that a function may write"
            )


def _check_steps(steps: list[Any], report: Report) -> None:
    seen: set[str] = set()
    for index, step in enumerate(steps):
        name = _mapping(step).get("step")
        if not isinstance(name, str) or not name:
            report.add(f"spec.pipeline[{index}].step", "is missing")
        elif name in seen:
            report.add(f"spec.pipeline[{index}].step", "is duplicated")
        else:
            seen.add(name)
        function = _mapping(_mapping(step).get("functionRef")).get("name")
        if not isinstance(function, str) or not function:
            report.add(f"spec.pipeline[{index}].functionRef.name", "is missing")


def _check_base(base: Base, report: Report) -> None:
    version = str(base.body.get("apiVersion", ""))
    group = version.rpartition("/")[0]
    kind = str(base.body.get("kind", ""))
    if not version or not kind:
        report.add(base.at, "lacks apiVersion or kind")
    elif group in {names.BLUEPRINTS_GROUP, names.GROUP}:
        rule = "is a composite resource, whose own children the broker could not protect"
        report.add(f"{base.at}.apiVersion", rule)
    elif _cluster_scoped(group, kind):
        rule = "is cluster-scoped, and a namespaced XR cannot compose it"
        hint = "; use the kind of the provider's .m. group" if group.endswith(_LEGACY) else ""
        report.add(f"{base.at}.apiVersion", f"{rule}{hint}")


def _cluster_scoped(group: str, kind: str) -> bool:
    if kind in _CLUSTER_KINDS:
        return True
    legacy = group.endswith(_LEGACY) and ".m." not in group
    return legacy and group not in _NAMESPACED


def _check_declared(
    touch: Touch, definition: Definition, report: Report
) -> schema_path.Path | None:
    try:
        path = schema_path.parse(touch.path)
    except schema_path.FieldPathError as error:
        report.add(touch.at, str(error))
        return None
    if not definition.declares(path):
        report.add(touch.at, f"names {touch.path[:256]}, which the XRD does not declare")
        return None
    return path


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
