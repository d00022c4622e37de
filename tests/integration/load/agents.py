"""What an agent does that waits for its registration: asks until it is told for good.

Repeating one registration with the same token, key and nonce, as plexd does, through
refusals that pass and connections that end.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Final
from uuid import UUID

import aiohttp

LONG: Final = os.environ.get("HYPOTHESIS_PROFILE") == "long"
"""Whether this run has the minutes of `make test-long`, and not those of `make test`."""

PROBLEM: Final = "application/problem+json"
PAUSE_S: Final = 0.1
"""Between two requests of one agent; a Retry-After in earnest would only make tests long."""
PATIENCE_S: Final = 300.0 if LONG else 90.0
"""Longest time until an agent is told for good: more than two restarts in a row."""

Reply = dict[str, Any]


class CutError(Exception):
    """The connection ended before an answer was there, or its answer never reached the agent."""


@dataclass
class Agents:
    """Asks for many machines and counts what they are told.

    Attributes:
        session: Its base URL is the node listener's.
        told: Answers by status, and `cut` for none.
        faults: Answers that no agent could make sense of; a test wants none.
    """

    session: aiohttp.ClientSession
    told: Counter[int | str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    async def register(self, body: bytes, *, replies_lost: int = 0) -> Reply:
        """Register a machine; a refusal that passes and a lost reply are followed by another try.

        Args:
            body: The same bytes each time.
            replies_lost: How many replies of a success never reach the agent.

        Raises:
            TimeoutError: It was not told for good in time.
            AssertionError: It was refused for good.
        """
        async with asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    status, reply = await self._ask(body, lost=replies_lost > 0)
                except CutError:
                    replies_lost -= 1
                except (aiohttp.ClientError, ConnectionError):
                    self.told["cut"] += 1
                else:
                    self.told[status] += 1
                    if status == HTTPStatus.CREATED:
                        return reply
                    assert status == HTTPStatus.SERVICE_UNAVAILABLE, reply
                await asyncio.sleep(PAUSE_S)

    async def reports(self, reply: Reply) -> bool:
        """Send a heartbeat with the key of a reply; tell whether it is that of a live node."""
        node_id = reply["node_id"]
        bearer = base64.urlsafe_b64encode(UUID(node_id).bytes + base64.b64decode(reply["nsk"]))
        beat = {
            "client_now": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
            "binary_checksum": base64.b64encode(bytes(32)).decode(),
            "binary_version": "v0.8.0",
            "nat_summary": {},
        }
        headers = {"Authorization": f"Bearer nsk_plexd_{bearer.decode()}"}
        path = f"/v1/nodes/{node_id}/heartbeat"
        async with self.session.post(path, json=beat, headers=headers) as response:
            return response.status == HTTPStatus.OK

    async def _ask(self, body: bytes, *, lost: bool) -> tuple[int, Reply]:
        headers = {"Content-Type": "application/json"}
        async with self.session.post("/v1/register", data=body, headers=headers) as response:
            if lost and response.status == HTTPStatus.CREATED:
                # The status is there, so the registration is committed; the key is not read.
                response.close()
                self.told["lost"] += 1
                raise CutError
            reply = json.loads(await response.read())
            self._check(response, reply)
            return response.status, reply

    def _check(self, response: aiohttp.ClientResponse, reply: Reply) -> None:
        if response.status == HTTPStatus.CREATED:
            return
        understood = response.content_type == PROBLEM and reply["status"] == response.status
        waits = response.headers.get("Retry-After", "").isdigit()
        if not understood or waits != (response.status == HTTPStatus.SERVICE_UNAVAILABLE):
            self.faults.append(f"{response.status} {dict(response.headers)} {reply}")


async def until(fact: Callable[[], object], *, timeout_s: float, what: str) -> None:
    """Return once a fact holds.

    Raises:
        AssertionError: It did not hold in time.
    """

    async def asked() -> object:
        return fact()

    await eventually(asked, timeout_s=timeout_s, what=what)


async def eventually(
    fact: Callable[[], Awaitable[object]], *, timeout_s: float, what: str
) -> object:
    """Return a fact once it holds that must be asked for; as `until`."""
    deadline = time.monotonic() + timeout_s
    while not (found := await fact()):
        assert time.monotonic() < deadline, f"still waiting after {timeout_s:g} s: {what}"
        await asyncio.sleep(PAUSE_S)
    return found
