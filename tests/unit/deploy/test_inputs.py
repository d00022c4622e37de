"""The schemas of the function's inputs say what its models read."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from crossplane.function.proto.v1 import run_function_pb2 as fnv1

from dev.crds.__main__ import INPUT_FILES, INPUT_FOLDER, drifted, write
from dev.crds.inputs import DECLARE, ENROL, INPUTS, Input, definition, file_name, text
from function import fn
from function.contract import names

FREE = {"apiVersion", "kind", "metadata"}

every_input = pytest.mark.parametrize("given", INPUTS, ids=lambda given: given.kind)


def schema_of(given: Input) -> dict[str, Any]:
    schema: dict[str, Any] = definition(given)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def fields(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    for name, child in schema.get("properties", {}).items():
        yield f"{path}.{name}", child
        yield from fields(child, f"{path}.{name}")
    if "items" in schema:
        yield from fields(schema["items"], f"{path}[]")


def test_files_are_what_the_models_say() -> None:
    assert drifted(INPUT_FOLDER, INPUT_FILES) == []


def test_drift_is_noticed_in_changed_missing_and_stray_files(tmp_path: Path) -> None:
    write(tmp_path, INPUT_FILES)
    changed, missing = sorted(tmp_path.glob("*.yaml"))
    changed.write_text(changed.read_text(encoding="utf-8") + "#\n", encoding="utf-8")
    missing.unlink()
    (tmp_path / "stray.yaml").write_text("{}\n", encoding="utf-8")

    assert drifted(tmp_path, INPUT_FILES) == sorted([changed.name, missing.name, "stray.yaml"])


def test_every_input_that_the_function_answers_has_a_schema() -> None:
    # An input that is not known names those that are.
    with pytest.raises(ValueError, match="must be one of Declare, Enrol"):
        fn.run(fnv1.RunFunctionRequest())

    assert [given.kind for given in INPUTS] == ["Declare", "Enrol"]


@every_input
def test_text_is_deterministic_and_reads_back(given: Input) -> None:
    assert text(given) == text(given)
    assert yaml.safe_load(text(given)) == definition(given)
    assert file_name(given) == f"{definition(given)['spec']['group']}_{given.plural}.yaml"


@every_input
def test_a_schema_takes_its_own_group_version_and_kind_alone(given: Input) -> None:
    properties = schema_of(given)["properties"]

    assert properties["apiVersion"]["enum"] == [names.INPUT_API_VERSION]
    assert properties["kind"]["enum"] == [given.kind]
    assert {"apiVersion", "kind"} <= set(schema_of(given)["required"])


@every_input
def test_every_field_is_described_in_one_line(given: Input) -> None:
    told = {path: each.get("description", "") for path, each in fields(schema_of(given))}

    assert [path for path, words in told.items() if not words and path != ".metadata"] == []
    assert not any("\n" in words for words in told.values())


@every_input
def test_every_size_has_a_limit(given: Input) -> None:
    unlimited = [
        path
        for path, each in fields(schema_of(given))
        if (each.get("type") == "string" and not each.keys() & {"maxLength", "enum"})
        or (each.get("type") == "array" and "maxItems" not in each)
    ]

    assert unlimited == []


@every_input
def test_nothing_is_taken_unseen(given: Input) -> None:
    loose = [
        path
        for path, each in fields(schema_of(given))
        if "x-kubernetes-preserve-unknown-fields" in each
    ]

    assert loose == []


def test_an_overlay_changes_no_kind_that_shares_a_model() -> None:
    before = copy.deepcopy(schema_of(DECLARE))

    schema_of(ENROL)

    assert schema_of(DECLARE) == before
