"""The promises of `docs/promises.md`, each judged from the evidence of a random run.

What a promise says that such evidence cannot show is left to the tests that `docs/promises.md`
names. Pure, so that `test_judge` can make up a history that breaks each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from tests.e2e.random_run.about_nodes import gone_means_gone, node_first, one_enrolment, owned
from tests.e2e.random_run.about_words import at_rest, in_order, told, undelayed, unseen
from tests.e2e.random_run.history import History
from tests.simulation.promises import Breach

PROMISES: Final[tuple[Callable[[History], Iterator[Breach]], ...]] = (
    one_enrolment,
    owned,
    node_first,
    gone_means_gone,
    told,
    in_order,
    unseen,
    undelayed,
    at_rest,
)
"""By their numbers, the first one first."""


def judge(history: History) -> list[Breach]:
    """Return every breach that the evidence shows."""
    return [breach for promise in PROMISES for breach in promise(history)]
