"""Field paths as Crossplane reads them, and what a schema declares."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.catalog import schema_path

SCHEMA: dict[str, Any] = {
    "properties": {
        "spec": {
            "properties": {
                "names": {"type": "array", "items": {"properties": {"first": {}}}},
                "tags": {"additionalProperties": {"type": "string"}},
                "open": {"x-kubernetes-preserve-unknown-fields": True},
                "any": {"additionalProperties": True},
                "closed": {"type": "object"},
            }
        }
    }
}


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("spec.userData", ("spec", "userData")),
        ("spec.names[0].first", ("spec", "names", 0, "first")),
        ("spec.names[*].first", ("spec", "names", "*", "first")),
        ("metadata.labels[example.org/a.b]", ("metadata", "labels", "example.org/a.b")),
        ("metadata.labels['a.b'].c", ("metadata", "labels", "a.b", "c")),
        ('a["b"]', ("a", "b")),
    ],
)
def test_a_path_is_taken_apart(text: str, path: schema_path.Path) -> None:
    assert schema_path.parse(text) == path


@pytest.mark.parametrize(
    "text", ["", ".a", "a.", "a..b", "a[", "a[]", "a]b", "a[0]b", "a" * 1025, "a.b[c"]
)
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(schema_path.FieldPathError):
        schema_path.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "spec.names[3].first", "spec.names[*].first", "spec.tags.colour", "spec.open.a.b[2]",
        "spec.any.a", "metadata.name", "metadata.labels[a/b]", "kind", "spec.crossplane.x",
        "status.conditions[0].reason", "spec",
    ],
)  # fmt: skip
def test_a_declared_path_is_found(text: str) -> None:
    assert schema_path.declared(SCHEMA, schema_path.parse(text))


@pytest.mark.parametrize(
    "text",
    [
        "spec.names.first",
        "spec.other",
        "spec.closed.a",
        "status.x",
        "metadata.finalizers",
        "kind.a",
    ],
)
def test_an_undeclared_path_is_not_found(text: str) -> None:
    assert not schema_path.declared(SCHEMA, schema_path.parse(text))
