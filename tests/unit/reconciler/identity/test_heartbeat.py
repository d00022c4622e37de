"""Who a bearer is, and what a heartbeat must say."""

from __future__ import annotations

import base64
from datetime import timedelta
from uuid import UUID

import pytest

from reconciler.domain.aggregate import ids
from reconciler.domain.identity import node_key
from reconciler.domain.identity.heartbeat import HeartbeatBody, KnownNode, authenticate, check
from tests.unit.reconciler.samples import NOW

NODE = ids.NodeID(UUID("0197b1a2-3333-7000-8000-000000000001"))
OTHER = ids.NodeID(UUID("0197b1a2-3333-7000-8000-000000000002"))
HEX = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
BASE64 = base64.b64encode(bytes.fromhex(HEX)).decode()
NSK = bytes(range(100, 132))
BEARER = node_key.NodeBearer(node_id=NODE, nsk_digest=node_key.digest(NSK))
LIVE = KnownNode(nsk_digest=node_key.digest(NSK), deregistered=False)
GONE = KnownNode(nsk_digest=node_key.digest(NSK), deregistered=True)
READMITTED = KnownNode(
    nsk_digest=node_key.digest(bytes(32)),
    other_nsk_digests=(node_key.digest(bytes(31)), node_key.digest(NSK)),
    deregistered=False,
)
UNDECIDED = KnownNode(
    nsk_digest=node_key.digest(bytes(32)),
    other_nsk_digests=(node_key.digest(bytes(31)), node_key.digest(NSK)),
    deregistered=False,
    reported=False,
)
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
        (BEARER, READMITTED, NODE, "nsk_revoked"),
        (BEARER, READMITTED, OTHER, "nsk_revoked"),
        (BEARER, UNDECIDED, OTHER, "node_id_mismatch"),
        (BEARER, UNDECIDED, NODE, None),
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
        "binary_checksum": HEX,
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


@pytest.mark.parametrize("checksum", [HEX, BASE64])
def test_a_checksum_has_two_forms(checksum: str) -> None:
    assert check(_body(binary_checksum=checksum), now=NOW) is None


@pytest.mark.parametrize(
    "checksum",
    [
        "", "sum", HEX.upper(), HEX[1:], HEX + "0", HEX + "\n", BASE64[:-1], BASE64 + "=",
        BASE64[:42] + "9=", "-" + BASE64[1:], f"sha256:{HEX}",
    ],
)  # fmt: skip
def test_what_is_no_sha256_is_told_as_empty(checksum: str) -> None:
    refused = check(_body(binary_checksum=checksum), now=NOW)

    assert refused is not None
    assert (refused.status, refused.code) == (400, "binary_checksum_empty")


LATE = {"client_now": NOW + timedelta(hours=1)}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        (
            {"binary_version": "a\x00b", **LATE, "binary_checksum": ""},
            "malformed_heartbeat_request",
        ),
        ({"binary_version": "x" * 257}, "malformed_heartbeat_request"),
        ({**LATE, "binary_checksum": "", "binary_version": ""}, "clock_skew"),
        ({"binary_checksum": "", "binary_version": ""}, "binary_checksum_empty"),
        ({"binary_version": ""}, "binary_version_empty"),
        ({"binary_version": "   "}, "binary_version_empty"),
    ],
)
def test_the_first_field_out_of_order_answers(changes: dict[str, object], code: str) -> None:
    refused = check(_body(**changes), now=NOW)

    assert refused is not None
    assert refused.code == code
