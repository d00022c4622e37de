"""Machines of a cluster that is a dictionary, and power that is a set.

The fake keeps what the provider relies on: resource versions that refuse stale writes, deletion
that waits for finalizers, a watch from the listed version on.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from kubernetes.aio.client import ApiException

from dev.cloud.boot import BootError, Hypervisor, PowerOn
from dev.cloud.kube import Object
from dev.cloud.machine import Machine

# Two busy cores; the facts waited for take milliseconds.
DEADLINE_S = 10.0


class InMemoryMachines:
    """Implements ``MachineApi``."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.events: list[str] = []
        self.fail_next_writes = 0
        self._versions = itertools.count(1)
        self._log: list[tuple[int, str, dict[str, Any]]] = []
        self._news = asyncio.Event()

    def create(self, name: str, *, annotations: dict[str, str] | None = None, **spec: Any) -> None:
        metadata = {
            "name": name,
            "namespace": "ns",
            "uid": f"u-{name}",
            "generation": 1,
            "annotations": annotations or {},
        }
        self._put("ADDED", {"metadata": metadata, "spec": {"forProvider": spec}})

    def delete(self, name: str) -> None:
        obj = copy.deepcopy(self.objects[name])
        obj["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        self._put("MODIFIED", obj)

    def annotate(self, name: str, **annotations: str) -> None:
        obj = copy.deepcopy(self.objects[name])
        named = {f"cloud.demo.plexsphere.com/{key}": value for key, value in annotations.items()}
        obj["metadata"]["annotations"] |= named
        self._put("MODIFIED", obj)

    def condition(self, name: str, kind: str) -> tuple[str, str] | None:
        status = self.objects.get(name, {}).get("status", {})
        found = [item for item in status.get("conditions", []) if item["type"] == kind]
        return (found[0]["status"], found[0]["reason"]) if found else None

    async def until(self, fact: Callable[[], bool]) -> None:
        """Waits for ``fact``, which only changes when an object does or a process moves."""
        async with asyncio.timeout(DEADLINE_S):
            while not fact():  # noqa: ASYNC110 - a fact may come from a thread or the disk
                await asyncio.sleep(0.01)

    async def list(self) -> tuple[list[Object], str]:
        version = self._log[-1][0] if self._log else 0
        return [copy.deepcopy(obj) for obj in self.objects.values()], str(version)

    async def watch(self, version: str) -> AsyncIterator[tuple[str, Object]]:
        seen = int(version)
        while True:
            self._news.clear()
            for number, kind, obj in list(self._log):
                if number > seen:
                    seen = number
                    yield kind, copy.deepcopy(obj)
            await self._news.wait()

    async def patch(self, machine: Machine, body: Object) -> Object:
        obj = self._writable(machine)
        metadata = dict(body["metadata"])
        if metadata.pop("resourceVersion") != obj["metadata"]["resourceVersion"]:
            raise ApiException(status=409)
        obj["metadata"]["annotations"] |= metadata.pop("annotations", {})
        obj["metadata"] |= metadata
        gone = "deletionTimestamp" in obj["metadata"] and not obj["metadata"]["finalizers"]
        return self._put("DELETED" if gone else "MODIFIED", obj)

    async def patch_status(self, machine: Machine, status: Object) -> Object:
        obj = self._writable(machine)
        obj["status"] = dict(status)
        return self._put("MODIFIED", obj)

    async def event(self, machine: Machine, reason: str, message: str) -> None:
        self.events.append(f"{machine.name} {reason}: {message}")

    def _writable(self, machine: Machine) -> dict[str, Any]:
        if self.fail_next_writes:
            self.fail_next_writes -= 1
            raise ApiException(status=500)
        if machine.name not in self.objects:
            raise ApiException(status=404)
        return copy.deepcopy(self.objects[machine.name])

    def _put(self, kind: str, obj: dict[str, Any]) -> Object:
        number = next(self._versions)
        obj["metadata"]["resourceVersion"] = str(number)
        self.objects[obj["metadata"]["name"]] = obj
        if kind == "DELETED":
            del self.objects[obj["metadata"]["name"]]
        self._log.append((number, kind, copy.deepcopy(obj)))
        self._news.set()
        return copy.deepcopy(obj)


class FakePower(Hypervisor):
    """Machines that are names in a set; ``broken`` ones never come up."""

    def __init__(self) -> None:
        super().__init__()
        self.on: set[str] = set()
        self.orders: list[PowerOn] = []
        self.destroyed: list[str] = []
        self.broken: set[str] = set()

    def power_on(self, order: PowerOn) -> None:
        if order.name in self.broken:
            message = f"cannot power machine {order.name!r} on"
            raise BootError(message)
        if order.folder.name not in self.on:
            self.orders.append(order)
        self.on.add(order.folder.name)

    def power_off(self, folder: Path) -> None:
        self.on.discard(folder.name)

    def is_running(self, folder: Path) -> bool:
        return folder.name in self.on

    def destroy(self, folder: Path) -> None:
        self.destroyed.append(folder.name)

    def exit_code(self, folder: Path) -> int | None:
        return 0 if any(order.folder == folder for order in self.orders) else None
