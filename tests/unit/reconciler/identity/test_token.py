"""The text of a token."""

from __future__ import annotations

import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function.contract.secrets import TokenPlaintext
from reconciler.adapters.identity.secret_source import SystemSecretSource
from reconciler.domain.aggregate import ids
from reconciler.domain.identity import token
from tests.unit.reconciler import samples

CONTRACT = re.compile(r"psb_[a-z]+_[a-z2-7]+_(node|bridge)_[a-z2-7]{20,}")


@given(
    env=st.from_regex(r"[a-z]{1,32}", fullmatch=True),
    project=st.uuids(),
    entropy=st.binary(min_size=16, max_size=64),
)
def test_what_is_composed_is_read_back(env: str, project: ids.ProjectID, entropy: bytes) -> None:
    plaintext = token.compose(env=env, project_id=project, entropy=entropy)

    assert CONTRACT.fullmatch(plaintext.reveal())
    assert token.parse(plaintext) == token.TokenParts(env=env, project_id=project, kind="node")


@pytest.mark.parametrize("kind", ["node", "bridge"])
def test_the_kind_is_read(kind: str) -> None:
    parts = token.parse(TokenPlaintext("psb_prod_" + "a" * 26 + f"_{kind}_" + "a" * 26))

    assert parts is not None
    assert parts.kind == kind


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    token.parse(TokenPlaintext(text))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "psb_prod",
        "psb_PROD_" + "a" * 26 + "_node_" + "a" * 26,
        "psb_prod_" + "a" * 25 + "_node_" + "a" * 26,
        "psb_prod_" + "a" * 26 + "_node_" + "a" * 19,
        "psb_prod_" + "a" * 26 + "_user_" + "a" * 26,
        "psb_prod_" + "1" * 26 + "_node_" + "a" * 26,
        "psb_prod_" + "a" * 26 + "_node_" + "a" * 26 + "\n",
        " psb_prod_" + "a" * 26 + "_node_" + "a" * 26,
    ],
)
def test_what_is_no_token_is_none(text: str) -> None:
    assert token.parse(TokenPlaintext(text)) is None


@pytest.mark.parametrize("env", ["", "Prod", "prod1", "a_b"])
def test_an_env_is_lower_case_letters(env: str) -> None:
    with pytest.raises(ValueError, match="lower-case letters"):
        token.compose(env=env, project_id=samples.PROJECT, entropy=bytes(16))


def test_too_little_entropy_is_refused() -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        token.compose(env="prod", project_id=samples.PROJECT, entropy=bytes(15))


def test_the_digest_is_of_the_whole_text() -> None:
    plaintext = SystemSecretSource(env="prod").token(samples.PROJECT)

    assert token.digest(plaintext) == hashlib.sha256(plaintext.reveal().encode()).digest()


def test_a_minted_token_is_long_enough_and_short_enough() -> None:
    plaintext = SystemSecretSource(env="prod").token(samples.PROJECT)

    # plexd takes at most 512 bytes; 32 base32 characters are 160 bits.
    assert len(plaintext.reveal().rpartition("_")[2]) == 32
    assert token.length(plaintext) < 100
