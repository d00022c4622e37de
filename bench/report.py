"""What the figures say: ratios, targets, a table, a file.

Arithmetic on finished turns, and their form for people and for machines. A ratio is taken
within a round, where both contenders met the same machine, and the median over rounds
counts. Source: issue "Speed".
"""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from bench.load import Turn

SETTLED_MIN: Final = 0.8
"""Of the bare SDK, where nothing of an XR changed that a composition reads."""

ONE_OF_MANY_MIN: Final = 0.7
"""Of the bare SDK, where one node of a hundred that are settled is composed anew."""

ONE_ANEW_MIN: Final = 0.6
FEW_ANEW_MIN: Final = 0.5
"""Of the bare SDK, for all else: one node, and more than one."""

PYTHONIC_RATIO_MIN: Final = 1.0
TAIL_MAX: Final = 3.0
MANY: Final = 100
LINEAR_MAX: Final = 1.25
"""How much a node may cost more where there are more of them."""

GROWTH_MAX: Final = 0.02
"""Growth of resident memory that still counts as flat, as a share."""

_PACKAGES: Final = ("crossplane-function-sdk-python", "grpcio", "protobuf", "pydantic")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One contender in one scenario at one number of clients.

    Attributes:
        ratio: Our throughput by its, the median over rounds; 1 for us.
        cpu_ms: Its processor time per call.
        cpu_ratio: Its processor time per call by ours.
        same: Whether it composes the same objects as we do when a request changed.
    """

    scenario: str
    nodes: int
    clients: int
    contender: str
    calls_per_s: float
    p50_ms: float
    p99_ms: float
    cpu_ms: float
    ratio: float
    cpu_ratio: float
    resident_mib: float
    same: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One thing the issue asks for.

    Attributes:
        met: None: it does not count here.
    """

    name: str
    found: str
    met: bool | None


def row(turns: Sequence[Turn], ours: Sequence[Turn], resident_bytes: int, **who: Any) -> Row:
    """Sum a contender's turns up, beside ours of the same rounds."""
    latencies = sorted(each for turn in turns for each in turn.latencies_s)
    pairs = list(zip(ours, turns, strict=True))
    return Row(
        **who,
        calls_per_s=statistics.median(turn.calls_per_s for turn in turns),
        p50_ms=1000 * percentile(latencies, 50),
        p99_ms=1000 * percentile(latencies, 99),
        cpu_ms=1000 * statistics.median(turn.cpu_s for turn in turns),
        ratio=statistics.median(us.calls_per_s / it.calls_per_s for us, it in pairs),
        cpu_ratio=statistics.median(it.cpu_s / us.cpu_s for us, it in pairs),
        resident_mib=resident_bytes / 2**20,
    )


def percentile(ordered: Sequence[float], percent: int) -> float:
    """Return the smallest value that so many percent are not above."""
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def targets(rows: Iterable[Row], *, pythonic_counts: bool) -> list[Target]:
    """Judge every row by the issue."""
    rows = list(rows)
    found = [*_ratios(rows, pythonic_counts=pythonic_counts)]
    alone = [each for each in rows if each.clients == 1]
    ours = [each for each in alone if each.contender == "ours"]
    bare = {_where(each): each for each in alone if each.contender == "bare SDK"}
    found += [_tail(each, bare[_where(each)]) for each in ours]
    return found + list(_linear(ours))


def _tail(ours: Row, bare: Row) -> Target:
    tail, floor = ours.p99_ms / ours.p50_ms, bare.p99_ms / bare.p50_ms
    return Target(
        name=f"p99 at most {TAIL_MAX:g} x p50: {_where(ours)}",
        # Where a server that does next to nothing has such a tail, it is the machine's.
        found=f"{tail:.2f} (bare SDK {floor:.2f})",
        met=tail <= TAIL_MAX,
    )


def _ratios(rows: Iterable[Row], *, pythonic_counts: bool) -> Iterable[Target]:
    for each in rows:
        if each.contender == "ours":
            continue
        bare = each.contender == "bare SDK"
        least = _bare_least(each) if bare else PYTHONIC_RATIO_MIN
        # A contender that reads nothing goes on composing what the first request asked for.
        otherwise = "" if each.same else "; it composes something else for a changed request"
        # Throughput and processor time must both reach it.
        met = min(each.ratio, each.cpu_ratio) >= least
        yield Target(
            name=f"at least {least:g} of {each.contender}: {_where(each)}",
            found=f"{each.ratio:.2f} (processor time {each.cpu_ratio:.2f}){otherwise}",
            met=met if bare or pythonic_counts else None,
        )


def _bare_least(each: Row) -> float:
    """Return what the issue asks for beside the bare SDK."""
    if "ready" in each.scenario:
        if "," not in each.scenario.partition("ready")[2]:
            return SETTLED_MIN
        if each.nodes >= MANY:
            return ONE_OF_MANY_MIN
    return ONE_ANEW_MIN if each.nodes == 1 else FEW_ANEW_MIN


def _linear(ours: Iterable[Row]) -> Iterable[Target]:
    by_scenario: dict[str, list[Row]] = {}
    for each in ours:
        by_scenario.setdefault(each.scenario, []).append(each)
    for name, rows in by_scenario.items():
        rows.sort(key=lambda each: each.nodes)
        steps = [
            (after.cpu_ms - before.cpu_ms) / (after.nodes - before.nodes)
            for before, after in pairwise(rows)
        ]
        for before, after in pairwise(steps):
            yield Target(
                name=f"time linear in nodes: {name}",
                found=f"a further node takes {before:.3f} ms, later {after:.3f} ms",
                met=after <= LINEAR_MAX * before,
            )


def _where(each: Row) -> str:
    return f"{each.scenario}, {each.nodes} nodes, {each.clients} clients"


def machine(pythonic_version: str | None) -> dict[str, Any]:
    """Describe what it ran on, without naming it."""
    return {
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "function-pythonic": pythonic_version,
        **{name: metadata.version(name) for name in _PACKAGES},
    }


def table(rows: Iterable[Row]) -> str:
    """Lay rows out for a terminal."""
    head = ("scenario", "nodes", "clients", "contender", "calls/s", "p50 ms", "p99 ms",
            "cpu ms", "ours/it", "cpu it/ours", "MiB")  # fmt: skip
    body = [
        (each.scenario, str(each.nodes), str(each.clients), each.contender,
         f"{each.calls_per_s:.0f}", f"{each.p50_ms:.2f}", f"{each.p99_ms:.2f}",
         f"{each.cpu_ms:.3f}", f"{each.ratio:.2f}", f"{each.cpu_ratio:.2f}",
         f"{each.resident_mib:.0f}")
        for each in rows
    ]  # fmt: skip
    widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in (head, *body)
    )


def verdicts(found: Iterable[Target]) -> str:
    """Lay targets out for a terminal."""
    words = {True: "pass", False: "MISS", None: "does not count"}
    return "\n".join(f"{words[each.met]}: {each.name}: {each.found}" for each in found)


def save(folder: Path, name: str, body: dict[str, Any]) -> Path:
    """Write one run's figures; a later run under the same name replaces them."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(body, indent=2, default=asdict) + "\n")
    return path
