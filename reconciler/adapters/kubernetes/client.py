"""One connection to one API server, in plain dicts.

Belongs here: requests, their time limits, discovery of a kind's path, and the translation
of statuses. Not here: which objects exist. Built on the official client's asyncio flavour;
its dynamic client is not used whole because its discovery caches in a shared temporary
file and its watch reads lines with a fixed bound.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from aiohttp import ClientError, ClientTimeout
from kubernetes.aio.client import ApiClient
from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.config import ConfigException

from function.contract.names import group_of

REQUEST_TIMEOUT_S: Final = 15.0
"""One call: three times what a loaded API server needs, and less than a lease."""

WATCH_SECONDS: Final = 290
"""A watch ends by itself below the five minutes at which idle proxies cut it."""

WATCH_SILENCE_S: Final = 150.0
"""A bookmark comes every minute; a stream silent for longer leads nowhere any more."""

WATCH_CONNECT_S: Final = 10.0
"""One connection attempt of a watch, TLS included."""

WATCH_LINE_MAX_BYTES: Final = 4 * 1024 * 1024
"""Longest watch event: an object is at most 1.5 MiB in etcd, managedFields included."""

MERGE: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
APPLY: Final = "application/apply-patch+yaml"
"""Server-side apply; JSON is YAML."""

JSON: Final = "application/json"
METADATA_ONLY: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
"""What to accept where an object's content is none of our business."""
_JSON_HEADERS: Final = {"Accept": JSON, "Content-Type": JSON}

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


class KubernetesClient:
    """A typed, bounded view of one API server."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api
        self._plurals: dict[tuple[str, str], str] = {}

    async def close(self) -> None:
        """Close the connections."""
        await self._api.close()  # type: ignore[no-untyped-call]  # untyped upstream

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        query: Mapping[str, str] | None = None,
        content_type: str = JSON,
        accept: str = JSON,
    ) -> Object:
        """Send one request and return the decoded answer.

        Raises:
            KubernetesError: Any answer outside 2xx.
            UnreachableError: The connection failed.
            TimeoutError: No answer within REQUEST_TIMEOUT_S.
            ValueError: A 2xx answer that is no JSON object.
        """
        attempted = f"{method.lower()} {path}"
        with _transport(attempted):
            response = await self._send(
                method, path, body=body, query=query,
                headers={"Accept": accept, "Content-Type": content_type},
                timeout=ClientTimeout(total=REQUEST_TIMEOUT_S),
            )  # fmt: skip
            payload = await response.read()
        return _decoded(payload, status=response.status, attempted=attempted)

    async def get(self, path: str, *, accept: str = JSON) -> Object | None:
        """Return an object, or as much of it as is accepted; None when it is absent."""
        try:
            return await self.request("GET", path, accept=accept)
        except KubernetesError as error:
            if error.status == 404:
                return None
            raise

    async def watch(self, path: str, *, resource_version: str) -> AsyncGenerator[Object, None]:
        """Yield watch events with bookmarks until the server ends the stream.

        Raises:
            KubernetesError: The server refused or ended the watch with an error; status
                410 asks for a new list.
            UnreachableError: The connection failed.
            TimeoutError: No connection within WATCH_CONNECT_S, or WATCH_SILENCE_S
                without a byte.
            ValueError: A line is no watch event.
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        timeout = ClientTimeout(total=None, sock_connect=WATCH_CONNECT_S, sock_read=WATCH_SILENCE_S)
        attempted = f"watch {path}"
        with _transport(attempted):
            response = await self._send("GET", path, query=query, timeout=timeout)
            raw = response.response
            try:
                if response.status != 200:
                    _decoded(await response.read(), status=response.status, attempted=attempted)
                async for line in _lines(raw.content):
                    yield _watch_event(line, attempted)
            finally:
                raw.close()

    async def path(self, api_version: str, kind: str, *, namespace: str, name: str) -> str:
        """Return the path of a namespaced object of any kind, by discovery.

        Raises:
            KubernetesError: 404 when the API server does not serve the kind.
        """
        plural = await self.plural(api_version, kind)
        return f"{group_path(api_version)}/namespaces/{namespace}/{plural}/{name}"

    async def plural(self, api_version: str, kind: str) -> str:
        """Return a kind's plural, by discovery.

        Raises:
            KubernetesError: 404 when the API server does not serve the kind.
        """
        key = (api_version, kind)
        if key not in self._plurals:
            listing = await self.request("GET", group_path(api_version))
            for item in listing.get("resources", []):
                if "/" not in item["name"]:
                    self._plurals[api_version, item["kind"]] = item["name"]
        if key not in self._plurals:
            raise KubernetesError(
                attempted=f"find {kind} in {api_version}", status=404, reason="NotFound", detail=""
            )
        return self._plurals[key]

    async def _send(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] = _JSON_HEADERS,
        timeout: ClientTimeout,  # noqa: ASYNC109 - handed to the transport, which keeps it
    ) -> Any:
        if not _PATH.fullmatch(path):
            raise KubernetesError(attempted=method, status=400, reason="InvalidPath", detail="")
        request = await self._api.param_serialize(
            method,
            path,
            query_params=list((query or {}).items()),
            header_params=dict(headers),
            body=body,
            auth_settings=["BearerToken"],
        )
        try:
            return await self._api.call_api(*request, _request_timeout=timeout)
        except ApiException as error:
            raise KubernetesError(
                attempted=f"{method.lower()} {path}",
                status=error.status or 0,
                reason=error.reason or "",
                detail="",
            ) from error


_PATH: Final = re.compile(r"(/[A-Za-z0-9][A-Za-z0-9._:-]*)+")
"""A name out of somebody's manifest must not lead to another object."""


def group_path(api_version: str) -> str:
    """Return the path of a group and version; the core group's is another."""
    return f"/apis/{api_version}" if group_of(api_version) else f"/api/{api_version}"


@contextmanager
def _transport(attempted: str) -> Iterator[None]:
    """Make one kind of error of the transport's many; some of them are no OSError.

    A token that cannot be read again counts as one: it comes back as connections do.
    """
    try:
        yield
    except TimeoutError:
        raise
    except (ClientError, ConfigException) as error:
        raise UnreachableError(attempted, type(error).__name__) from error


def _decoded(payload: bytes, *, status: int, attempted: str) -> Object:
    if 200 <= status <= 299:
        decoded = json.loads(payload) if payload else {}
        if isinstance(decoded, dict):
            return decoded
        message = f"cannot {attempted}: the answer is no object"
        raise UnreadableError(message)
    # What is between us and the API server, and its own mux, answer in plain text.
    try:
        decoded = json.loads(payload)
    except ValueError:
        decoded = {"message": payload[:ERROR_TEXT_MAX].decode(errors="replace").strip()}
    raise _refusal(decoded if isinstance(decoded, dict) else {}, status, attempted)


def _refusal(answer: Object, status: int, attempted: str) -> KubernetesError:
    details = answer.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    return KubernetesError(
        attempted=attempted,
        status=status,
        reason=str(answer.get("reason", "")),
        detail=str(answer.get("message", "")),
        causes=frozenset(str(cause.get("reason", "")) for cause in causes or ()),
    )


def _watch_event(line: bytes, attempted: str) -> Object:
    event: Object = json.loads(line)
    if not (isinstance(event, dict) and isinstance(event.get("object"), dict)):
        message = f"cannot {attempted}: a line is no watch event"
        raise UnreadableError(message)
    if event.get("type") == "ERROR":
        status = event["object"]
        raise _refusal(status, int(status.get("code", 500)), attempted)
    return event


async def _lines(content: Any) -> AsyncIterator[bytes]:
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
