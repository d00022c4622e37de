"""A record says what its tick keeps failing of (fault 3): its own trouble, once, and no outage."""

from __future__ import annotations

from typing import Any

import pytest

from function.contract.conditions import ConditionType, find
from reconciler.adapters.kubernetes.transport.client import KubernetesError, UnreachableError
from reconciler.app.controller.failure_reporter import MESSAGE_MAX, PATIENCE, FailureReporter
from reconciler.domain.aggregate.errors import StaleAggregateError
from reconciler.ports.registration import StoreUnavailableError
from tests.unit.reconciler.app.world import RESTART, World

Said = tuple[str, str, str]


def refusal(status: int, detail: str = "exceeded quota: tokens") -> KubernetesError:
    return KubernetesError(attempted="post secrets", status=status, reason="No", detail=detail)


class Failing:
    """A world where one call of the API server is refused until it is mended."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, call: str = "create_token_secret") -> None:
        self.world = World(makes=FailureReporter)
        self.refusal: Exception | None = refusal(403)
        inner: Any = getattr(self.world.cluster, call)

        async def refused(*arguments: Any, **options: Any) -> Any:
            if self.refusal is not None:
                raise self.refusal
            return await inner(*arguments, **options)

        monkeypatch.setattr(self.world.cluster, call, refused)

    async def fail(self, times: int) -> None:
        """Tick so often, and fail each time."""
        for _ in range(times):
            with pytest.raises(type(self.refusal or Exception())):
                await self.world.tick()
            self.world.store.clock.advance(RESTART)

    def said(self, kind: ConditionType) -> Said | None:
        """Return a condition's status, reason and message."""
        found = find(self.world.status, kind)
        return None if found is None else (found.status, found.reason, found.message)

    @property
    def writes(self) -> int:
        """How often the status was written."""
        return self.world.cluster.journal.count("write status")


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Failing:
    return Failing(monkeypatch)


async def test_a_record_without_a_status_says_what_it_fails_of(failing: Failing) -> None:
    await failing.fail(PATIENCE)

    expected = "KubernetesError: cannot post secrets: 403 No: exceeded quota: tokens"
    assert failing.said(ConditionType.READY) == ("False", "ReconcileFailed", expected)
    assert failing.said(ConditionType.RECONCILING) == ("True", "ReconcileFailed", expected)


async def test_what_passes_soon_is_not_said(failing: Failing) -> None:
    await failing.fail(PATIENCE - 1)

    assert failing.world.status == {}


async def test_it_is_said_once(failing: Failing) -> None:
    await failing.fail(PATIENCE + 3)

    assert failing.writes == 1


async def test_it_is_unsaid_by_the_first_success(failing: Failing) -> None:
    await failing.fail(PATIENCE)
    failing.refusal = None

    await failing.world.until_ready()

    assert failing.said(ConditionType.RECONCILING) == (
        "False",
        "Ready",
        "The reconcile is complete.",
    )


@pytest.mark.parametrize(
    "outage",
    [
        refusal(503),
        refusal(429),
        refusal(409),
        UnreachableError("post secrets", "ClientError"),
        TimeoutError(),
        StoreUnavailableError("cannot update"),
        StaleAggregateError("cannot update"),
    ],
    ids=repr,
)
async def test_an_outage_and_a_lost_race_are_no_records_own(
    failing: Failing, outage: Exception
) -> None:
    failing.refusal = outage

    await failing.fail(PATIENCE + 1)

    assert failing.writes == 0


async def test_a_ready_node_stays_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    failing = Failing(monkeypatch, "get_object")
    failing.refusal = None
    await failing.world.until_ready()
    before = failing.world.status["phase"], failing.world.status["node"]
    failing.world.raw["spec"]["observed"] = {"exists": False, "ready": False}
    failing.refusal = refusal(400)

    await failing.fail(PATIENCE)

    ready = failing.said(ConditionType.READY)
    assert ready is not None
    assert ready[:2] == ("True", "Registered")
    reconciling = failing.said(ConditionType.RECONCILING)
    assert reconciling is not None
    assert reconciling[:2] == ("True", "ReconcileFailed")
    assert (failing.world.status["phase"], failing.world.status["node"]) == before


async def test_a_status_that_cannot_be_written_hides_no_failure(
    failing: Failing, monkeypatch: pytest.MonkeyPatch
) -> None:
    await failing.fail(PATIENCE - 1)

    async def refused(*_: Any) -> None:
        raise refusal(403, "no status")

    with monkeypatch.context() as forbidden:
        forbidden.setattr(failing.world.cluster, "write_status", refused)
        await failing.fail(1)
    await failing.fail(1)

    assert failing.writes == 1


async def test_a_long_refusal_is_cut(failing: Failing) -> None:
    failing.refusal = refusal(422, "x" * 4096)

    await failing.fail(PATIENCE)

    ready = failing.said(ConditionType.READY)
    assert ready is not None
    assert len(ready[2]) == MESSAGE_MAX


async def test_it_comes_back_when_its_work_says_so() -> None:
    plain, telling = World(), World(makes=FailureReporter)
    for world in (plain, telling):
        world.cluster.unenforced = "plexsphere-hold"

    again = await telling.tick()

    assert again is not None
    assert again == await plain.tick()
