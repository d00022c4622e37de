"""`broker events`: operators list, replay and skip published events.

Flags and what is printed. Only `reconciler.main` imports it. Source: docs/events.md "For
operators".
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeVar
from uuid import UUID

import click

from reconciler.adapters.events import cloudevents
from reconciler.adapters.postgres.outbox import event_desk
from reconciler.adapters.postgres.outbox.event_desk import Choice, EventAdmin
from reconciler.commands import store
from reconciler.domain.events.catalogue import CATALOGUE
from reconciler.settings.events import EventSettings
from reconciler.settings.store import StoreSettings

LIST_MAX: Final = 10_000
_TYPES = click.Choice(sorted(CATALOGUE))

_T = TypeVar("_T")
_reason = click.option(
    "--reason", required=True, help="Reason, recorded in the audit with the user."
)


class EventStoreSettings(EventSettings, StoreSettings):
    """The settings of the event store and the events' source."""


@click.group()
def events() -> None:
    """List, follow, replay or skip events of the outbox."""


@events.command("list")
@click.option("--type", "event_type", type=_TYPES, help="Only of this type.")
@click.option("--aggregate", type=click.UUID, help="Only of this aggregate.")
@click.option("--waiting", is_flag=True, help="Only events that are not published yet.")
@click.option("--parked", is_flag=True, help="Only parked events, which failed too often.")
@click.option("--limit", default=50, type=click.IntRange(1, LIST_MAX), show_default=True)
def list_events(
    event_type: str | None, aggregate: UUID | None, limit: int, *, waiting: bool, parked: bool
) -> None:
    """List events and their delivery state, the newest first."""
    choice = Choice(aggregate=aggregate, parked=parked)

    async def work(desk: EventAdmin) -> None:
        for item in await desk.newest(choice, event_type=event_type, waiting=waiting, limit=limit):
            event = item.event
            when = event.occurred_at.strftime("%Y-%m-%dT%H:%M:%SZ")
            name = f"{event.aggregate_type}/{event.aggregate_id}#{event.sequence}"
            trouble = f" attempts={event.attempts} error={item.error}" if item.error else ""
            click.echo(f"{when} {item.state:<9} {event.type} {name} id={event.id}{trouble}")

    _at_desk("list events", work)


@events.command()
@click.option("--from-start", is_flag=True, help="Start with the oldest stored event.")
@click.option("--no-follow", is_flag=True, help="Stop after the newest event.")
def tail(*, from_start: bool, no_follow: bool) -> None:
    """Print events as CloudEvents, one JSON object on a line, as they are committed.

    For operators, not for consumers: it reads the outbox, not what the sink accepted.
    """
    source = store.load(EventStoreSettings).events_source

    async def work(desk: EventAdmin) -> None:
        async for event in desk.follow(from_start=from_start, wait=not no_follow):
            click.echo(cloudevents.structured(event, source))

    _at_desk("follow events", work)


@events.command()
@click.option("--event", type=click.UUID, help="Replay this event.")
@click.option("--aggregate", type=click.UUID, help="Replay all stored events of this aggregate.")
@click.option(
    "--from",
    "from_sequence",
    default=1,
    type=click.IntRange(1),
    help="With --aggregate: start at this sequence number.",
)
@click.option("--parked", is_flag=True, help="Replay all parked events.")
@_reason
def replay(
    event: UUID | None, aggregate: UUID | None, from_sequence: int, *, parked: bool, reason: str
) -> None:
    """Publish events again, with their original ids.

    Consumers deduplicate by the id. Events that wait behind a parked one follow by themselves.
    """
    if sum(map(bool, (event, aggregate, parked))) != 1:
        message = "set exactly one of --event, --aggregate and --parked"
        raise click.UsageError(message)
    choice = Choice(event=event, aggregate=aggregate, from_sequence=from_sequence, parked=parked)

    async def work(desk: EventAdmin) -> int:
        return await desk.replay(choice, reason=reason)

    count = _at_desk("replay events", work)
    more = "; there may be more, run the command again" if count == event_desk.REPLAY_MAX else ""
    click.echo(f"{count} events will be published{more}")


@events.command()
@click.argument("event", type=click.UUID)
@_reason
def skip(event: UUID, *, reason: str) -> None:
    """Skip one event that no consumer accepts; the events behind it are published."""

    async def work(desk: EventAdmin) -> bool:
        return await desk.skip(event, reason=reason)

    if not _at_desk("skip event", work):
        message = "no waiting event has this id"
        raise click.ClickException(message)
    click.echo("the event will not be published")


@events.command()
@click.argument("event_type", type=_TYPES, required=False)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Write every schema into this folder.",
)
def schema(event_type: str | None, out: Path | None) -> None:
    """Print the JSON Schema of one event type, list the types, or write all schemas."""
    for name in sorted(CATALOGUE) if event_type is None else [event_type]:
        text = json.dumps(CATALOGUE[name].schema(), indent=2, ensure_ascii=False) + "\n"
        if out is not None:
            (out / f"{name}.v{CATALOGUE[name].version}.json").write_text(text, encoding="utf-8")
        click.echo(text if event_type and out is None else name, nl=not (event_type and not out))


def _at_desk(verb: str, work: Callable[[EventAdmin], Awaitable[_T]]) -> _T:
    dsn = store.load(StoreSettings).dsn.get_secret_value()
    return store.run(verb, _with_desk(dsn, work))


async def _with_desk(dsn: str, work: Callable[[EventAdmin], Awaitable[_T]]) -> _T:
    async with event_desk.opened(dsn, actor=store.actor()) as desk:
        return await work(desk)
