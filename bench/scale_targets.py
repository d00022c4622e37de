"""What the figures of thousands of nodes say against the issue's targets.

The rows and their judgement. Source: issue "Scale".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bench import report

MEMORY_MAX_MIB: Final = 512.0
COLD_MAX_S: Final = 60.0
COST_RATIO_MAX: Final = 1.3
REACTION_MAX_S: Final = 1.0
AT: Final = 10_000
"""The number of records that the targets of memory and cold start are for."""
OURS: Final = "broker"
BARE: Final = "bare echo"
"""Watches and writes one status, and nothing else (`echo`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaction:
    """How soon somebody's answers to edits were seen by somebody else, in seconds."""

    who: str
    rate: float
    p50_s: float
    p99_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one number of records cost.

    Attributes:
        cold_s: From the start of the process until every record rests.
        cold_cpu_s: Processor time until then.
        resident_mib: The most it ever held until the end of all measuring.
        reactions: Each contender's at each rate.
        rest_cpu: Processors used at rest.
        rest_writes: Rows written at rest, by table; the lease is not counted.
        rest_api_writes: Writes to the API server at rest.
        rest_wal_bytes: Of all of the database, the lease included.
    """

    records: int
    cold_s: float
    cold_cpu_s: float
    resident_mib: float
    reactions: Sequence[Reaction]
    rest_s: float
    rest_cpu: float
    rest_writes: Mapping[str, int]
    rest_api_writes: int
    rest_wal_bytes: int


def targets(rows: list[Row]) -> list[report.Target]:
    """Judge the rows by the issue's figures."""
    found: list[report.Target] = []
    for row in rows:
        at = f"{row.records} records"
        writes = {table: count for table, count in row.rest_writes.items() if count}
        found += [
            _target(f"resident memory, {at}", f"{row.resident_mib:.0f} MiB",
                    met=row.resident_mib <= MEMORY_MAX_MIB if row.records <= AT else None),
            _target(f"cold start, {at}", f"{row.cold_s:.1f} s",
                    met=row.cold_s <= COLD_MAX_S if row.records <= AT else None),
            *_reacted(row, at),
            _target(f"writes at rest, {at}",
                    f"{writes or 'none'} to Postgres, {row.rest_api_writes} to the API server",
                    met=not writes and not row.rest_api_writes),
        ]  # fmt: skip
    if len(rows) > 1:
        first, last = rows[0], rows[-1]
        ratio = (last.cold_cpu_s / last.records) / (first.cold_cpu_s / first.records)
        found.append(
            _target(
                f"cost per record, {last.records} against {first.records}",
                f"{ratio:.2f} times",
                met=ratio <= COST_RATIO_MAX,
            )
        )
    return found


def _reacted(row: Row, at: str) -> list[report.Target]:
    """Judge the reaction at the last rate, where the bare one keeps the target at all."""
    bare = {each.rate: each for each in row.reactions if each.who == BARE}
    return [
        _target(
            f"reaction under {each.rate:g} changes/s, {at}",
            f"p50 {each.p50_s:.3f} s, p99 {each.p99_s:.3f} s; a bare echo's "
            f"{bare[each.rate].p50_s:.3f} s and {bare[each.rate].p99_s:.3f} s",
            met=_kept(each, bare[each.rate]),
        )
        for each in row.reactions
        if each.who == OURS
    ]


def _kept(ours: Reaction, bare: Reaction) -> bool | None:
    """Tell whether the target is met; None when the API server itself is too slow for it."""
    if ours.p99_s <= REACTION_MAX_S:
        return True
    return False if bare.p99_s <= REACTION_MAX_S else None


def _target(name: str, found: str, *, met: bool | None) -> report.Target:
    return report.Target(name=name, found=found, met=met)
