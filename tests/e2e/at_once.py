"""Every case of a scenario at once, because lives mostly wait; a test is what one case came to.

Running them beside one another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeVar

from dev.stack import Stack
from tests.e2e.conftest import PIPELINE_IDS, PIPELINES
from tests.e2e.world import PROJECT, TIMEOUT_S, Node

NEVER: Final = {"demo-boot": "never"}
"""Labels of a machine whose node does not come."""


Labels = Mapping[str, str]
_NONE: Final[Labels] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One way through a scenario.

    Attributes:
        pipeline: The Composition's name.
        registered: Whether the node comes.
        way: How the scenario's deletion is asked for.
    """

    pipeline: str = PIPELINES[0]
    registered: bool = True
    way: str = "Background"

    def __str__(self) -> str:
        named = dict(zip(PIPELINES, PIPELINE_IDS, strict=True)).get(self.pipeline, self.pipeline)
        came = "registered" if self.registered else "never-came"
        return f"{named}-{came}-{self.way}"

    def node(
        self, stack: Stack, scenario: str, *, namespace: str = PROJECT, labels: Labels = _NONE
    ) -> Node:
        """Apply its node, which no other case knows."""
        made = Node(
            stack,
            f"{scenario}-{self}".lower().replace(".", "-"),
            namespace=namespace,
            labels={**labels} if self.registered else {**NEVER, **labels},
            composition=self.pipeline,
        )
        return made.apply()

    def settled(self, node: Node, *, timeout_s: float = TIMEOUT_S) -> str:
        """Wait until a node of this case has gone as far as it goes; return its handle."""
        if self.registered:
            return node.until_ready(timeout_s=timeout_s)
        return node.until_enrolling(timeout_s=timeout_s)


AT_ONCE: Final = 18
"""Lives beside one another: all that the deletion matrix has of one crash. The slower all go, the
more of its breaker's hundred tokens each costs its XR: of 24 at once one came to more, and
Crossplane let go of it for minutes."""

T = TypeVar("T")
Outcome = Callable[[T], None]
"""Raises what a case came to, if it came to grief."""


@contextmanager
def at_once(cases: Sequence[T], live: Callable[[T], None]) -> Iterator[Outcome[T]]:
    """Live all cases; yield what tells how one of them went."""
    with ThreadPoolExecutor(max_workers=min(AT_ONCE, len(cases))) as pool:
        lives = {case: pool.submit(live, case) for case in cases}
        errors = {case: life.exception() for case, life in lives.items()}

    def outcome(case: T) -> None:
        error = errors[case]
        if error is not None:
            raise error

    yield outcome
