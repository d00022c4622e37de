"""Each promise notices a broker that breaks it: without that, nobody knows that it can."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

import pytest

from function.contract.strategy import BootstrapState
from reconciler.app.controller.controller import Controller
from reconciler.app.protection.children import SubstrateChildren
from reconciler.app.registration.bootstrap import BootstrapTokens
from reconciler.app.teardown import substrate_steps
from reconciler.app.teardown.deregistration import Deregistration
from reconciler.domain.teardown.release import AbsenceBarrier
from tests.fakes.memory import MemoryStore, TokenRow
from tests.fakes.tokens import InMemoryTokenIssuer
from tests.simulation.batch import failed
from tests.simulation.given import plan, world
from tests.simulation.schedule import Kind, Schedule
from tests.simulation.world import play
from tests.unit.reconciler import samples

Wrong = tuple[Any, str, Any]


async def nobody(*_: Any) -> bool:
    return False


async def overlooked(*_: Any) -> None:
    return None


async def nothing_left(*_: Any) -> list[Any]:
    return []


def believed(_: Any) -> AbsenceBarrier:
    return AbsenceBarrier.PASSED


def never_spent(*_: Any) -> BootstrapState:
    return BootstrapState.ISSUED


def silent(*_: Any) -> None:
    return None


async def never(*_: Any, **__: Any) -> Any:
    raise OSError


_issue: Callable[..., Any] = InMemoryTokenIssuer.issue


async def talkative(*args: Any, **kwargs: Any) -> Any:
    issued = await _issue(*args, **kwargs)
    logging.getLogger("reconciler.app").info("issued %s", issued.plaintext.reveal())
    return issued


_sweep: Callable[[Controller], Any] = Controller.sweep_records


async def restless(driver: Controller) -> int:
    repository: Any = driver._repository
    for seen in await repository.sightings(samples.CLUSTER):
        await repository.update(await repository.get(seen.id))
    asked: int = await _sweep(driver)
    return asked


TWICE: Final = world(plan(Kind.TWICE_CREATED, 0.0))
SLOW: Final = world(plan(Kind.SLOW_PIPELINE, 0.0), plan(Kind.DELETE_RECORD, 190.0), seed=2)
BROKEN_GLASS: Final = world(
    plan(Kind.DELETE_HANGS, 50.0, 200.0),
    plan(Kind.DELETE_BACKGROUND, 55.0),
    plan(Kind.BREAK_GLASS, 70.0),
    seed=2,
)
STRIPPED: Final = world(plan(Kind.DELETE_ORPHAN, 60.0), plan(Kind.STRIP_FINALIZER, 90.0))
PLAIN: Final = world()


@pytest.mark.parametrize(
    ("promises", "wrong", "schedule"),
    [
        pytest.param({1}, (TokenRow, "state", never_spent), TWICE, id="a-token-is-used-twice"),
        pytest.param(
            {2}, (Controller, "_aggregate", overlooked), STRIPPED, id="records-overlooked"
        ),
        pytest.param({2, 4}, (substrate_steps, "next_barrier", believed), SLOW, id="no-fence"),
        pytest.param({3}, (Deregistration, "registered", nobody), PLAIN, id="nodes-overlooked"),
        pytest.param(
            {4}, (SubstrateChildren, "left", nothing_left), BROKEN_GLASS, id="no-children"
        ),
        pytest.param({5}, (BootstrapTokens, "ensure", never), PLAIN, id="no-token-ever"),
        pytest.param({6}, (MemoryStore, "append_once", silent), PLAIN, id="events-lost"),
        pytest.param({7}, (InMemoryTokenIssuer, "issue", talkative), PLAIN, id="a-token-logged"),
        pytest.param({9}, (Controller, "sweep_records", restless), PLAIN, id="writes-at-rest"),
    ],
)
def test_a_broker_that_breaks_a_promise_is_found(
    monkeypatch: pytest.MonkeyPatch, promises: set[int], wrong: Wrong, schedule: Schedule
) -> None:
    assert play(schedule).breach is None
    monkeypatch.setattr(*wrong)

    breach = play(schedule).breach

    assert breach is not None
    assert breach.promise in promises, breach


def test_a_failing_world_is_shrunk_to_what_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TokenRow, "state", never_spent)
    idle = [plan(Kind.EDIT, 40.0), plan(Kind.CLOCK_SKEW, 5.0)]
    crowded = Schedule(
        seed=1,
        xrs=(1.0, 2.0),
        recreate=(False, False),
        plans=(idle[0], plan(Kind.TWICE_CREATED, 0.0), idle[1]),
    )

    failure = failed(crowded, play(crowded))

    assert failure.kept == (1,)
    assert "--plans 1" in str(failure)
