"""Translates a pydantic model into a structural OpenAPI schema.

What holds for every kind: references inlined, optional fields without null, the standard
schema of conditions. Anything that this does not know is an error, so that a new construct
in a model is noticed. Source: Kubernetes, "Extend the API with CustomResourceDefinitions",
structural schemas.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel

from function.contract.conditions import Condition

Schema = dict[str, Any]

PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"

_KEPT: Final = (
    "type",
    "format",
    "enum",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "required",
)
"""Keywords that mean the same in both languages."""

_TRANSLATED: Final = frozenset(
    {
        "$defs",
        "$ref",
        "additionalProperties",
        "anyOf",
        "const",
        "default",
        "description",
        "items",
        "properties",
        "title",
    }
)

_SCALARS: Final = frozenset({"boolean", "integer", "string"})

CONDITIONS: Final[Mapping[str, Any]] = {
    "description": "Latest observations, one per type.",
    "type": "array",
    "maxItems": 32,
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
    "items": {
        "description": "One observation of the object's state.",
        "type": "object",
        "required": ["type", "status", "lastTransitionTime", "reason", "message"],
        "properties": {
            "type": {
                "description": "What is observed, in CamelCase.",
                "type": "string",
                "maxLength": 316,
                "pattern": (
                    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
                    r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
                ),
            },
            "status": {
                "description": "Whether it holds.",
                "type": "string",
                "enum": ["True", "False", "Unknown"],
            },
            "reason": {
                "description": "Why, as one CamelCase word.",
                "type": "string",
                "minLength": 1,
                "maxLength": 1024,
                "pattern": r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
            },
            "message": {
                "description": "Why, as a sentence for people.",
                "type": "string",
                "maxLength": 32768,
            },
            "lastTransitionTime": {
                "description": "When the status last changed.",
                "type": "string",
                "format": "date-time",
            },
            "observedGeneration": {
                "description": "The metadata.generation that was looked at.",
                "type": "integer",
                "format": "int64",
                "minimum": 0,
            },
        },
    },
}
"""The standard conditions (Kubernetes API conventions; limits of metav1.Condition)."""


class SchemaError(ValueError):
    """A model holds something that has no structural form here."""


def structural(model: type[BaseModel], *, defaults: bool) -> Schema:
    """Return a model's structural schema.

    Args:
        model: the model of a spec or a status.
        defaults: whether scalar defaults are kept; a status has one writer, which says
            everything, so nothing is filled in there.

    Raises:
        SchemaError: a construct that is not known here.
    """
    raw = model.model_json_schema(by_alias=True, mode="validation")
    return _Translation(raw.get("$defs", {}), defaults=defaults).of(raw, path=model.__name__)


class _Translation:
    """One walk through one model's JSON schema."""

    def __init__(self, definitions: Mapping[str, Any], *, defaults: bool) -> None:
        self._definitions = definitions
        self._defaults = defaults

    def of(self, raw: Mapping[str, Any], *, path: str) -> Schema:
        node = self._resolved(raw, path=path)
        unknown = sorted(set(node) - set(_KEPT) - _TRANSLATED)
        if unknown:
            message = f"cannot translate {path}: {', '.join(unknown)}"
            raise SchemaError(message)
        if self._is_conditions(node):
            return dict(CONDITIONS)
        out: Schema = {}
        if node.get("description"):
            out["description"] = _first_paragraph(node["description"])
        if "anyOf" in node:
            return out | {PRESERVE: True}
        out |= {key: node[key] for key in _KEPT if key in node}
        if "const" in node:
            out["enum"] = [node["const"]]
        if out.get("type") == "integer":
            out.setdefault("format", "int64")
        if self._defaults and isinstance(node.get("default"), bool | int | str):
            out["default"] = node["default"]
        return out | self._children(node, path=path)

    def _children(self, node: Mapping[str, Any], *, path: str) -> Schema:
        out: Schema = {}
        if "properties" in node:
            out["properties"] = {
                name: self.of(child, path=f"{path}.{name}")
                for name, child in node["properties"].items()
            }
        if "items" in node:
            out["items"] = self.of(node["items"], path=f"{path}[]")
        values = node.get("additionalProperties")
        if values is True:
            out[PRESERVE] = True
        elif isinstance(values, Mapping):
            out["additionalProperties"] = self.of(values, path=f"{path}.*")
        return out

    def _resolved(self, raw: Mapping[str, Any], *, path: str) -> Schema:
        """Follow references and drop null, the field's own words above its type's."""
        node = dict(raw)
        if "anyOf" in node:
            given = [option for option in node["anyOf"] if option.get("type") != "null"]
            if len(given) == 1:
                del node["anyOf"]
                node = self._resolved(given[0], path=path) | node
            elif any(
                option.get("type") not in {"boolean", "integer", "string"} for option in given
            ):
                message = f"cannot translate {path}: a union of more than scalars"
                raise SchemaError(message)
        if "$ref" in node:
            name = str(node.pop("$ref")).removeprefix("#/$defs/")
            node = self._resolved(self._definitions[name], path=path) | node
        return node

    def _is_conditions(self, node: Mapping[str, Any]) -> bool:
        items = node.get("items")
        reference = f"#/$defs/{Condition.__name__}"
        return isinstance(items, Mapping) and items.get("$ref") == reference


def _first_paragraph(text: str) -> str:
    return " ".join(text.split("\n\n", maxsplit=1)[0].split())
