"""The rules of a registration's single fields."""

from __future__ import annotations

import base64
import hashlib
from typing import Any
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from function.contract.secrets import TokenPlaintext
from reconciler.domain.aggregate import ids
from reconciler.domain.identity import token
from reconciler.domain.identity.denial import Denial
from reconciler.domain.identity.registration_body import (
    FIELD_MAX,
    RegistrationBody,
    RegistrationRequest,
    read,
)
from tests.unit.reconciler import samples

PLAINTEXT = token.compose(env="prod", project_id=samples.PROJECT, entropy=bytes(range(20)))
KEY = bytes(range(32))


def body(**changes: Any) -> RegistrationBody:
    fields: dict[str, Any] = {
        "project_id": str(samples.PROJECT),
        "resource_handle": "pr-1",
        "bootstrap_token": PLAINTEXT,
        "nonce": "n",
        "public_key": base64.b64encode(KEY).decode(),
    }
    return RegistrationBody(**{**fields, **changes})


def test_a_body_in_order_is_a_request() -> None:
    assert read(body()) == RegistrationRequest(
        project_id=samples.PROJECT,
        resource_handle="pr-1",
        token_digest=token.digest(PLAINTEXT),
        nonce_digest=hashlib.sha256(b"n").digest(),
        public_key=KEY,
    )


@pytest.mark.parametrize("field", ["project_id", "resource_handle", "nonce", "public_key"])
@pytest.mark.parametrize("value", ["", "x" * (FIELD_MAX + 1)], ids=["empty", "too long"])
def test_a_field_that_is_empty_or_too_long_breaks_an_invariant(field: str, value: str) -> None:
    refused = read(body(**{field: value}))

    assert isinstance(refused, Denial)
    assert (refused.status, refused.code) == (422, "invariant_violation")
    assert field in refused.detail


@pytest.mark.parametrize("length", [0, FIELD_MAX + 1])
def test_so_does_a_token(length: int) -> None:
    refused = read(body(bootstrap_token=TokenPlaintext("x" * length)))

    assert isinstance(refused, Denial)
    assert refused.code == "invariant_violation"


def test_the_longest_fields_are_taken() -> None:
    accepted = read(body(nonce="n" * FIELD_MAX, resource_handle="h" * FIELD_MAX))

    assert isinstance(accepted, RegistrationRequest)


@pytest.mark.parametrize(
    "text",
    ["shop", str(UUID(int=0)), "{" + str(samples.PROJECT) + "}", samples.PROJECT.hex],
)
def test_a_project_is_a_canonical_uuid(text: str) -> None:
    refused = read(body(project_id=text))

    assert isinstance(refused, Denial)
    assert refused.code == "invariant_violation"


def test_upper_case_names_the_same_project() -> None:
    request = read(body(project_id=str(samples.PROJECT).upper()))

    assert isinstance(request, RegistrationRequest)
    assert request.project_id == samples.PROJECT


@pytest.mark.parametrize(
    "text",
    [
        base64.b64encode(bytes(32)).decode(),
        base64.b64encode(bytes(31)).decode(),
        base64.b64encode(KEY).decode().rstrip("="),
        base64.urlsafe_b64encode(b"\xff" * 32).decode(),
        base64.b64encode(KEY).decode()[:42] + "9=",
        base64.b64encode(KEY).decode() + "\n",
    ],
)
def test_a_key_has_one_text_and_is_not_zero(text: str) -> None:
    refused = read(body(public_key=text))

    assert isinstance(refused, Denial)
    assert (refused.status, refused.code) == (400, "public_key_invalid")


PRIME = 2**255 - 19
SMALL_ORDER = (
    0,
    1,
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
    PRIME - 1,
    PRIME,
    PRIME + 1,
)


@pytest.mark.parametrize("high_bit", [0, 2**255])
@pytest.mark.parametrize("coordinate", SMALL_ORDER)
def test_a_key_of_small_order_is_refused_in_every_encoding(coordinate: int, high_bit: int) -> None:
    raw = (coordinate | high_bit).to_bytes(32, "little")
    # What makes it unusable: whatever the other side's key, the shared secret is zero.
    with pytest.raises(ValueError, match="shared key"):
        X25519PrivateKey.generate().exchange(X25519PublicKey.from_public_bytes(raw))

    refused = read(body(public_key=base64.b64encode(raw).decode()))

    assert isinstance(refused, Denial)
    assert (refused.status, refused.code) == (400, "public_key_invalid")


@given(st.binary(min_size=32, max_size=32))
def test_what_is_made_as_a_key_is_taken(private: bytes) -> None:
    public = X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()

    request = read(body(public_key=base64.b64encode(public).decode()))

    assert isinstance(request, RegistrationRequest)
    assert request.public_key == public


BRIDGE = TokenPlaintext(PLAINTEXT.reveal().replace("_node_", "_bridge_"))


def test_a_bridges_token_registers_no_node() -> None:
    refused = read(body(bootstrap_token=BRIDGE))

    assert isinstance(refused, Denial)
    assert (refused.status, refused.code) == (403, "kind_mismatch")


def test_an_unreadable_key_is_told_before_a_tokens_kind() -> None:
    refused = read(body(bootstrap_token=BRIDGE, public_key="short"))

    assert isinstance(refused, Denial)
    assert refused.code == "public_key_invalid"


def test_an_unreadable_token_is_told_before_an_unreadable_key() -> None:
    refused = read(body(bootstrap_token=TokenPlaintext("psb_"), public_key="short"))

    assert isinstance(refused, Denial)
    assert (refused.status, refused.code) == (422, "bootstrap_token_invalid")


def test_an_invariant_is_told_before_an_unreadable_token() -> None:
    refused = read(body(bootstrap_token=TokenPlaintext("psb_"), nonce=""))

    assert isinstance(refused, Denial)
    assert refused.code == "invariant_violation"


@pytest.mark.parametrize("changes", [{}, {"nonce": ""}, {"public_key": "x"}])
def test_no_answer_shows_the_token(changes: dict[str, Any]) -> None:
    plain = PLAINTEXT.reveal()

    assert plain not in repr(body(**changes))
    assert plain not in repr(read(body(**changes)))


def test_ids_are_typed() -> None:
    request = read(body())

    assert isinstance(request, RegistrationRequest)
    assert request.project_id == ids.ProjectID(samples.PROJECT)
