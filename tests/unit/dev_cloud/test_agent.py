"""The stand-in agent's pure parts do what the contracts say of plexd."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import uuid
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from dev.agent import plexd
from dev.agent.plexd import AgentError

BASE_POINT = (9).to_bytes(32, "little")


@pytest.mark.parametrize(
    ("scalar", "point", "product"),
    [
        (
            "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
            "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
            "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552",
        ),
        (
            "4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
            "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
            "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957",
        ),
    ],
)
def test_x25519_agrees_with_rfc_7748_section_5_2(scalar: str, point: str, product: str) -> None:
    assert plexd.x25519(bytes.fromhex(scalar), bytes.fromhex(point)).hex() == product


def test_x25519_agrees_with_rfc_7748_when_iterated_once() -> None:
    product = plexd.x25519(BASE_POINT, BASE_POINT)

    assert product.hex() == "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079"


@pytest.mark.parametrize("seed", range(8))
def test_public_keys_agree_with_a_real_library(seed: int) -> None:
    private = hashlib.sha256(bytes([seed])).digest()

    expected = X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()
    assert plexd.public_key(private) == expected


def test_a_key_exchange_agrees_with_rfc_7748_section_6_1() -> None:
    alice = bytes.fromhex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a")
    bob = bytes.fromhex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb")

    shared = plexd.x25519(alice, plexd.public_key(bob))

    alices_public = "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"
    assert plexd.public_key(alice).hex() == alices_public
    assert shared == plexd.x25519(bob, plexd.public_key(alice))
    assert shared.hex() == "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"


def test_retries_double_from_one_second_to_a_minute_within_the_budget() -> None:
    delays = list(plexd.retry_delays(300.0, jitter=lambda: 0.5))

    assert delays == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert sum(delays) <= 300


@pytest.mark.parametrize(("jitter", "factor"), [(0.0, 0.75), (1.0, 1.25)])
def test_retries_are_spread_by_a_quarter(jitter: float, factor: float) -> None:
    delays = itertools.islice(plexd.retry_delays(300.0, jitter=lambda: jitter), 3)

    assert list(delays) == [1 * factor, 2 * factor, 4 * factor]


def test_without_a_budget_nothing_is_tried_again() -> None:
    assert list(plexd.retry_delays(0.5)) == []


def reply(**changes: object) -> bytes:
    answer: dict[str, object] = {
        "node_id": str(uuid.UUID(int=7)),
        "mesh_ip": "100.64.0.7",
        "signing_public_key": base64.b64encode(b"s" * 32).decode(),
        "signing_key_id": "did:example#1",
        "nsk": base64.b64encode(b"n" * 32).decode(),
        "peer_snapshot": [],
        "domain_mesh_cidr": "100.64.0.0/10",
    }
    answer |= changes
    return json.dumps({name: value for name, value in answer.items() if value != ...}).encode()


def test_a_registration_that_is_whole_is_accepted() -> None:
    assert plexd.accept(reply())["mesh_ip"] == "100.64.0.7"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("nsk", base64.b64encode(b"n" * 31).decode()),
        ("nsk", "not base64"),
        ("nsk", None),
        ("signing_public_key", base64.b64encode(b"0*0\x05" + b"s" * 40).decode()),
        ("signing_public_key", 5),
        ("mesh_ip", "100.64.0.7/32"),
        ("mesh_ip", None),
        ("node_id", "seven"),
        ("node_id", 7),
        ("peer_snapshot", None),
    ],
)
def test_a_registration_with_a_wrong_field_is_refused_by_its_name(
    field: str, value: object
) -> None:
    with pytest.raises(AgentError, match=f"^cannot accept registration: {field} "):
        plexd.accept(reply(**{field: value}))


def test_a_reply_that_is_no_json_is_refused() -> None:
    with pytest.raises(AgentError, match="the body is missing or wrong"):
        plexd.accept(b"<html>")


NO_ENTRIES: dict[str, list[str]] = {"metadata": [], "data": [], "reports": []}
PEER = {
    "node_id": str(uuid.UUID(int=8)),
    "mesh_ip": "100.64.0.8",
    "public_key": base64.b64encode(b"p" * 32).decode(),
}


def state(**changes: object) -> bytes:
    blocks: dict[str, object] = {
        "peers": [PEER],
        "reachability": {"state": "healthy", "changed_at": "2026-01-01T00:00:00Z"},
        "policy": None,
        "bridge": None,
        "state": NO_ENTRIES,
        "reports": NO_ENTRIES,
        "executions": [],
        "sessions": [],
    }
    blocks |= changes
    return json.dumps({name: value for name, value in blocks.items() if value != ...}).encode()


def test_a_state_that_is_whole_is_accepted() -> None:
    assert plexd.accept_state(state()) == 1
    assert plexd.pull(plexd.Reply(status=200, body=state(peers=[]))) == "state pulled, 0 peers"


@pytest.mark.parametrize(
    ("block", "value"),
    [
        *((name, ...) for name in json.loads(state())),
        *((name, []) for name in ("policy", "bridge", "state", "reports", "reachability")),
        *((name, None) for name in ("peers", "executions", "sessions", "reachability")),
        ("peers", [{**PEER, "public_key": "short"}]),
        ("peers", [{**PEER, "mesh_ip": "100.64.0.8/32"}]),
        ("reachability", {"state": "healthy"}),
    ],
)
def test_a_state_with_a_wrong_block_is_refused_by_its_name(block: str, value: object) -> None:
    wrong = state(**{block: value})

    with pytest.raises(AgentError, match=f"^cannot accept state: {block} "):
        plexd.accept_state(wrong)
    assert block in plexd.pull(plexd.Reply(status=200, body=wrong))


def test_a_state_that_is_not_served_is_told() -> None:
    assert plexd.pull(plexd.Reply(status=501)) == "state not pulled (501)"


@pytest.mark.parametrize("content", ["", " \n", "x" * 513, "t\u00f6ken", "to\x07ken"])
def test_a_token_that_is_no_token_is_refused_without_being_shown(
    content: str, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text(content)

    with pytest.raises(AgentError) as refused:
        plexd.read_token(file)

    assert content.strip() == "" or content.strip() not in str(refused.value)


def test_a_flag_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLEXD_API", "http://from-env")
    monkeypatch.setenv("PLEXD_PROJECT_ID", "p-env")
    monkeypatch.setenv("PLEXD_RESOURCE_HANDLE", "h-env")
    monkeypatch.setenv("PLEXD_BOOTSTRAP_TOKEN_FILE", "/token-env")

    given = plexd.settings({"api": "http://from-flag/", "token_file": "/token-flag"})

    assert (given.api, given.project_id) == ("http://from-flag", "p-env")
    assert (given.resource_handle, given.token_file) == ("h-env", Path("/token-flag"))
    assert (given.budget_s, given.heartbeat_s) == (300.0, 30.0)


@pytest.mark.parametrize(
    "argv",
    [
        ["register", "--bootstrap-token-file=/etc/plexd/bootstrap-token", "--api-url=http://x"],
        ["--api", "http://x", "join", "--token-file", "/t"],
    ],
)
def test_without_project_and_handle_it_ends_with_status_2_and_names_them(
    argv: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("PLEXD_PROJECT_ID", "PLEXD_RESOURCE_HANDLE"):
        monkeypatch.delenv(name, raising=False)

    status = plexd.main(argv)

    assert status == 2
    said = capsys.readouterr().err
    assert "PLEXD_PROJECT_ID" in said
    assert "PLEXD_RESOURCE_HANDLE" in said
    assert "PLEXD_API" not in said


@pytest.mark.parametrize("value", ["0", "-1", "soon"])
def test_a_duration_that_is_none_ends_with_status_2(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLEXD_HEARTBEAT_INTERVAL", value)

    with pytest.raises(AgentError, match="PLEXD_HEARTBEAT_INTERVAL") as refused:
        plexd.settings({"api": "http://x", "project_id": "p", "resource_handle": "h"})

    assert refused.value.code == 2


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        plexd.main(["--version"])

    assert ended.value.code == 0
    assert capsys.readouterr().out == f"plexd {plexd.VERSION}\n"
