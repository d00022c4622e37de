"""Serves the stand-in agent on loopback, as a release page would serve plexd.

One file under the names of both architectures: it is a script. ``__main__`` and ``dev.stack`` use
it; the address and the checksum are what documents need.
"""

from __future__ import annotations

import hashlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

AGENT = Path(__file__).resolve().parents[1] / "agent" / "plexd.py"
NAMES = ("plexd-linux-amd64", "plexd-linux-arm64")


def sha256_hex() -> str:
    """The checksum of the served file, 64 hexadecimal digits."""
    return hashlib.sha256(AGENT.read_bytes()).hexdigest()


def port_of(remembered: Path) -> int:
    """Answers the port that was served last time, so that rendered documents stay valid.

    Args:
        remembered: The file that holds the URL of an earlier start.

    Returns:
        0 when there was none, or something else listens there now.
    """
    try:
        port = int(remembered.read_text().strip().rpartition(":")[2])
        with socket.create_server(("127.0.0.1", port)):
            return port
    except (OSError, ValueError, OverflowError):
        return 0


@asynccontextmanager
async def serving(port: int) -> AsyncIterator[str]:
    """Serves on 127.0.0.1 while the block runs and yields the base URL.

    Args:
        port: 0 takes a free one.

    Raises:
        OSError: the port is taken.
    """
    app = web.Application()
    for name in NAMES:
        app.router.add_get(f"/{name}", _agent)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", port)
        await site.start()
        host, bound = runner.addresses[0][:2]
        yield f"http://{host}:{bound}"
    finally:
        await runner.cleanup()


async def _agent(_request: web.Request) -> web.FileResponse:
    headers = {"Content-Type": "application/octet-stream"}
    return web.FileResponse(AGENT, headers=headers)
