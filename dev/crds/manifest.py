"""Assembles a CustomResourceDefinition from a kind, and its text.

The frame around the schemas of our kinds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import yaml

from dev.crds.kinds import Kind
from dev.crds.schema import Schema, SchemaError, structural
from function.contract import names

HEADER: Final = (
    "# Generated from function/contract by `python -m dev.crds`; edit the models instead.\n"
)


def file_name(kind: Kind) -> str:
    """Name a kind's file in `deploy/crds`."""
    return f"{names.GROUP}_{kind.plural}.yaml"


def custom_resource_definition(kind: Kind) -> dict[str, Any]:
    """Return the definition of a kind.

    It carries the hold label itself, because deleting a definition deletes its objects
    past every policy on them (design §2).

    Raises:
        SchemaError: a model or an overlay has no structural form.
    """
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{kind.plural}.{names.GROUP}",
            "labels": {
                "app.kubernetes.io/part-of": "plexsphere-provisioning-broker",
                names.LABEL_HOLD: "true",
            },
        },
        "spec": {
            "group": names.GROUP,
            "scope": kind.scope,
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.name.lower(),
                "shortNames": [kind.short_name],
                "categories": ["plexsphere"],
            },
            "versions": [
                {
                    "name": names.VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [
                        {"name": name, "type": column_type, "jsonPath": path}
                        for name, column_type, path in kind.columns
                    ],
                    "schema": {"openAPIV3Schema": _schema(kind)},
                }
            ],
        },
    }


def text(kind: Kind) -> str:
    """Return a kind's manifest as YAML; equal input gives equal bytes."""
    return f"{HEADER}---\n{dumped(custom_resource_definition(kind))}"


def dumped(body: Schema) -> str:
    """Return a definition as YAML, its keys in their order."""
    return yaml.dump(body, Dumper=_Dumper, sort_keys=False, width=100, allow_unicode=True)


def overlaid(root: Schema, overlays: Mapping[str, Mapping[str, Any]]) -> Schema:
    """Add to a schema what a model cannot say, in place.

    Raises:
        SchemaError: a path is not in the schema.
    """
    for path, overlay in overlays.items():
        _at(root, path).update(overlay)
    return root


class _Dumper(yaml.SafeDumper):
    """Writes shared values out each time; anchors are unwelcome in manifests."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - the base class's signature
        return True


def _schema(kind: Kind) -> Schema:
    root: Schema = {
        "description": kind.description,
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {
                "description": "Group and version of this object's schema.",
                "type": "string",
            },
            "kind": {"description": "Kind of this object.", "type": "string"},
            "metadata": {"type": "object"},
            "spec": structural(kind.spec, defaults=True),
            "status": structural(kind.status, defaults=False),
        },
    }
    return overlaid(root, kind.overlays)


def _at(root: Schema, path: str) -> Schema:
    node = root
    for step in filter(None, path.replace("[]", ".[]").split(".")):
        found = node.get("items") if step == "[]" else node.get("properties", {}).get(step)
        if found is None:
            message = f"cannot find {path}: {step} is not in the model"
            raise SchemaError(message)
        node = found
    return node
