"""The order and the limits of what a document does, and of what a machine may touch."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from dev.cloud.boot import Hypervisor
from tests.integration.cloud import sample_document
from tests.integration.cloud.conftest import Start, on_host
from tests.integration.cloud.platform import DEADLINE_S, until

pytestmark = pytest.mark.integration

UNIT = """[Service]
ExecStart=/bin/sh -c 'echo "$WORD" >> /var/lib/ticks; exec sleep ${NAP}'
Environment=WORD=one NAP=600
Restart=always
RestartSec=0.1
[Install]
WantedBy=multi-user.target
"""


async def ran(start: Start, hypervisor: Hypervisor, body: Mapping[str, object]) -> tuple[Path, Any]:
    """Boots ``body`` and answers the machine's folder with the document's outcome."""
    folder = await asyncio.to_thread(start, sample_document.document(body))
    await until(lambda: hypervisor.exit_code(folder) is not None)
    lines = (folder / "events.jsonl").read_text().splitlines()
    return folder, next(event for event in map(json.loads, lines) if event["event"] == "document")


def output(folder: Path) -> list[str]:
    return (folder / "cloud-init-output.log").read_text().splitlines()


async def test_commands_run_in_order_share_variables_and_go_on_after_a_failure(
    start: Start, hypervisor: Hypervisor
) -> None:
    body = {"runcmd": ["X=shared", "false", ["sh", "-c", "exit 7"], "echo $X", ["echo", "$X"]]}

    folder, outcome = await ran(start, hypervisor, body)

    assert outcome["exit_codes"] == [0, 1, 7, 0, 0]
    assert outcome["exit_code"] == 1
    assert output(folder) == ["shared", "$X"]


async def test_a_command_that_ends_the_script_is_recorded_with_what_it_kept_from_running(
    start: Start, hypervisor: Hypervisor
) -> None:
    _, outcome = await ran(start, hypervisor, {"runcmd": ["true", "exit 5", "true"]})

    assert outcome["exit_codes"] == [0, 5, None]
    assert outcome["faults"] == ["runcmd[1]: ended the script with 5"]


async def test_files_come_before_commands_deferred_ones_too_and_appending_appends(
    start: Start, hypervisor: Hypervisor
) -> None:
    files = [
        {"path": "/etc/motd", "content": "last\n", "append": True, "defer": True},
        {"path": "/etc/motd", "content": "first\n", "permissions": "0640"},
        {"path": "/usr/lib/forbidden", "content": "x"},
        {"path": "/etc/whose", "content": "x", "owner": "nobody-knows"},
    ]

    folder, outcome = await ran(
        start, hypervisor, {"write_files": files, "runcmd": ["cat /etc/motd"]}
    )

    assert output(folder) == ["first", "last"]
    assert outcome["files"] == 2
    assert outcome["faults"] == [
        "write_files[2]: cannot write: Read-only file system",
        "write_files[3]: owner is not known",
    ]
    assert on_host("/usr/lib/forbidden") == []


async def test_a_machine_sees_its_own_processes_name_and_devices_only(
    start: Start, hypervisor: Hypervisor
) -> None:
    commands = [
        "hostname",
        "echo $$",
        "ls /dev | sort | xargs",
        "test ! -e /sys/kernel",
        "exec 2> /dev/null",
        "(echo 1 > /proc/sys/kernel/printk)",
        "mount -t tmpfs none /mnt",
        "touch /usr/bin/x",
    ]

    folder, outcome = await ran(start, hypervisor, {"runcmd": commands})

    name, pid, devices = output(folder)
    assert name == "web-1"
    assert int(pid) < 50
    assert devices == "fd full null random stderr stdin stdout tty urandom zero"
    assert [code == 0 for code in outcome["exit_codes"]] == [True] * 5 + [False] * 3


async def test_a_service_is_restarted_and_stopped(start: Start, hypervisor: Hypervisor) -> None:
    path = "/etc/systemd/system/tick.service"
    body = {
        "write_files": [{"path": path, "content": UNIT.replace("NAP=600", "NAP=0")}],
        "runcmd": [
            "systemctl daemon-reload",
            "systemctl start tick",
            "for i in $(seq 100); do [ $(wc -l < /var/lib/ticks) -gt 1 ] && break; sleep 0.1; done",
            "systemctl stop tick",
            "systemctl is-active tick",
            "systemctl start absent",
            "systemctl frobnicate tick",
        ],
    }

    folder, outcome = await ran(start, hypervisor, body)

    assert outcome["exit_codes"] == [0, 0, 0, 0, 3, 5, 1]
    assert (folder / "root" / "var" / "lib" / "ticks").read_text().startswith("one\none\n")


async def test_a_document_runs_once_and_enabled_services_at_every_power_on(
    start: Start, hypervisor: Hypervisor
) -> None:
    body = {
        "write_files": [{"path": "/etc/systemd/system/tick.service", "content": UNIT}],
        "runcmd": ["echo booted", "systemctl enable --now tick.service"],
    }
    document = sample_document.document(body)
    folder, _ = await ran(start, hypervisor, body)
    ticks = folder / "root" / "var" / "lib" / "ticks"
    await until(lambda: ticks.exists() and ticks.read_text() == "one\n")
    await asyncio.to_thread(hypervisor.power_off, folder)

    await asyncio.to_thread(start, document)
    await until(lambda: ticks.read_text() == "one\none\n")

    assert output(folder).count("booted") == 1


async def test_a_machine_without_its_document_runs_and_writes_nothing(
    start: Start, hypervisor: Hypervisor
) -> None:
    folder = await asyncio.to_thread(start, None)

    assert hypervisor.is_running(folder)
    assert hypervisor.exit_code(folder) is None
    assert not (folder / "root" / "var" / "lib" / "cloud").exists()


async def test_a_machine_ends_with_its_keeper_however_that_ends(
    start: Start, hypervisor: Hypervisor
) -> None:
    folder, _ = await ran(start, hypervisor, {"runcmd": ["sleep 600 &"]})
    keeper = psutil.Process(int((folder / "lock").read_text()))
    below = keeper.children(recursive=True)

    keeper.kill()
    await until(lambda: not hypervisor.is_running(folder))

    assert len(below) == 2
    _, alive = await asyncio.to_thread(psutil.wait_procs, below, DEADLINE_S)
    assert alive == []


async def test_another_hypervisor_finds_and_ends_a_machine(start: Start) -> None:
    folder = await asyncio.to_thread(start, None)
    restarted = Hypervisor()

    found = restarted.is_running(folder)
    await asyncio.to_thread(restarted.power_off, folder)

    assert found
    assert not restarted.is_running(folder)


async def test_destroying_removes_the_root_and_the_document_and_keeps_the_log(
    start: Start, hypervisor: Hypervisor
) -> None:
    body = {"runcmd": ["mkdir -p /var/lib/closed/inner; chmod 0 /var/lib/closed", "echo said"]}
    folder, _ = await ran(start, hypervisor, body)
    await asyncio.to_thread(hypervisor.power_off, folder)

    hypervisor.destroy(folder)
    hypervisor.destroy(folder)

    assert not {"root", "usr-local", "user-data"} & set(os.listdir(folder))
    assert output(folder) == ["said"]
