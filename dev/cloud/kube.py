"""What the provider asks of an API server: a port, and its adapter on ``kubernetes.aio``.

Objects travel as plain mappings. Failures stay what the client raises (``ApiException``,
``aiohttp.ClientError``); who calls decides what they mean. Only ``provider`` and ``lifecycle`` use
the port, only ``__main__`` the adapter.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from kubernetes.aio import client, config, watch

from dev.cloud.machine import GROUP, PLURAL, VERSION, Machine

Object = Mapping[str, Any]

# One request on loopback takes milliseconds; a busy two-core machine needs seconds.
_REQUEST_TIMEOUT_S = 30.0
# The server ends a watch after this, and the client starts the next one where it ended.
_WATCH_S = 240


class MachineApi(Protocol):
    """The Machines of one cluster."""

    async def list(self) -> tuple[list[Object], str]:
        """Answers every Machine and the version to watch from."""
        ...

    def watch(self, version: str) -> AsyncIterator[tuple[str, Object]]:
        """Yields event types (``ADDED``, ``MODIFIED``, ``DELETED``) with objects, then ends."""
        ...

    async def patch(self, machine: Machine, body: Object) -> Object:
        """Merges ``body`` into a Machine and answers it."""
        ...

    async def patch_status(self, machine: Machine, status: Object) -> Object:
        """Replaces the status of a Machine and answers it."""
        ...

    async def event(self, machine: Machine, reason: str, message: str) -> None:
        """Leaves a warning for people."""
        ...


class KubernetesMachineApi:
    """The adapter; its client needs the rights of ``rbac.yaml`` and no more."""

    def __init__(self, api: client.ApiClient) -> None:
        self._custom = client.CustomObjectsApi(api)
        self._core = client.CoreV1Api(api)

    async def list(self) -> tuple[list[Object], str]:
        found: Any = await self._custom.list_custom_object_for_all_namespaces(
            GROUP, VERSION, PLURAL, _request_timeout=_REQUEST_TIMEOUT_S
        )
        return list(found["items"]), found["metadata"]["resourceVersion"]

    async def watch(self, version: str) -> AsyncIterator[tuple[str, Object]]:
        async with watch.Watch() as watcher:  # type: ignore[no-untyped-call] # untyped upstream
            stream = watcher.stream(
                self._custom.list_custom_object_for_all_namespaces,
                GROUP,
                VERSION,
                PLURAL,
                resource_version=version,
                allow_watch_bookmarks=True,
                timeout_seconds=_WATCH_S,
                _request_timeout=_WATCH_S + _REQUEST_TIMEOUT_S,
            )
            async for event in stream:
                yield event["type"], event["raw_object"]

    async def patch(self, machine: Machine, body: Object) -> Object:
        patched: Any = await self._custom.patch_namespaced_custom_object(
            GROUP,
            VERSION,
            machine.namespace,
            PLURAL,
            machine.name,
            dict(body),
            _request_timeout=_REQUEST_TIMEOUT_S,
        )
        return dict(patched)

    async def patch_status(self, machine: Machine, status: Object) -> Object:
        patched: Any = await self._custom.patch_namespaced_custom_object_status(
            GROUP,
            VERSION,
            machine.namespace,
            PLURAL,
            machine.name,
            # The uid makes a patch that comes too late for its object miss one of the same name.
            {"metadata": {"uid": machine.uid}, "status": status},
            _request_timeout=_REQUEST_TIMEOUT_S,
        )
        return dict(patched)

    async def event(self, machine: Machine, reason: str, message: str) -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        body: Any = {
            "metadata": {"generateName": f"{machine.name}.", "namespace": machine.namespace},
            "involvedObject": {
                "apiVersion": f"{GROUP}/{VERSION}",
                "kind": "Machine",
                "namespace": machine.namespace,
                "name": machine.name,
                "uid": machine.uid,
            },
            "type": "Warning",
            "reason": reason,
            "message": message,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "source": {"component": "demo-cloud"},
        }
        await self._core.create_namespaced_event(
            machine.namespace, body, _request_timeout=_REQUEST_TIMEOUT_S
        )


@asynccontextmanager
async def connect(kubeconfig: Path) -> AsyncIterator[KubernetesMachineApi]:
    """Opens a client on ``kubeconfig`` and closes it at the end."""
    api = await config.new_client_from_config(  # type: ignore[no-untyped-call] # untyped upstream
        config_file=str(kubeconfig), persist_config=False
    )
    async with api:
        yield KubernetesMachineApi(api)
