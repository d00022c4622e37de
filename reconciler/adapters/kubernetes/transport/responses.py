"""Parses an API server's responses: objects, watch events, refusals.

Decoding with limits, and the errors a caller meets.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, Final

from aiohttp import ClientError
from kubernetes.aio.config import ConfigException

WATCH_LINE_MAX_BYTES: Final = 4 * 1024 * 1024
"""Longest watch event: an object is at most 1.5 MiB in etcd, managedFields included."""

ERROR_TEXT_MAX: Final = 512
"""How much of a plain-text refusal is quoted, in bytes."""

Object = dict[str, Any]


class KubernetesError(Exception):
    """An API server's refusal that the caller branches on.

    Attributes:
        status: The HTTP status.
        reason: The Status object's reason, for example AlreadyExists.
        causes: The reasons in its details, for example NamespaceTerminating.
    """

    def __init__(
        self,
        *,
        attempted: str,
        status: int,
        reason: str,
        detail: str,
        causes: frozenset[str] = frozenset(),
    ) -> None:
        self.status = status
        self.reason = reason
        self.causes = causes
        super().__init__(f"cannot {attempted}: {status} {reason}: {detail[:512]}")


class UnreachableError(ConnectionError):
    """The connection to an API server failed; nothing is known about what was asked."""

    def __init__(self, attempted: str, fault: str) -> None:
        super().__init__(f"cannot {attempted}: connection failed: {fault}")


class UnreadableError(ValueError):
    """An answer that is no Kubernetes object."""


@contextmanager
def transport(attempted: str) -> Iterator[None]:
    """Make one kind of error of the transport's many; some of them are no OSError.

    A token that cannot be read again counts as one: it comes back as connections do.
    """
    try:
        yield
    except TimeoutError:
        raise
    except (ClientError, ConfigException) as error:
        raise UnreachableError(attempted, type(error).__name__) from error


def decoded(payload: bytes, *, status: int, attempted: str) -> Object:
    """Return the object of an answer.

    Raises:
        KubernetesError: Its status is outside 2xx.
        UnreadableError: It is no object.
    """
    if 200 <= status <= 299:
        found = json.loads(payload) if payload else {}
        if isinstance(found, dict):
            return found
        message = f"cannot {attempted}: the response is not a JSON object"
        raise UnreadableError(message)
    # What is between us and the API server, and its own mux, answer in plain text.
    try:
        found = json.loads(payload)
    except ValueError:
        found = {"message": payload[:ERROR_TEXT_MAX].decode(errors="replace").strip()}
    raise refusal(found if isinstance(found, dict) else {}, status, attempted)


def refusal(answer: Object, status: int, attempted: str) -> KubernetesError:
    """Return the error that a Status object tells of."""
    details = answer.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    return KubernetesError(
        attempted=attempted,
        status=status,
        reason=str(answer.get("reason", "")),
        detail=str(answer.get("message", "")),
        causes=frozenset(str(cause.get("reason", "")) for cause in causes or ()),
    )


def watch_event(line: bytes, attempted: str) -> Object:
    """Return the event of one line.

    Raises:
        KubernetesError: It ends the watch with an error.
        UnreadableError: It is no watch event.
    """
    event: Object = json.loads(line)
    if not (isinstance(event, dict) and isinstance(event.get("object"), dict)):
        message = f"cannot {attempted}: a line is not a watch event"
        raise UnreadableError(message)
    if event.get("type") == "ERROR":
        status = event["object"]
        raise refusal(status, int(status.get("code", 500)), attempted)
    return event


async def lines(content: Any) -> AsyncIterator[bytes]:
    """Yield the lines of a stream without their ends.

    Raises:
        KubernetesError: One is longer than WATCH_LINE_MAX_BYTES.
    """
    buffer = bytearray()
    async for chunk in content.iter_any():
        buffer += chunk
        while (end := buffer.find(b"\n")) >= 0:
            line = bytes(buffer[:end])
            del buffer[: end + 1]
            if line:
                yield line
        if len(buffer) > WATCH_LINE_MAX_BYTES:
            raise KubernetesError(
                attempted="read watch event", status=500, reason="TooLarge", detail="line too long"
            )
