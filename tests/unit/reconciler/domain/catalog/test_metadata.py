"""`metadata.json`: each broken rule is told by its field."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.reconciler.domain.catalog import given


def parameters(*listed: Any) -> Any:
    return {"parameterSchema": {"parameters": list(listed)}}


SIZE = {"name": "size", "type": "string"}


@pytest.mark.parametrize(
    ("fields", "finding"),
    [
        ({"slug": "other"}, "slug: must be the name of the folder"),
        ({"slug": "Small"}, "slug: is invalid: string should match pattern"),
        ({"version": "v2"}, "version: is not the XRD's first served version"),
        ({"providerKinds": []}, "providerKinds: is invalid: tuple should have at least 1 item"),
        ({"providerKinds": ["digitalocean"]}, "providerKinds[0]: is invalid: input should be"),
        ({"providerKinds": ["aws", "aws"]}, "providerKinds: names a provider twice"),
        ({"injectionStrategy": "ssh"}, "injectionStrategy: is invalid: input should be"),
        ({"meshRole": "hub"}, "meshRole: is invalid: input should be"),
        ({"surprise": 1}, "surprise: is not a field of this file"),
        ({"displayName": 1}, "displayName: is invalid: input should be a valid string"),
        (parameters(SIZE, SIZE), "parameterSchema.parameters[1].name: is duplicated"),
        (
            parameters({"name": "helmValues", "type": "string"}),
            "parameterSchema.parameters[0].name: is reserved for the bootstrap material",
        ),
        (
            parameters({**SIZE, "required": True, "default": "s"}),
            "parameterSchema.parameters[0].default: must not be set on a required parameter",
        ),
        (
            parameters({**SIZE, "default": 1}),
            "parameterSchema.parameters[0].default: is not of type string",
        ),
        (
            parameters({"name": "disk", "type": "integer", "default": True}),
            "parameterSchema.parameters[0].default: is not of type integer",
        ),
        (
            parameters({"name": "size", "type": "integer"}),
            "parameterSchema.parameters[0].type: is not the type that the XRD declares",
        ),
        (
            parameters({"name": "colour", "type": "string"}),
            "parameterSchema.parameters[0].name: is not declared by the XRD",
        ),
    ],
)
def test_a_broken_field_is_named(fields: Any, finding: str) -> None:
    judgement = given.judged(told=given.metadata(**fields))

    assert judgement.manifest is None
    assert any(each.startswith(f"metadata.json: {finding}") for each in given.told(judgement))


@pytest.mark.parametrize(
    "field",
    ["slug", "displayName", "description", "version", "providerKinds", "injectionStrategy",
     "parameterSchema"],
)  # fmt: skip
def test_each_of_the_seven_fields_is_required(field: str) -> None:
    told = given.metadata()
    del told[field]

    judgement = given.judged(told=told)

    assert f"metadata.json: {field}: is missing" in given.told(judgement)


def test_a_parameter_that_nothing_reads_is_noted_and_imported() -> None:
    kept = [each for each in given.patches_of_a_machine() if "size" not in each["fromFieldPath"]]

    judgement = given.judged(composed=given.composition(kept))

    assert judgement.manifest is not None
    (note,) = judgement.findings
    assert note.advisory
    assert str(note).endswith("parameterSchema.parameters[0].name: is read by no patch")
