"""The pieces that overlays are made of: CEL rules and list semantics.

What more than one kind needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

Overlay = Mapping[str, Any]

IMMUTABLE: Final[Overlay] = {
    "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "is immutable"}]
}

SET: Final[Overlay] = {"x-kubernetes-list-type": "set"}

ATOMIC: Final[Overlay] = {"x-kubernetes-map-type": "atomic"}


def rule(expression: str, message: str) -> Overlay:
    """Return one CEL rule."""
    return rules((expression, message))


def rules(*listed: tuple[str, str]) -> Overlay:
    """Return several CEL rules, each with its message."""
    made = [{"rule": expression, "message": message} for expression, message in listed]
    return {"x-kubernetes-validations": made}


def fixed(*fields: str) -> list[dict[str, str]]:
    """Return rules that optional fields are neither changed, nor put in or taken out."""
    return [
        {
            "rule": f"has(self.{field}) == has(oldSelf.{field})"
            f" && (!has(self.{field}) || self.{field} == oldSelf.{field})",
            "message": "is immutable; publish a BlueprintVersion of another name",
            "fieldPath": f".{field}",
        }
        for field in fields
    ]
