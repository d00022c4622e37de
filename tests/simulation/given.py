"""Worlds made by hand, for tests that want one thing to happen.

Builders.
"""

from __future__ import annotations

from tests.simulation.schedule import Kind, Plan, Schedule


def world(*plans: Plan, seed: int = 1, xrs: int = 1, recreate: bool = False) -> Schedule:
    """Return a world with XRs that are applied in the first seconds."""
    return Schedule(
        seed=seed,
        xrs=tuple(1.0 + number for number in range(xrs)),
        recreate=(recreate,) * xrs,
        plans=plans,
    )


def plan(kind: Kind, at: float, length_s: float = 300.0, *, target: int = 0) -> Plan:
    """Return one plan."""
    return Plan(kind=kind, at=at, length_s=length_s, target=target)
