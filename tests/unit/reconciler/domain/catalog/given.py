"""A small catalogue of our own: one good blueprint, for a test to change.

Builders that give fresh objects each time.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import yaml

from reconciler.catalog.blueprint import BlueprintJudgement, Source, judge

Object = dict[str, Any]

SLUG = "small-vm"
NAMESPACED = "machines.m.example.org/v1alpha1"


def metadata(**fields: Any) -> Object:
    return {
        "slug": SLUG,
        "displayName": "Small VM",
        "description": "A small machine.",
        "version": "v1alpha1",
        "providerKinds": ["hetzner"],
        "injectionStrategy": "cloud-init-user-data",
        "parameterSchema": {
            "parameters": [
                {"name": "size", "type": "string", "default": "s"},
                {"name": "disk", "type": "integer", "required": True},
            ]
        },
        **fields,
    }


def definition(**spec: Any) -> Object:
    properties: Object = {
        "parameters": {
            "type": "object",
            "properties": {"size": {"type": "string"}, "disk": {"type": "integer"}},
        },
        "userData": {"type": "string"},
        "cloudTags": {"type": "object", "additionalProperties": {"type": "string"}},
        "providerConfigRef": {"type": "object", "properties": {"name": {"type": "string"}}},
    }
    status = {"type": "object", "properties": {"address": {"type": "string"}}}
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": properties}, "status": status},
    }
    version = {
        "name": "v1alpha1",
        "served": True,
        "referenceable": True,
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.crossplane.io/v2",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": "xsmallvms.blueprints.plexsphere.com"},
        "spec": {
            "group": "blueprints.plexsphere.com",
            "scope": "Namespaced",
            "names": {"kind": "XSmallVM", "plural": "xsmallvms"},
            "versions": [version],
            **spec,
        },
    }


def patch(source: str, target: str, **fields: Any) -> Object:
    return {"fromFieldPath": source, "toFieldPath": target, **fields}


def composition(
    patches: Sequence[Object] | None = None,
    base: Object | None = None,
    steps: Sequence[Object] = (),
    **spec: Any,
) -> Object:
    """A Composition of one machine; `steps` follow the patching one."""
    machine = {
        "apiVersion": NAMESPACED,
        "kind": "Machine",
        "spec": {"providerConfigRef": {"kind": "ProviderConfig", "name": "hetzner"}},
    }
    resource = {
        "name": "machine",
        "base": machine if base is None else base,
        "patches": patches_of_a_machine() if patches is None else list(patches),
    }
    given = {
        "apiVersion": "pt.fn.crossplane.io/v1beta1",
        "kind": "Resources",
        "resources": [resource],
    }
    step = {"step": "machine", "functionRef": {"name": "patching"}, "input": given}
    return {
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "Composition",
        "metadata": {"name": SLUG},
        "spec": {
            "compositeTypeRef": {
                "apiVersion": "blueprints.plexsphere.com/v1alpha1",
                "kind": "XSmallVM",
            },
            "mode": "Pipeline",
            "pipeline": [step, *steps],
            **spec,
        },
    }


def patches_of_a_machine() -> list[Object]:
    return [
        patch("spec.userData", "spec.forProvider.userData"),
        patch("spec.cloudTags", "spec.forProvider.labels"),
        patch("spec.parameters.size", "spec.forProvider.size"),
        patch("spec.parameters.disk", "spec.forProvider.disk"),
        patch("status.address", "status.address", type="ToCompositeFieldPath"),
    ]


def source(
    told: Object | None = None, defined: Object | None = None, composed: Object | None = None
) -> Source:
    return Source(
        slug=SLUG,
        folder=f"catalog/{SLUG}",
        files={
            "metadata.json": json.dumps(told or metadata()).encode(),
            "xrd.yaml": yaml.safe_dump(defined or definition()).encode(),
            "composition.yaml": yaml.safe_dump(composed or composition()).encode(),
        },
    )


def judged(
    told: Object | None = None, defined: Object | None = None, composed: Object | None = None
) -> BlueprintJudgement:
    return judge(source(told, defined, composed))


def told(judgement: BlueprintJudgement) -> list[str]:
    return [str(each).removeprefix(f"catalog/{SLUG}/") for each in judgement.findings]
