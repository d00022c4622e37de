"""The CloudEvents attributes of an event."""

from __future__ import annotations

import json
from uuid import UUID

from reconciler.adapters.events import cloudevents
from reconciler.domain.events.catalogue import CATALOGUE
from reconciler.domain.events.envelope import attributes, channel
from reconciler.domain.events.kinds import AggregateType, IdentityEventType
from tests.fakes.events import START, event

AGGREGATE = UUID("0197b1a2-7c3d-7e4f-8a5b-6c7d8e9f0a1b")


def test_every_attribute_has_its_place() -> None:
    told = event(AGGREGATE, 7)

    assert attributes(told, "/here") == {
        "specversion": "1.0",
        "id": str(told.id),
        "source": "/here",
        "type": "identity.NodeRegistered",
        "subject": str(AGGREGATE),
        "time": START,
        "datacontenttype": "application/json",
        "dataschema": CATALOGUE["identity.NodeRegistered"].schema_uri,
        "sequence": "00000000000000000007",
        "partitionkey": str(AGGREGATE),
    }


def test_a_resource_is_named_as_its_substrate() -> None:
    told = event(AGGREGATE, 1, aggregate_type=AggregateType.PROVISIONED_RESOURCE.value)

    assert attributes(told, "/here")["subject"] == f"pr-{AGGREGATE}"


def test_a_type_of_a_later_program_has_no_schema() -> None:
    told = event(AGGREGATE, 1, type="broker.ProvisionedResourcePainted")

    assert "dataschema" not in attributes(told, "/here")


def test_sequences_sort_as_text() -> None:
    numbers = [1, 9, 10, 999, 2**63 - 1]

    texts = [attributes(event(AGGREGATE, each), "/")["sequence"] for each in numbers]

    assert texts == sorted(texts)
    assert len({len(text) for text in texts}) == 1


def test_each_aggregate_has_a_subject_of_its_own() -> None:
    assert channel(event(AGGREGATE, 1)) == f"plexsphere.events.Node.{AGGREGATE}"


def test_structured_is_one_line_of_json() -> None:
    told = event(AGGREGATE, 1, type=IdentityEventType.TOKEN_ISSUED.value)

    written = cloudevents.structured(told, "/here")

    assert b"\n" not in written
    assert json.loads(written)["data"] == told.payload
    assert json.loads(written)["time"] == "2026-11-22T00:00:00Z"


def test_binary_has_the_payload_as_body_and_the_rest_as_headers() -> None:
    told = event(AGGREGATE, 1)

    headers, body = cloudevents.binary(told, "/here")

    assert json.loads(body) == told.payload
    assert headers["ce-id"] == str(told.id)
    assert headers["ce-sequence"] == "00000000000000000001"
    assert headers["content-type"] == "application/json"
