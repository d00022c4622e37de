"""Derives `BlueprintVersion.spec.providerConfig` from a Composition.

Finding the one name, or the field of the XR that gives it, and the provider that the
resources are of. Source: kinds.md, "BlueprintVersion"; contracts §4.3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from function.contract.names import group_of
from reconciler.catalog.findings import Report
from reconciler.catalog.pipeline import Base, Pipeline

_TARGET: Final = "spec.providerConfigRef.name"
_KINDS: Final = ("ProviderConfig", "ClusterProviderConfig")
_FIELD_PATH: Final = re.compile(r"spec(\.[A-Za-z][A-Za-z0-9_-]*)+")
_VERSIONS: Final = {
    "aws.m.upbound.io": "v1beta1",
    "azure.m.upbound.io": "v1beta1",
    "gcp.m.upbound.io": "v1beta1",
    "helm.m.crossplane.io": "v1beta1",
    "hetzner.m.crossplane.io": "v1beta1",
    "kubernetes.m.crossplane.io": "v1alpha1",
    "openstack.m.crossplane.io": "v1beta1",
}
"""Version of the ProviderConfig by provider: no Composition says it. A resource's group is its
provider's, or one below it. Others get the seeds' generic one until somebody writes apiVersion."""

_RESERVED: Final = ("spec.parameters", "spec.userData", "spec.cloudTags", "spec.crossplane")


def target(pipeline: Pipeline, report: Report) -> dict[str, str] | None:
    """Return `kind` with `name` or `fieldPath`, and the provider's `apiVersion` where it is known.

    None when no base refers to one.

    A kind's default is what Crossplane's namespaced managed resources default to, so a base
    that names no ProviderConfig at all is left to its provider.
    """
    references = [(base, ref) for base in pipeline.bases if (ref := _reference(base)) is not None]
    kinds = sorted({str(ref.get("kind", "")) for _, ref in references})
    if not references:
        return None
    if len(kinds) > 1 or kinds[0] not in _KINDS:
        at = f"{references[0][0].at}.spec.providerConfigRef.kind"
        report.add(at, f"must be one of {' and '.join(_KINDS)}, the same for all resources")
        return None
    providers = {_provider(base) for base, _ in references} - {None}
    if len(providers) > 1:
        at = f"{references[0][0].at}.spec.providerConfigRef"
        report.add(at, "must be of one provider for all resources")
        return None
    (provider,) = providers or {None}
    own = {} if provider is None or kinds[0] != _KINDS[0] else {"apiVersion": provider}
    sources = sorted({touch.path for touch in pipeline.reads if touch.target == _TARGET})
    if sources:
        found = _from_field(kinds[0], sources, pipeline, report)
        return None if found is None else {**own, **found}
    names = sorted({str(ref.get("name", "")) for _, ref in references})
    if len(names) > 1 or not names[0]:
        at = f"{references[0][0].at}.spec.providerConfigRef.name"
        report.add(at, "must be one name for all resources")
        return None
    return {**own, "kind": kinds[0], "name": names[0]}


def _from_field(
    kind: str, sources: list[str], pipeline: Pipeline, report: Report
) -> dict[str, str] | None:
    at = next(touch.at for touch in pipeline.reads if touch.target == _TARGET)
    if len(sources) > 1:
        report.add(at, "must be one field for all resources")
        return None
    (path,) = sources
    ours = any(path == each or path.startswith(f"{each}.") for each in _RESERVED)
    if ours or not _FIELD_PATH.fullmatch(path):
        report.add(at, "must be a field below spec that holds the ProviderConfig's name alone")
        return None
    return {"kind": kind, "fieldPath": path}


def _provider(base: Base) -> str | None:
    group = group_of(str(base.body.get("apiVersion", "")))
    for provider, version in _VERSIONS.items():
        if group == provider or group.endswith(f".{provider}"):
            return f"{provider}/{version}"
    return None


def _reference(base: Base) -> Mapping[str, Any] | None:
    spec = base.body.get("spec")
    found = spec.get("providerConfigRef") if isinstance(spec, Mapping) else None
    return found if isinstance(found, Mapping) else None
