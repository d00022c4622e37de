"""Who a bearer is, and what a heartbeat must say."""

from __future__ import annotations

import base64
from datetime import timedelta
from uuid import UUID

import pytest

from reconciler.domain.broker import ids
from reconciler.domain.identity import node_key
from reconciler.domain.identity.heartbeat import HeartbeatBody, KnownNode, authenticate, check
from tests.unit.reconciler.samples import NOW

NODE = ids.NodeID(UUID("0197b1a2-3333-7000-8000-000000000001"))
OTHER = ids.NodeID(UUID("0197b1a2-3333-7000-8000-000000000002"))
NSK = bytes(range(100, 132))
BEARER = node_key.NodeBearer(node_id=NODE, nsk_digest=node_key.digest(NSK))
LIVE = KnownNode(nsk_digest=node_key.digest(NSK), deregistered=False)
GONE = KnownNode(nsk_digest=node_key.digest(NSK), deregistered=True)
REKEYED = KnownNode(nsk_digest=node_key.digest(bytes(32)), deregistered=False)


def credential(node_id: ids.NodeID = NODE, nsk: bytes = NSK) -> str:
    return "nsk_plexd_" + base64.urlsafe_b64encode(node_id.bytes + nsk).decode()


@pytest.mark.parametrize(
    ("bearer", "known", "path", "code"),
    [
        (None, None, NODE, "unauthorized"),
        (None, LIVE, NODE, "unauthorized"),
        (BEARER, None, NODE, "nsk_invalid"),
        (BEARER, REKEYED, NODE, "nsk_invalid"),
        (BEARER, REKEYED, OTHER, "nsk_invalid"),
        (BEARER, LIVE, OTHER, "node_id_mismatch"),
        (BEARER, LIVE, None, "node_id_mismatch"),
        (BEARER, GONE, OTHER, "node_id_mismatch"),
        (BEARER, GONE, NODE, "node_deregistered"),
        (BEARER, LIVE, NODE, None),
    ],
)
def test_the_first_row_that_applies_answers(
    bearer: node_key.NodeBearer | None,
    known: KnownNode | None,
    path: ids.NodeID | None,
    code: str | None,
) -> None:
    refused = authenticate(bearer, known, path_node=path)

    assert (None if refused is None else refused.code) == code


def test_a_bearer_is_read_back() -> None:
    assert node_key.parse_bearer(credential()) == BEARER


def test_underscores_of_base64url_belong_to_the_payload() -> None:
    nsk = b"\xff" * 32
    text = credential(nsk=nsk)
    assert text.count("_") > 2

    parsed = node_key.parse_bearer(text)

    assert parsed is not None
    assert parsed.nsk_digest == node_key.digest(nsk)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nsk",
        "nsk_plexd",
        "nsk__" + "A" * 64,
        "psb_plexd_" + "A" * 64,
        "nsk_plexd_" + "A" * 63,
        "nsk_plexd_" + "A" * 65,
        "nsk_plexd_" + "A" * 63 + "+",
        "nsk_plexd_" + "A" * 63 + "é",
        base64.b64encode(NSK).decode(),
    ],
)
def test_what_is_no_bearer_is_none(text: str) -> None:
    assert node_key.parse_bearer(text) is None


def _body(**changes: object) -> HeartbeatBody:
    fields: dict[str, object] = {
        "client_now": NOW,
        "binary_checksum": "sum",
        "binary_version": "v0.8.0",
        **changes,
    }
    return HeartbeatBody(**fields)  # type: ignore[arg-type]  # fields of one sample


@pytest.mark.parametrize("skew_s", [-60, 0, 60])
def test_a_minutes_skew_is_taken(skew_s: int) -> None:
    assert check(_body(client_now=NOW + timedelta(seconds=skew_s)), now=NOW) is None


@pytest.mark.parametrize("skew_s", [-61, 61, 86400])
def test_more_is_clock_skew(skew_s: int) -> None:
    refused = check(_body(client_now=NOW + timedelta(seconds=skew_s)), now=NOW)

    assert refused is not None
    assert (refused.status, refused.code) == (400, "clock_skew")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"binary_checksum": ""}, "binary_checksum_empty"),
        ({"binary_version": ""}, "binary_version_empty"),
        ({"binary_version": "a\x00b"}, "malformed_heartbeat_request"),
        ({"binary_checksum": "x" * 257}, "malformed_heartbeat_request"),
    ],
)
def test_a_field_out_of_order_has_its_code(changes: dict[str, object], code: str) -> None:
    refused = check(_body(**changes), now=NOW)

    assert refused is not None
    assert refused.code == code
