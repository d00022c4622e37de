"""What every definition must have, whatever its models say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
import yaml
from pydantic import BaseModel, Field

from dev.crds.__main__ import FOLDER, drifted, write
from dev.crds.kinds import KINDS, RECORD, Kind
from dev.crds.manifest import custom_resource_definition, file_name, text
from dev.crds.schema import SchemaError, structural
from function.contract import names
from function.contract.shape import Shape

KEPT_AS_GIVEN = {
    "BlueprintVersion": {
        ".spec.parameters[].default",
        ".spec.parameters[].enum[]",
        ".spec.constants[].value",
    },
    "Cloud": {".spec.endpoint"},
    "ProvisioningRecord": {".spec.declaration.parameters.*", ".status.accepted.parameters.*"},
}
"""The only free-form places (kinds.md)."""

JUDGED_BY_TYPE = {".spec.parameters[]", ".spec.constants[].value"}
"""Where values of several types are limited, each by its own."""

KEYWORDS = {
    *("type", "format", "enum", "pattern", "minLength", "maxLength", "minimum", "maximum"),
    *("minItems", "maxItems", "minProperties", "maxProperties", "required", "default"),
    *("description", "properties", "items", "additionalProperties"),
}


def nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every field's schema with its path, the value validations beside it left out."""
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    if "items" in schema:
        yield from nodes(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from nodes(schema["additionalProperties"], f"{path}.*")


def schema_of(kind: Kind) -> dict[str, Any]:
    version = custom_resource_definition(kind)["spec"]["versions"][0]
    schema: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return schema


def declared(kind: Kind) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the fields below spec and status."""
    for path, schema in nodes(schema_of(kind)):
        if path.startswith((".spec", ".status")):
            yield path, schema


every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def test_files_are_what_the_models_say() -> None:
    assert drifted(FOLDER) == []


def test_drift_is_noticed_in_changed_missing_and_stray_files(tmp_path: Path) -> None:
    write(tmp_path)
    changed, missing = sorted(tmp_path.glob("*.yaml"))[:2]
    changed.write_text(changed.read_text(encoding="utf-8") + "#\n", encoding="utf-8")
    missing.unlink()
    (tmp_path / "stray.yaml").write_text("{}\n", encoding="utf-8")

    assert drifted(tmp_path) == sorted([changed.name, missing.name, "stray.yaml"])
    write(tmp_path)
    assert drifted(tmp_path) == []


@every_kind
def test_text_is_deterministic_and_reads_back(kind: Kind) -> None:
    assert text(kind) == text(kind)
    assert yaml.safe_load(text(kind)) == custom_resource_definition(kind)


@every_kind
def test_schema_holds_structural_keywords_alone(kind: Kind) -> None:
    for path, schema in nodes(schema_of(kind)):
        foreign = [key for key in schema if key not in KEYWORDS and not key.startswith("x-k")]
        assert foreign == (["allOf"] if path in JUDGED_BY_TYPE else []), path


@every_kind
def test_every_field_is_described(kind: Kind) -> None:
    # What an array or a map holds is described by its field.
    silent = [
        path
        for path, schema in declared(kind)
        if not schema.get("description") and not path.endswith(("[]", ".*"))
    ]

    assert silent == []


@every_kind
def test_descriptions_are_one_line_for_people(kind: Kind) -> None:
    for path, schema in declared(kind):
        description = schema.get("description", "")
        assert "\n" not in description, path
        assert "Source:" not in description, path
        assert "seed" not in description.lower() or path == ".spec.observed", path


@every_kind
def test_every_field_has_a_type_or_is_free_on_purpose(kind: Kind) -> None:
    free = {
        path for path, schema in declared(kind) if "x-kubernetes-preserve-unknown-fields" in schema
    }
    typeless = {path for path, schema in declared(kind) if "type" not in schema}

    assert free == KEPT_AS_GIVEN.get(kind.name, set())
    assert typeless <= free


@every_kind
def test_every_size_has_a_limit(kind: Kind) -> None:
    unlimited = [
        path
        for path, schema in declared(kind)
        if {
            "string": not schema.keys() & {"maxLength", "enum", "format", "pattern"},
            "array": "maxItems" not in schema,
            "object": "properties" not in schema and "maxProperties" not in schema,
        }.get(schema.get("type", ""), False)
    ]

    assert unlimited == []


@every_kind
def test_only_what_people_write_gets_defaults(kind: Kind) -> None:
    wrong = [
        path
        for path, schema in declared(kind)
        if "default" in schema
        and (not path.startswith(".spec") or schema["type"] not in {"string", "integer", "boolean"})
    ]

    assert wrong == []


@every_kind
def test_conditions_are_a_map_by_type(kind: Kind) -> None:
    conditions = schema_of(kind)["properties"]["status"]["properties"]["conditions"]

    assert conditions["x-kubernetes-list-type"] == "map"
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]
    assert {"type", "status", "reason", "message"} < set(conditions["items"]["required"])


@every_kind
def test_definition_is_named_and_held(kind: Kind) -> None:
    body = custom_resource_definition(kind)

    assert body["metadata"]["name"] == f"{kind.plural}.{names.GROUP}"
    assert body["metadata"]["labels"][names.LABEL_HOLD] == "true"
    assert body["spec"]["versions"][0]["subresources"] == {"status": {}}
    assert body["spec"]["versions"][0]["additionalPrinterColumns"][-1]["name"] == "Age"


def test_names_are_unique() -> None:
    for values in (
        [kind.short_name for kind in KINDS],
        [kind.plural for kind in KINDS],
        [file_name(kind) for kind in KINDS],
    ):
        assert len(values) == len(set(values))


def test_records_are_namespaced_and_the_others_are_not() -> None:
    assert [kind.name for kind in KINDS if kind.scope == "Namespaced"] == [RECORD.name]


class _Nested(Shape):
    """A nested piece.

    More of it.
    """

    size: Annotated[int, Field(ge=1)] | None = None


class _Sample(Shape):
    """A sample."""

    nested: _Nested | None = None
    relabelled: _Nested = Field(description="Its own words.")
    several: dict[str, str] = Field(default_factory=dict)
    mixed: bool | str | None = None


def test_references_are_inlined_with_the_field_above_the_type() -> None:
    properties = structural(_Sample, defaults=True)["properties"]

    assert properties["nested"]["description"] == "A nested piece."
    assert properties["relabelled"]["description"] == "Its own words."
    assert properties["nested"]["properties"]["size"] == {
        "type": "integer",
        "format": "int64",
        "minimum": 1,
    }


def test_null_is_no_value_and_no_default() -> None:
    schema = structural(_Sample, defaults=True)

    assert schema["required"] == ["relabelled"]
    assert "default" not in schema["properties"]["nested"]
    assert schema["properties"]["mixed"] == {"x-kubernetes-preserve-unknown-fields": True}
    assert schema["properties"]["several"]["additionalProperties"] == {"type": "string"}


class _Union(BaseModel):
    either: _Nested | str


class _Exclusive(BaseModel):
    ratio: Annotated[float, Field(gt=0)]


@pytest.mark.parametrize(("model", "field"), [(_Union, "either"), (_Exclusive, "ratio")])
def test_construct_without_structural_form_is_an_error(model: type[BaseModel], field: str) -> None:
    with pytest.raises(SchemaError, match=f"cannot translate {model.__name__}.{field}"):
        structural(model, defaults=True)


def test_overlay_of_a_field_that_is_not_there_is_an_error() -> None:
    kind = Kind(
        name="Sample",
        scope="Cluster",
        description="A sample.",
        spec=_Sample,
        status=_Sample,
        short_name="smp",
        columns=(),
        overlays={"spec.nested.colour": {"maxLength": 1}},
    )

    with pytest.raises(SchemaError, match="colour is not in the model"):
        custom_resource_definition(kind)
