"""One blueprint of a catalogue: its three files judged together, and its manifest.

What must agree between the files, and the BlueprintVersion. Source: contracts §4.4 and §6
items 6, 7, 14; kinds.md, "BlueprintVersion".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from function.contract import names
from function.contract.catalog.published import BlueprintVersionSpec
from reconciler.catalog import agreement, composition, definition, metadata, provider_config
from reconciler.catalog.definition import Definition
from reconciler.catalog.findings import Finding, Report
from reconciler.catalog.metadata import CatalogParameter, Metadata

METADATA: Final = "metadata.json"
XRD: Final = "xrd.yaml"
COMPOSITION: Final = "composition.yaml"
FILES: Final = (METADATA, XRD, COMPOSITION)

_Parsed = TypeVar("_Parsed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A blueprint as it was found.

    Attributes:
        slug: Name of its folder.
        folder: Path of that folder below the catalogue's, for findings.
        files: Content by name; a missing file is absent.
    """

    slug: str
    folder: str
    files: Mapping[str, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlueprintJudgement:
    """The result of checking a blueprint.

    Attributes:
        manifest: The BlueprintVersion, or None when a finding that is not advisory stands.
        findings: Every finding, in the order of the files.
    """

    manifest: dict[str, Any] | None
    findings: Sequence[Finding]


@dataclass(slots=True, kw_only=True)
class _Reports:
    folder: str
    made: dict[str, Report] = field(default_factory=dict)

    def of(self, file: str) -> Report:
        return self.made.setdefault(file, Report(file=f"{self.folder}/{file}"))

    def findings(self) -> list[Finding]:
        return [each for file in FILES for each in self.of(file).findings]


def judge(source: Source) -> BlueprintJudgement:
    """Check a blueprint and make its manifest. Total: every input is judged."""
    reports = _Reports(folder=source.folder)
    for file in FILES:
        if file not in source.files:
            reports.of(file).add("", "is missing")
    told = _parsed(source, METADATA, metadata.parse, reports)
    defined = _parsed(source, XRD, definition.parse, reports)
    composed = _parsed(source, COMPOSITION, composition.parse, reports)
    if told is not None:
        _check_told(source.slug, told, defined, reports.of(METADATA))
    if defined is not None and composed is not None:
        composition.check_against(defined, composed, reports.of(COMPOSITION))
    if composed is not None and composed.name != source.slug:
        reports.of(COMPOSITION).add("metadata.name", "must be the name of the folder")
    if told is None or defined is None or composed is None:
        return BlueprintJudgement(manifest=None, findings=reports.findings())
    parts = agreement.Parts(told=told, defined=defined, composed=composed)
    agreement.check_injection(parts, reports.of(XRD), reports.of(COMPOSITION))
    agreement.check_parameters(parts, reports.of(METADATA), reports.of(XRD))
    target = provider_config.target(composed.pipeline, reports.of(COMPOSITION))
    manifest = _manifest(told, defined, target, reports.of(METADATA))
    findings = reports.findings()
    wrong = any(not each.advisory for each in findings)
    return BlueprintJudgement(manifest=None if wrong else manifest, findings=findings)


def _parsed(
    source: Source, file: str, parse: Callable[[bytes, Report], _Parsed | None], reports: _Reports
) -> _Parsed | None:
    content = source.files.get(file)
    return None if content is None else parse(content, reports.of(file))


def _check_told(slug: str, told: Metadata, defined: Definition | None, report: Report) -> None:
    if told.slug != slug:
        report.add("slug", "must be the name of the folder")
    if defined is not None and told.version != defined.version:
        report.add("version", "is not the XRD's first served version")


def _manifest(
    told: Metadata, defined: Definition, target: Mapping[str, str] | None, report: Report
) -> dict[str, Any] | None:
    spec: dict[str, Any] = {
        "slug": told.slug,
        "version": told.version,
        "injectionStrategy": told.injection_strategy.value,
        "meshRole": told.mesh_role.value,
        "providerKinds": [kind.value for kind in told.provider_kinds],
        "xr": {"apiVersion": defined.api_version, "kind": defined.kind, "scope": "Namespaced"},
    }
    if target is not None:
        spec["providerConfig"] = dict(target)
    spec["parameters"] = [_parameter(each) for each in told.parameters]
    if told.constants:
        spec["constants"] = [{"name": each.name, "value": each.value} for each in told.constants]
    try:
        BlueprintVersionSpec.model_validate(spec)
    except ValidationError as error:
        for each in error.errors(include_url=False, include_input=False, include_context=False):
            path = ".".join(map(str, each["loc"]))
            report.add(
                "", f"does not make a valid BlueprintVersion: spec.{path}: {each['msg'].lower()}"
            )
        return None
    return {
        "apiVersion": names.API_VERSION,
        "kind": "BlueprintVersion",
        "metadata": {"name": f"{told.slug}-{told.version}"},
        "spec": spec,
    }


def _parameter(told: CatalogParameter) -> dict[str, Any]:
    """Return a parameter as a BlueprintVersion holds it: what is said, and no defaults."""
    return told.model_dump(
        mode="json", by_alias=True, exclude_defaults=True, exclude={"description"}
    )
