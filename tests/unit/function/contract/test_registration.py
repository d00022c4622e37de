"""How long a node may take: what is read, and what is refused."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pydantic import ValidationError

from function.contract.record import Declaration, wire
from function.contract.registration import Registration, RegistrationPolicy
from tests.unit.reconciler import samples


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("1m", timedelta(minutes=1)),
        ("60s", timedelta(minutes=1)),
        ("1h30m", timedelta(minutes=90)),
        ("24h", timedelta(hours=24)),
        ("23h59m60s", timedelta(hours=24)),
    ],
)
def test_a_duration_is_read(text: str, length: timedelta) -> None:
    assert Registration(timeout=text).length == length


@pytest.mark.parametrize(
    "text", ["", "15", "m", "-15m", "15m1h", "1.5h", "1d", " 15m", "59s", "24h1s", "99999h"]
)
def test_what_is_no_duration_within_the_bounds_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        Registration(timeout=text)


@pytest.mark.parametrize("attempts", [0, 11, -1])
def test_attempts_have_bounds(attempts: int) -> None:
    with pytest.raises(ValidationError):
        Registration(attempts=attempts)


def test_what_says_nothing_keeps() -> None:
    silent = Registration()

    assert (silent.policy, silent.length, silent.attempts) == (RegistrationPolicy.KEEP, None, 3)


def test_a_declaration_of_before_is_what_it_was() -> None:
    written = wire(samples.DECLARATION)

    assert "registration" not in written
    assert Declaration.model_validate(written) == samples.DECLARATION


def test_a_declaration_keeps_what_it_says_of_it() -> None:
    wanted = Registration(policy=RegistrationPolicy.RECREATE, timeout="20m", attempts=2)
    declared = samples.DECLARATION.model_copy(update={"registration": wanted})

    assert Declaration.model_validate(wire(declared)) == declared
    assert wire(declared)["registration"] == {
        "policy": "Recreate",
        "timeout": "20m",
        "attempts": 2,
    }
