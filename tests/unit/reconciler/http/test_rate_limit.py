"""Token buckets, on a clock that is told the time."""

from __future__ import annotations

import pytest

from reconciler.adapters.http import rate_limit
from reconciler.adapters.http.rate_limit import TokenBuckets


class Clock:
    """A monotonic clock that stands still until told otherwise."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_a_burst_is_one_seconds_worth() -> None:
    buckets = TokenBuckets(per_second=10, monotonic=Clock())

    answers = [buckets.take("a") for _ in range(12)]

    assert answers == [None] * 10 + [1, 1]


def test_it_refills_with_time_and_no_further_than_full() -> None:
    clock = Clock()
    buckets = TokenBuckets(per_second=2, monotonic=clock)
    while buckets.take("a") is None:
        pass

    clock.now_s += 0.5
    after_half_a_second = [buckets.take("a") for _ in range(2)]
    clock.now_s += 3600
    after_an_hour = [buckets.take("a") for _ in range(3)]

    assert after_half_a_second == [None, 1]
    assert after_an_hour == [None, None, 1]


def test_whoever_waits_as_told_is_let_in() -> None:
    clock = Clock()
    buckets = TokenBuckets(per_second=1 / 60, monotonic=clock)
    assert buckets.take("a") is None

    wait_s = buckets.take("a")
    assert wait_s == 60
    clock.now_s += wait_s

    assert buckets.take("a") is None


def test_keys_do_not_share() -> None:
    buckets = TokenBuckets(per_second=1, monotonic=Clock())
    buckets.take("a")

    assert buckets.take("a") == 1
    assert buckets.take("b") is None


def test_a_burst_is_what_may_be_asked_at_once() -> None:
    buckets = TokenBuckets(per_second=1, monotonic=Clock(), at_once=3)

    assert [buckets.take("a") for _ in range(4)] == [None, None, None, 1]


def test_what_is_given_back_may_be_taken_again_and_no_more_than_that() -> None:
    buckets = TokenBuckets(per_second=2, monotonic=Clock())
    buckets.take("a")

    for _ in range(5):
        buckets.give_back("a")
    buckets.give_back("nobody")

    assert [buckets.take("a") for _ in range(3)] == [None, None, 1]
    assert len(buckets) == 1


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", "unknown"),
        (None, "unknown"),
        ("/run/socket", "unknown"),
    ],
)
def test_an_address_spends_its_customers_budget(address: str | None, key: str) -> None:
    assert rate_limit.address_key(address) == key


def test_memory_is_bounded_and_the_busiest_are_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rate_limit, "KEYS_MAX", 100)
    buckets = TokenBuckets(per_second=1, monotonic=Clock())
    buckets.take("busy")

    for item in range(1000):
        buckets.take(f"passer-by-{item}")
        assert buckets.take("busy") == 1

    assert len(buckets) == 100
