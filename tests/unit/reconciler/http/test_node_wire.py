"""Whatever a node sends is read or refused; what it is told has one form."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from reconciler.adapters.http.node.node_wire import HeartbeatRequest, RegisterRequest, StateReply
from reconciler.domain.aggregate import ids
from reconciler.domain.identity import heartbeat, registration_body
from reconciler.domain.identity.peers import Peer, Peers
from reconciler.ports.registration import NodeState
from tests.unit.reconciler.samples import NOW

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=80),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=8,
)
OFFSETS = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
INSTANTS = st.datetimes(timezones=OFFSETS).map(datetime.isoformat)


def bodies(model: type[RegisterRequest | HeartbeatRequest]) -> st.SearchStrategy[dict[str, Any]]:
    """Give bodies that have some of a model's fields, with values of any kind."""
    fields = dict.fromkeys(model.model_fields, JSON | INSTANTS)
    return st.fixed_dictionaries({}, optional=fields)


@given(bodies(RegisterRequest))
def test_any_registration_is_read_or_refused(body: dict[str, Any]) -> None:
    try:
        wire = RegisterRequest.model_validate(body)
    except ValidationError:
        return
    registration_body.read(wire.body())


@given(bodies(HeartbeatRequest), INSTANTS)
def test_any_heartbeat_is_read_or_refused(body: dict[str, Any], client_now: str) -> None:
    try:
        wire = HeartbeatRequest.model_validate({**body, "client_now": client_now})
    except ValidationError:
        return
    heartbeat.check(wire.body(), now=NOW)


@pytest.mark.parametrize("field", ["bootstrap_token", "nonce"])
def test_a_refusal_shows_no_value(field: str) -> None:
    with pytest.raises(ValidationError) as refused:
        RegisterRequest.model_validate({field: ["psb_secret"]})

    assert "psb_secret" not in str(refused.value)


def test_times_are_utc_and_a_silent_node_has_no_heartbeat() -> None:
    peer = Peer(node_id=ids.NodeID(UUID(int=8)), mesh_ip="100.64.0.2", public_key=bytes(32))
    silent = NodeState(peers=Peers.of([peer]), last_heartbeat_at=None, changed_at=NOW, now=NOW)
    heard_at = datetime(2026, 1, 2, 3, 4, 5, 678900, tzinfo=UTC)
    stale = NodeState(
        peers=Peers(), last_heartbeat_at=heard_at, changed_at=heard_at,
        now=heard_at + timedelta(seconds=100),
    )  # fmt: skip

    told = [json.loads(StateReply.text(each)) for each in (silent, stale)]

    assert "last_heartbeat_at" not in told[0]["reachability"]
    assert told[0]["peers"][0]["node_id"] == str(UUID(int=8))
    assert told[1]["reachability"] == {
        "state": "stale",
        "last_heartbeat_at": "2026-01-02T03:04:05.678900Z",
        "changed_at": "2026-01-02T03:05:35.678900Z",
    }
