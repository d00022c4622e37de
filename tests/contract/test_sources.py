"""What the ports of time, ids and secrets promise, of the real sources and of the simulation's."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from reconciler.adapters.clock import SystemClock, UUIDv7Source
from reconciler.adapters.identity.secret_source import SystemSecretSource
from reconciler.domain.identity import token
from reconciler.ports.clock import Clock, IDSource
from reconciler.ports.registration import SecretSource
from tests.fakes.memory import FrozenClock
from tests.simulation.ground import LoopClock, SeededIDs
from tests.unit.reconciler import samples

pytestmark = pytest.mark.contract


def _seeded() -> SeededIDs:
    return SeededIDs(random.Random(1))  # noqa: S311 - a simulation


CLOCKS = pytest.mark.parametrize("make", [SystemClock, FrozenClock, LoopClock])
IDS = pytest.mark.parametrize("make", [UUIDv7Source, _seeded])
SECRETS = pytest.mark.parametrize("make", [lambda: SystemSecretSource(env="prod"), _seeded])


@CLOCKS
async def test_the_time_is_aware_and_in_utc(make: Callable[[], Clock]) -> None:
    assert make().now().utcoffset() == timedelta()


@CLOCKS
async def test_the_time_does_not_go_back(make: Callable[[], Clock]) -> None:
    clock = make()

    times = [clock.now() for _ in range(9)]

    assert times == sorted(times)


@IDS
async def test_each_id_is_a_uuid_of_version_7_and_another_one(make: Callable[[], IDSource]) -> None:
    source = make()

    minted = [source.provisioned_resource_id() for _ in range(9)]

    assert {(each.version, each.variant) for each in minted} == {(7, samples.ID.variant)}
    assert len(set(minted)) == len(minted)


@SECRETS
async def test_each_token_is_another_one_of_its_project_and_environment(
    make: Callable[[], SecretSource],
) -> None:
    source = make()

    minted = [source.token(samples.PROJECT) for _ in range(9)]

    assert len({each.reveal() for each in minted}) == len(minted)
    told = token.TokenParts(env=source.env, project_id=samples.PROJECT, kind=token.KIND_NODE)
    assert {token.parse(each) for each in minted} == {told}


@SECRETS
async def test_each_node_secret_is_another_one_of_32_bytes(
    make: Callable[[], SecretSource],
) -> None:
    source = make()

    minted = [source.node_secret() for _ in range(9)]

    assert {len(each) for each in minted} == {32}
    assert len(set(minted)) == len(minted)


@SECRETS
async def test_each_signing_key_is_another_pair_and_what_it_signs_can_be_verified(
    make: Callable[[], SecretSource],
) -> None:
    source = make()

    minted = [source.signing_key() for _ in range(3)]

    assert len({pair.public for pair in minted}) == len(minted)
    for pair in minted:
        private = Ed25519PrivateKey.from_private_bytes(pair.private)
        assert private.public_key().public_bytes_raw() == pair.public
