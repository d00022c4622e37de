"""One connection to one API server, in plain dicts.

Requests, their time limits, discovery of a kind's path, and the translation of statuses.
Built on the official client's asyncio flavour; its dynamic client is not used whole because
its discovery caches in a shared temporary file and its watch reads lines with a fixed
bound.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, Final

from aiohttp import ClientTimeout
from kubernetes.aio.client import ApiClient
from kubernetes.aio.client.exceptions import ApiException

from function.contract.names import group_of
from reconciler.adapters.kubernetes.transport.responses import (
    ERROR_TEXT_MAX,
    WATCH_LINE_MAX_BYTES,
    KubernetesError,
    Object,
    UnreachableError,
    UnreadableError,
    decoded,
    lines,
    transport,
    watch_event,
)

__all__ = [
    "APPLY",
    "ERROR_TEXT_MAX",
    "JSON",
    "JSON_PATCH",
    "MERGE",
    "METADATA_LIST",
    "METADATA_ONLY",
    "WATCH_LINE_MAX_BYTES",
    "KubernetesClient",
    "KubernetesError",
    "Object",
    "UnreachableError",
    "UnreadableError",
    "group_path",
]

REQUEST_TIMEOUT_S: Final = 15.0
"""One call: three times what a loaded API server needs. It may outlast the lease it was begun
under: what each write carries, and no clock, makes a late one harmless."""

WATCH_SECONDS: Final = 290
"""A watch ends by itself below the five minutes at which idle proxies cut it."""

WATCH_SILENCE_S: Final = 90.0
"""A bookmark comes every minute; a stream silent for longer leads nowhere any more. It is given
up, and a list made, before the cache counts as stale (`domain.guard.circuit_breaker.SILENCE_S`)."""

WATCH_CONNECT_S: Final = 10.0
"""One connection attempt of a watch, TLS included."""

MERGE: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
APPLY: Final = "application/apply-patch+yaml"
"""Server-side apply; JSON is YAML."""

JSON: Final = "application/json"
METADATA_ONLY: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST: Final = METADATA_ONLY.replace("ObjectMetadata", "ObjectMetadataList")
"""What to accept where an object's content is none of our business, or those of a list."""
_JSON_HEADERS: Final = {"Accept": JSON, "Content-Type": JSON}


class KubernetesClient:
    """A typed, bounded view of one API server.

    Attributes:
        on_answer: Hears of each request whether the API server answered it, with a status
            below 500.
    """

    def __init__(self, api: ApiClient) -> None:
        self._api = api
        self._plurals: dict[tuple[str, str], str] = {}
        self.on_answer: Callable[[bool], None] = _unheard

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
        well = False
        try:
            with transport(attempted):
                response = await self._send(
                    method, path, body=body, query=query,
                    headers={"Accept": accept, "Content-Type": content_type},
                    timeout=ClientTimeout(total=REQUEST_TIMEOUT_S),
                )  # fmt: skip
                payload = await response.read()
            well = response.status < 500
        finally:
            self.on_answer(well)
        return decoded(payload, status=response.status, attempted=attempted)

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
        with transport(attempted):
            response = await self._send("GET", path, query=query, timeout=timeout)
            raw = response.response
            try:
                if response.status != 200:
                    decoded(await response.read(), status=response.status, attempted=attempted)
                async for line in lines(raw.content):
                    yield watch_event(line, attempted)
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


def _unheard(_well: bool) -> None:  # noqa: FBT001 - the shape of `on_answer`
    return


def group_path(api_version: str) -> str:
    """Return the path of a group and version; the core group's is another."""
    return f"/apis/{api_version}" if group_of(api_version) else f"/api/{api_version}"
