"""One registration server as a process of its own: ours, or the bare one.

What both have in common, so that only the handler differs. It prints its URL and serves
until its standard input ends, so that it never outlives who started it.
"""

from __future__ import annotations

import asyncio
import sys

import click
from aiohttp import web

from bench import bare_registration
from reconciler.adapters.clock import SystemClock, UUIDv7Source
from reconciler.adapters.http.listener import Address, listening
from reconciler.adapters.http.node.node_app import node_app
from reconciler.adapters.identity.secret_source import SystemSecretSource
from reconciler.adapters.postgres.connection.pool import open_pool
from reconciler.adapters.postgres.registration.enrolment_store import PostgresEnrolmentStore
from reconciler.app.registration.registration import RegistrationPorts, RegistrationService
from tests.fakes.budget import unlimited


@click.command()
@click.argument("kind", type=click.Choice(["ours", "bare"]))
@click.argument("dsn")
def main(kind: str, dsn: str) -> None:
    """Serve registrations on a free port of loopback."""
    asyncio.run(_serve(kind, dsn))


async def _serve(kind: str, dsn: str) -> None:
    pool = await open_pool(dsn)
    try:
        application = bare_registration.app(pool)
        if kind == "ours":
            ports = RegistrationPorts(
                store=PostgresEnrolmentStore(pool),
                secrets=SystemSecretSource(env="load"),
                ids=UUIDv7Source(),
                clock=SystemClock(),
                project_budget=unlimited(),
            )
            enrolment = RegistrationService(ports, on_registered=lambda _: None)
            application = node_app(enrolment, address_budget=unlimited(), bearer_budget=unlimited())
        await _until_input_ends(application)
    finally:
        await pool.close()


async def _until_input_ends(application: web.Application) -> None:
    async with listening(application, Address(host="127.0.0.1", port=0), tls=None) as url:
        sys.stdout.write(f"{url}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    main()
