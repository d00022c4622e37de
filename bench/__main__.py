"""The bench's commands: `python -m bench` for speed, `... memory`, `... registration`, `... scale`.

Flags, and the order in which contenders take their turns. Targets are printed as met or
missed; `--strict` alone makes a miss an exit status, because a shared machine misses now
and then.
"""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import click

from bench import load, pythonic, report, scenarios
from bench.contenders import Command, Contender, bare, ours, running
from bench.contenders import pythonic as pythonic_command
from bench.events import events
from bench.registration import registration
from bench.scale import scale

RESULTS: Final = Path(__file__).with_name("results")
CLIENTS: Final = (1, 8)
MEMORY_CLIENTS: Final = 8
MEMORY_SAMPLES: Final = 20
"""Looks at resident memory; the first half of them is warming up."""


@click.group(invoke_without_command=True)
@click.option("--rounds", default=5, show_default=True, help="Turns of each contender.")
@click.option("--seconds", default=2.0, show_default=True, help="Length of a turn.")
@click.option("--only", default="", help="Scenarios whose name holds this.")
@click.option("--nodes", "sizes", multiple=True, type=int, help="Only these numbers of nodes.")
@click.option("--name", default="speed", show_default=True, help="Name of the results' file.")
@click.option("--strict", is_flag=True, help="Exit with 1 when a target is missed.")
@click.pass_context
def main(  # noqa: PLR0913 - a command's flags
    context: click.Context,
    *,
    rounds: int,
    seconds: float,
    only: str,
    sizes: tuple[int, ...],
    name: str,
    strict: bool,
) -> None:
    """Compare the function's speed with others'."""
    if context.invoked_subcommand is not None:
        return
    program = pythonic.ensure(report=click.echo)
    version = pythonic.version(program)
    commands = [ours(), bare(), pythonic_command(program, version)]
    judged = "counts" if pythonic.counts() else "does not count below Python 3.12"
    click.echo(f"function-pythonic {version} on Python {platform.python_version()}: {judged}")
    rows: list[report.Row] = []
    for scenario in scenarios.every():
        if only in scenario.name and (not sizes or scenario.nodes in sizes):
            rows += _compared(scenario, commands, rounds=rounds, seconds=seconds)
    found = report.targets(rows, pythonic_counts=pythonic.counts())
    click.echo(report.table(rows))
    click.echo(report.verdicts(found))
    body = {"machine": report.machine(version), "rows": rows, "targets": found}
    click.echo(f"written: {report.save(RESULTS, name, body).name}")
    if strict and any(each.met is False for each in found):
        context.exit(1)


@main.command()
@click.option("--calls", default=100_000, show_default=True)
@click.option("--only", default="ready", show_default=True, help="Scenarios whose name holds this.")
def memory(calls: int, only: str) -> None:
    """Watch resident memory over many calls."""
    first = next(each for each in scenarios.every() if only in each.name)
    samples: list[int] = []
    with tempfile.TemporaryDirectory() as folder, running(first, [ours()], Path(folder)) as (us,):
        for _ in range(MEMORY_SAMPLES):
            load.calls(us, clients=MEMORY_CLIENTS, count=calls // MEMORY_SAMPLES)
            samples.append(us.resident_bytes)
            click.echo(
                f"{len(samples) * calls // MEMORY_SAMPLES} calls: {samples[-1] / 2**20:.1f} MiB"
            )
    warm = samples[len(samples) // 2 :]
    growth = warm[-1] / warm[0] - 1
    target = report.Target(
        name=f"resident memory flat over {calls} calls",
        found=f"{growth:+.2%} over the second half",
        met=growth <= report.GROWTH_MAX,
    )
    click.echo(report.verdicts([target]))
    body = {"machine": report.machine(None), "resident_bytes": samples, "targets": [target]}
    click.echo(f"written: {report.save(RESULTS, 'memory', body).name}")


def _compared(
    scenario: scenarios.Scenario, commands: list[Command], *, rounds: int, seconds: float
) -> Iterable[report.Row]:
    with (
        tempfile.TemporaryDirectory() as folder,
        running(scenario, commands, Path(folder)) as contenders,
    ):
        for clients in CLIENTS:
            yield from _rounds(scenario, contenders, clients, rounds, seconds)


def _rounds(
    scenario: scenarios.Scenario,
    contenders: list[Contender],
    clients: int,
    rounds: int,
    seconds: float,
) -> Iterable[report.Row]:
    turns: dict[str, list[load.Turn]] = {each.name: [] for each in contenders}
    for _ in range(rounds):
        for each in contenders:
            turns[each.name].append(load.turn(each, clients=clients, seconds=seconds))
    for each in contenders:
        yield report.row(
            turns[each.name],
            turns[contenders[0].name],
            each.resident_bytes,
            scenario=scenario.name,
            nodes=scenario.nodes,
            clients=clients,
            contender=each.name,
            same=each.same,
        )


main.add_command(registration)
main.add_command(events)
main.add_command(scale)

if __name__ == "__main__":
    main()
