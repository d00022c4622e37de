"""The controller's promises, on a cluster that is a dictionary."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dev.cloud import provider
from dev.cloud.lifecycle import Lifecycle, Timing
from dev.cloud.machine import FINALIZER
from dev.cloud.provider import Provider
from dev.cloud.store import Store
from tests.unit.dev_cloud.cluster import FakePower, InMemoryMachines

SECRET = "psb_prod_aaaa_node_bbbb"


@asynccontextmanager
async def cloud(
    root: Path, api: InMemoryMachines, power: FakePower, timing: Timing | None = None
) -> AsyncIterator[None]:
    lifecycle = Lifecycle(
        api,
        Store(root),
        power,
        timing=timing or Timing(create_s=0.0, delete_s=0.0),
        lifetime_pid=0,
    )
    async with provider.running(Provider(api, lifecycle)):
        yield


def told(root: Path, name: str) -> list[str]:
    lines = (root / "facts.jsonl").read_text().splitlines()
    facts = [json.loads(line) for line in lines]
    return [fact["fact"] for fact in facts if fact["name"] == name]


async def test_a_machine_lives_from_creation_to_its_end(tmp_path: Path) -> None:
    api, power = InMemoryMachines(), FakePower()
    api.create("web", userData="#cloud-config\n")

    async with cloud(tmp_path, api, power):
        await api.until(lambda: api.condition("web", "Ready") == ("True", "Available"))
        await api.until(lambda: "exitCode" in api.objects["web"]["status"]["atProvider"])
        claimed = api.objects["web"]["metadata"]["finalizers"]
        api.delete("web")
        await api.until(lambda: "web" not in api.objects)

    assert claimed == [FINALIZER]
    assert power.orders[0].user_data == "#cloud-config\n"
    assert (power.on, power.destroyed) == (set(), ["u-web"])
    assert told(tmp_path, "web") == [
        "created",
        "booting",
        "running",
        "document-finished",
        "delete-requested",
        "deleted",
    ]


async def test_a_refused_machine_is_never_started_and_goes_at_once(tmp_path: Path) -> None:
    api, power = InMemoryMachines(), FakePower()
    api.create("web", tags={"demo-create": "fail"})

    async with cloud(tmp_path, api, power):
        await api.until(lambda: api.condition("web", "ProvisioningFailed") is not None)
        api.delete("web")
        await api.until(lambda: "web" not in api.objects)

    assert power.orders == []
    assert told(tmp_path, "web") == ["create-failed"]
    assert [event.split(":")[0] for event in api.events] == ["web CannotReconcile"]


async def test_a_machine_that_never_comes_runs_without_its_document(tmp_path: Path) -> None:
    api, power = InMemoryMachines(), FakePower()
    api.create("web", userData="#cloud-config\n", tags={"demo-boot": "never"})

    async with cloud(tmp_path, api, power):
        await api.until(lambda: api.condition("web", "Ready") == ("True", "Available"))

    assert power.orders[0].user_data is None


async def test_a_hanging_deletion_goes_on_when_the_fault_is_taken_away(tmp_path: Path) -> None:
    api, power = InMemoryMachines(), FakePower()
    api.create("web", tags={"demo-delete": "hang"})

    async with cloud(tmp_path, api, power):
        await api.until(lambda: api.condition("web", "Ready") == ("True", "Available"))
        api.delete("web")
        await api.until(lambda: api.condition("web", "Ready") == ("False", "Deleting"))
        still_on = set(power.on)
        api.annotate("web", delete="no")
        await api.until(lambda: "web" not in api.objects)

    assert still_on == {"u-web"}


async def test_a_failing_deletion_says_so_and_is_tried_again(tmp_path: Path) -> None:
    api, power = InMemoryMachines(), FakePower()
    api.create("web", tags={"demo-delete": "fail"})

    async with cloud(tmp_path, api, power):
        await api.until(lambda: api.condition("web", "Ready") == ("True", "Available"))
        api.delete("web")
        await api.until(lambda: api.condition("web", "Synced") == ("False", "ReconcileError"))
        await api.until(lambda: told(tmp_path, "web").count("delete-failed") > 1)
        still_on = set(power.on)
        api.annotate("web", delete="no")
        await api.until(lambda: "web" not in api.objects)

    assert still_on == {"u-web"}
    assert told(tmp_path, "web")[-1] == "deleted"


async def test_a_broken_machine_delays_no_other(tmp_path: Path) -> None:
    api, power = InMemoryMachines(), FakePower()
    power.broken = {f"bad-{number}" for number in range(20)}
    for name in sorted(power.broken):
        api.create(name)

    async with cloud(tmp_path, api, power):
        await api.until(lambda: api.condition("bad-0", "Synced") == ("False", "ReconcileError"))
        api.create("good")
        await api.until(lambda: api.condition("good", "Ready") == ("True", "Available"))

    assert [order.name for order in power.orders] == ["good"]


async def test_a_restarted_provider_starts_nothing_twice(tmp_path: Path) -> None:
    api, power = InMemoryMachines(), FakePower()
    api.create("web")
    async with cloud(tmp_path, api, power):
        await api.until(lambda: api.condition("web", "Ready") == ("True", "Available"))

    async with cloud(tmp_path, api, power):
        api.delete("web")
        await api.until(lambda: "web" not in api.objects)

    assert len(power.orders) == 1
    assert told(tmp_path, "web").count("created") == 1


async def test_refused_writes_are_tried_again_and_lose_nothing(tmp_path: Path) -> None:
    api, power = InMemoryMachines(), FakePower()
    api.create("web")
    api.fail_next_writes = 3

    async with cloud(tmp_path, api, power):
        await api.until(lambda: api.condition("web", "Ready") == ("True", "Available"))

    assert told(tmp_path, "web")[:3] == ["created", "booting", "running"]


async def test_creation_and_deletion_take_the_time_they_are_told_to(tmp_path: Path) -> None:
    api, power = InMemoryMachines(), FakePower()
    api.create("web")

    async with cloud(tmp_path, api, power, Timing(create_s=3600.0, delete_s=0.0)):
        await api.until(lambda: api.condition("web", "Ready") == ("False", "Creating"))

    assert power.orders == []


async def test_the_document_reaches_no_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    api, power = InMemoryMachines(), FakePower()
    api.create("web", userData=SECRET)
    power.broken = {"web"}
    api.fail_next_writes = 2

    async with cloud(tmp_path, api, power):
        await api.until(lambda: api.condition("web", "Synced") == ("False", "ReconcileError"))

    assert "web" in caplog.text
    assert SECRET not in caplog.text
    assert SECRET not in str(api.events)
    assert SECRET not in json.dumps(api.objects["web"]["status"])
    assert SECRET not in (tmp_path / "facts.jsonl").read_text()
