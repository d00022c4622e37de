"""The closed set of events and the schemas that consumers are given."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from reconciler.commands.events import events
from reconciler.domain.events.catalogue import CATALOGUE, Kind
from reconciler.domain.events.kinds import FleetEventType, IdentityEventType
from reconciler.domain.events.lifecycle import EventType
from reconciler.domain.events.payload import NAMES

DOCS = Path(__file__).parents[4] / "docs"
KINDS = pytest.mark.parametrize("kind", CATALOGUE.values(), ids=sorted(CATALOGUE))


def test_the_catalogue_is_closed_over_every_context() -> None:
    every = [
        item.value for closed in (EventType, IdentityEventType, FleetEventType) for item in closed
    ]

    assert sorted(CATALOGUE) == sorted(every)


@KINDS
def test_a_schema_is_one(kind: Kind) -> None:
    jsonschema.Draft202012Validator.check_schema(kind.schema())
    assert kind.schema()["$id"].endswith(f"/events/{kind.event}/v1.json")
    assert kind.schema()["additionalProperties"] is False


@KINDS
def test_the_published_schema_is_the_programs(kind: Kind) -> None:
    text = (DOCS / "events" / f"{kind.event}.v{kind.version}.json").read_text(encoding="utf-8")

    assert json.loads(text) == kind.schema()


def test_no_schema_is_published_that_the_program_does_not_know() -> None:
    published = {path.name for path in (DOCS / "events").iterdir()}

    assert published == {f"{kind.event}.v{kind.version}.json" for kind in CATALOGUE.values()}


@KINDS
def test_the_page_names_every_type_and_its_own_fields(kind: Kind) -> None:
    page = (DOCS / "events.md").read_text(encoding="utf-8")
    [line] = [line for line in page.splitlines() if line.startswith(f"| `{kind.event}` |")]

    fields = set(kind.payload.model_fields) - {"EventID", "OccurredAt"}
    # The names are the same for all, and told of once.
    assert {field for field in fields & NAMES if f"`{field}`" not in page} == set()
    assert {field for field in fields - NAMES if f"`{field}`" not in line} == set()


def test_a_schema_is_printed() -> None:
    answer = CliRunner().invoke(events, ["schema", "identity.NodeRegistered"])

    assert json.loads(answer.output) == CATALOGUE["identity.NodeRegistered"].schema()
