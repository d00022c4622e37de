"""`xrd.yaml`: the blueprint's own kind.

The rules for the definition, and the version that counts. Source: contracts §4.4 and §6
item 7; Crossplane's XRD v2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from function.contract import names
from reconciler.catalog import decoding, schema_path
from reconciler.catalog.findings import Report

_GROUP: Final = names.BLUEPRINTS_GROUP
_API: Final = "apiextensions.crossplane.io/"
_OURS: Final = frozenset({"parameters", "userData", "cloudTags"})
"""What the function writes below spec of a blueprint's XR (seed 003)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """The parts of an XRD that other checks use.

    Attributes:
        kind: The XR's kind.
        version: The first served version.
        schema: That version's `openAPIV3Schema`.
        schema_at: Field path of the schema, for findings.
    """

    kind: str
    version: str
    schema: Mapping[str, Any]
    schema_at: str

    @property
    def api_version(self) -> str:
        """Group and version of the XR."""
        return f"{_GROUP}/{self.version}"

    def declares(self, path: schema_path.Path) -> bool:
        """Whether its XRs may carry a path."""
        return schema_path.declared(self.schema, path)


def parse(content: bytes, report: Report) -> Definition | None:
    """Return the definition, or None after what makes it unusable was reported."""
    try:
        body = decoding.from_yaml(content)
    except decoding.DecodeError as error:
        report.add("", str(error))
        return None
    if not str(body.get("apiVersion", "")).startswith(_API):
        report.add("apiVersion", f"is not of group {_API.removesuffix('/')}")
    if body.get("kind") != "CompositeResourceDefinition":
        report.add("kind", "is not CompositeResourceDefinition")
    spec = _mapping(body.get("spec"))
    named = _mapping(spec.get("names"))
    _check_identity(body, spec, named, report)
    found = _version(spec, report)
    kind = named.get("kind")
    if not isinstance(kind, str) or not kind:
        report.add("spec.names.kind", "is missing")
        return None
    if found is None:
        return None
    index, version, schema = found
    schema_at = f"spec.versions[{index}].schema.openAPIV3Schema"
    made = Definition(kind=kind, version=version, schema=schema, schema_at=schema_at)
    _check_required(made, report)
    return made


def _check_identity(
    body: Mapping[str, Any], spec: Mapping[str, Any], named: Mapping[str, Any], report: Report
) -> None:
    if spec.get("group") != _GROUP:
        report.add("spec.group", f"is not {_GROUP}")
    name = _mapping(body.get("metadata")).get("name")
    if name != f"{named.get('plural')}.{spec.get('group')}":
        report.add("metadata.name", "is not spec.names.plural and spec.group joined by a dot")
    scope = spec.get("scope")
    if body.get("apiVersion") == f"{_API}v1":
        scope = spec.get("scope", "LegacyCluster")
    elif scope is None:
        scope = "Namespaced"
    if scope != "Namespaced":
        rule = "must be Namespaced: a namespaced XR, as in a Project, cannot compose another one"
        report.add("spec.scope", rule)


def _version(spec: Mapping[str, Any], report: Report) -> tuple[int, str, Mapping[str, Any]] | None:
    versions = spec.get("versions")
    listed: Sequence[Any] = versions if isinstance(versions, list) else []
    for index, entry in enumerate(listed):
        version = _mapping(entry)
        if version.get("served") is not True:
            continue
        name = version.get("name")
        schema = _mapping(version.get("schema")).get("openAPIV3Schema")
        if not isinstance(name, str):
            report.add(f"spec.versions[{index}].name", "is not a string")
        elif not isinstance(schema, dict):
            report.add(f"spec.versions[{index}].schema.openAPIV3Schema", "is missing")
        else:
            if version.get("referenceable") is not True:
                report.add(f"spec.versions[{index}].referenceable", "is not true")
            return index, name, schema
        return None
    report.add("spec.versions", "has no served version")
    return None


def _check_required(definition: Definition, report: Report) -> None:
    spec = schema_path.node(definition.schema, ("spec",))
    for name in schema_path.required(spec or {}):
        if name not in _OURS:
            rule = f"names {name}, which nothing sets"
            report.add(f"{definition.schema_at}.properties.spec.required", rule)
    if not definition.declares(("spec", "cloudTags", "any")):
        rule = "must declare cloudTags as a map of strings, which every labelled resource has"
        report.add(f"{definition.schema_at}.properties.spec", rule)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
