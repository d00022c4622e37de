"""When a term begins and ends, whatever happens to its leader and its store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from reconciler.app.controller import leader_election
from reconciler.app.controller.leader_election import LeaderElection, LeadershipTerm
from reconciler.domain.guard.lease import Pace
from reconciler.ports.registration import StoreUnavailableError
from reconciler.ports.store.lease import FencedError, Lease
from tests.fakes.lease import InMemoryLeases

PACE = Pace(ttl=timedelta(milliseconds=80))
KEY = uuid4()
PATIENCE_S = 30.0
ANSWER_S = 0.02
"""How long a slow store takes to answer, by the holder's clock."""


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader_election, "RETRY_S", 0.001)


@dataclass
class SlowLeases(InMemoryLeases):
    """Time passes between what a lease is given for and its answer."""

    on_answer: Callable[[], None] = lambda: None

    async def acquire(self, key: UUID, *, holder: str, ttl: timedelta) -> Lease | None:
        lease = await super().acquire(key, holder=holder, ttl=ttl)
        self.on_answer()
        return lease

    async def renew(self, lease: Lease, *, ttl: timedelta) -> bool:
        renewed = await super().renew(lease, ttl=ttl)
        self.on_answer()
        return renewed


@dataclass
class Candidate:
    """One process that stands for the lease; its clock moves by hand."""

    leases: InMemoryLeases = field(default_factory=InMemoryLeases)
    now: float = 0.0
    terms: list[LeadershipTerm] = field(default_factory=list)
    left_at_first_s: list[float] = field(default_factory=list)
    ended: int = 0
    fails_with: Exception | None = None

    def __post_init__(self) -> None:
        self.leadership = LeaderElection(
            self.leases, key=KEY, holder="me", pace=PACE, clock=lambda: self.now
        )

    def wait_for_the_answer(self) -> None:
        self.now += ANSWER_S

    async def lead(self, term: LeadershipTerm) -> None:
        self.terms.append(term)
        self.left_at_first_s.append(term.left_s())
        try:
            if self.fails_with is not None:
                error, self.fails_with = self.fails_with, None
                raise error
            await asyncio.Event().wait()
        finally:
            self.ended += 1


@asynccontextmanager
async def standing(candidate: Candidate) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(candidate.leadership.run(candidate.lead))
    yield task
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def until(fact: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not fact():  # noqa: ASYNC110 - what is waited for are facts of other objects
            await asyncio.sleep(0.001)


async def _somebody(leases: InMemoryLeases) -> Lease:
    lease = await leases.acquire(KEY, holder="somebody", ttl=PACE.ttl)
    assert lease is not None
    return lease


async def test_who_is_elected_leads_and_renews() -> None:
    candidate = Candidate()

    async with standing(candidate):
        await until(lambda: candidate.leases.calls.count("renew") > 3)

    assert len(candidate.terms) == 1


async def test_who_is_not_elected_stands_by_and_leads_when_the_time_is_over() -> None:
    candidate = Candidate()
    await _somebody(candidate.leases)

    async with standing(candidate):
        await candidate.leadership.standing_by.wait()
        assert candidate.terms == []
        candidate.leases.now += PACE.ttl.total_seconds()
        await until(lambda: candidate.terms)

    assert candidate.terms[0].lease.fence == 2


async def test_a_term_ends_when_somebody_took_the_lease_over() -> None:
    candidate = Candidate()

    async with standing(candidate):
        await until(lambda: candidate.terms)
        candidate.leases.now += PACE.ttl.total_seconds()
        candidate.leases.held.clear()
        candidate.leases.held[KEY] = (Lease(key=KEY, holder="somebody", fence=2), 1e9)
        await until(lambda: candidate.ended)

    with pytest.raises(FencedError):
        candidate.terms[0].check()


async def test_a_term_ends_by_the_holders_own_clock_while_the_store_is_away() -> None:
    candidate = Candidate()

    async with standing(candidate):
        await until(lambda: candidate.terms)
        candidate.leases.away = True
        await until(lambda: candidate.leases.calls.count("renew") > 1)
        assert candidate.ended == 0
        candidate.now += PACE.held_for.total_seconds()
        await until(lambda: candidate.ended)


async def test_a_term_counts_from_when_it_was_asked_for_not_from_the_answer() -> None:
    leases = SlowLeases()
    candidate = Candidate(leases=leases)
    leases.on_answer = candidate.wait_for_the_answer

    async with standing(candidate):
        await until(lambda: candidate.terms)
        await until(lambda: candidate.leases.calls.count("renew") > 1)
        renewed_s = candidate.terms[0].left_s()

    left_s = PACE.held_for.total_seconds() - ANSWER_S
    assert candidate.left_at_first_s == pytest.approx([left_s])
    assert renewed_s == pytest.approx(left_s)


async def test_nothing_may_be_done_after_a_pause_although_nobody_has_noticed_it_yet() -> None:
    candidate = Candidate()

    async with standing(candidate):
        await until(lambda: candidate.terms)
        candidate.terms[0].check()
        candidate.now += PACE.held_for.total_seconds()

        with pytest.raises(FencedError):
            candidate.terms[0].check()


async def test_what_waits_for_the_store_is_torn_off_before_the_leader_is_waited_for() -> None:
    candidate = Candidate()
    order: list[str] = []

    async def lead(term: LeadershipTerm) -> None:
        term.at_end(lambda: order.append("torn off"))
        candidate.terms.append(term)
        try:
            await asyncio.Event().wait()
        finally:
            order.append("cancelled")

    task = asyncio.create_task(candidate.leadership.run(lead))
    await until(lambda: candidate.terms)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert order == ["torn off", "cancelled"]


async def test_who_is_told_to_stop_gives_the_lease_back() -> None:
    candidate = Candidate()

    async with standing(candidate):
        await until(lambda: candidate.terms)

    assert await candidate.leases.acquire(KEY, holder="next", ttl=PACE.ttl) is not None


@pytest.mark.parametrize(
    "error",
    [StoreUnavailableError(), TimeoutError(), FencedError(Lease(key=KEY, holder="", fence=1))],
)
async def test_a_leader_that_fails_for_now_gives_the_lease_back_and_stands_again(
    error: Exception,
) -> None:
    candidate = Candidate(fails_with=error)

    async with standing(candidate) as task:
        await until(lambda: len(candidate.terms) == 2)
        assert not task.done()

    assert [term.lease.fence for term in candidate.terms] == [1, 2]


async def test_a_leader_that_fails_for_good_ends_the_process() -> None:
    candidate = Candidate(fails_with=ValueError("broken"))

    with pytest.raises(ValueError, match="broken"):
        await candidate.leadership.run(candidate.lead)

    assert candidate.leases.calls[-1] == "release"


async def test_an_election_goes_on_after_the_store_was_away() -> None:
    candidate = Candidate()
    candidate.leases.away = True

    async with standing(candidate):
        await until(lambda: len(candidate.leases.calls) > 2)
        assert not candidate.leadership.standing_by.is_set()
        assert candidate.terms == []
        candidate.leases.away = False
        await until(lambda: candidate.terms)


def test_a_holder_stops_before_the_lease_is_over_and_has_tries_left_before_that() -> None:
    pace = Pace(ttl=timedelta(seconds=8))

    assert pace.held_for + pace.renewed_every <= pace.ttl
    assert 3 * pace.renewed_every <= pace.held_for
    assert pace.ttl + pace.asked_every < timedelta(seconds=15)
