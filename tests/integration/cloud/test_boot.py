"""Machines boot the document they receive, in a root of their own, and go without a trace."""

from __future__ import annotations

import asyncio
import base64
import json
import stat
import uuid
from pathlib import Path
from typing import Any

import psutil
import pytest

from dev.cloud import boot, downloads
from dev.cloud.boot import Hypervisor
from tests.integration.cloud import sample_document
from tests.integration.cloud.conftest import Start, on_host
from tests.integration.cloud.platform import Platform, platform, self_signed, until

pytestmark = pytest.mark.integration

TOKEN = "psb_prod_ae3tt3nqmfrwgzlgm5ugs2tlnq_node_abcdefghijklmnopqrstuvwxyz"
PROJECT = str(uuid.UUID(int=1))


def outcome(folder: Path) -> Any:
    lines = (folder / "events.jsonl").read_text().splitlines()
    return next(event for event in map(json.loads, lines) if event["event"] == "document")


def finished(hypervisor: Hypervisor, folder: Path) -> bool:
    return hypervisor.exit_code(folder) is not None


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def processes_of(folder: Path) -> list[psutil.Process]:
    """The launcher and everything below it."""
    launcher = psutil.Process(int((folder / "lock").read_text()))
    return [launcher, *launcher.children(recursive=True)]


def full_document(api: Platform, url: str) -> str:
    return sample_document.upstream(
        api=api.url,
        download_url=url,
        sha256=downloads.sha256_hex(),
        token=TOKEN,
        project_id=PROJECT,
        handle="pr-1",
    )


async def test_the_full_document_enrols_a_node_that_heartbeats_and_leaves_nothing(
    start: Start, hypervisor: Hypervisor
) -> None:
    async with platform() as api, downloads.serving(0) as url:
        api.answers = [503, 429]
        folder = await asyncio.to_thread(start, full_document(api, url))
        await until(lambda: finished(hypervisor, folder) and bool(api.heartbeats))
        alive = processes_of(folder)
        await asyncio.to_thread(hypervisor.power_off, folder)

    assert outcome(folder)["exit_codes"] == [0, 0, 0, 0]
    etc, data = folder / "root" / "etc", folder / "root" / "var" / "lib" / "plexd"
    assert not (etc / "plexd" / "bootstrap-token").exists()
    assert mode(etc / "plexd" / "environment") == 0o600
    assert mode(etc / "plexd" / "install-plexd.sh") == 0o755
    assert mode(etc / "systemd" / "system" / "plexd.service") == 0o644
    assert mode(data) == 0o700
    assert {path.name: mode(path) for path in data.iterdir()} == dict.fromkeys(
        ("identity.json", "node_secret_key", "private_key", "signing_public_key"), 0o600
    )
    assert (folder / "usr-local" / "bin" / "plexd").read_bytes() == downloads.AGENT.read_bytes()
    assert len(alive) >= 3
    assert not any(process.is_running() for process in alive)
    assert on_host("/etc/plexd", "/var/lib/plexd", "/usr/local/bin/plexd") == []


async def test_what_the_node_says_is_what_plexd_says(start: Start) -> None:
    async with platform() as api, downloads.serving(0) as url:
        api.answers = [500]
        await asyncio.to_thread(start, full_document(api, url))
        await until(lambda: bool(api.heartbeats and api.states))

    first, second = api.registrations
    assert first == second
    assert set(first) == {
        "project_id",
        "resource_handle",
        "bootstrap_token",
        "nonce",
        "public_key",
    }
    assert (first["project_id"], first["resource_handle"]) == (PROJECT, "pr-1")
    assert first["bootstrap_token"] == TOKEN
    assert uuid.UUID(first["nonce"]).version == 4
    assert len(first["public_key"]) == 44
    node, headers, heartbeat = api.heartbeats[0]
    payload = headers["Authorization"].removeprefix("Bearer nsk_plexd_")
    assert base64.urlsafe_b64decode(payload) == uuid.UUID(int=7).bytes + b"n" * 32
    assert node == api.node_id
    assert set(heartbeat) == {"client_now", "binary_checksum", "binary_version", "nat_summary"}
    assert base64.b64decode(heartbeat["binary_checksum"]).hex() == downloads.sha256_hex()
    assert api.states[0]["Authorization"] == headers["Authorization"]


async def test_the_token_is_in_no_log(start: Start, hypervisor: Hypervisor) -> None:
    async with platform() as api, downloads.serving(0) as url:
        api.answers = [403]
        folder = await asyncio.to_thread(start, full_document(api, url))
        await until(lambda: finished(hypervisor, folder))

    logs = [folder / "cloud-init-output.log", *(folder / "root" / "var" / "log").iterdir()]
    text = "".join(path.read_text() for path in logs)
    assert "registration refused: 403 token_consumed" in text
    assert TOKEN not in text + (folder / "events.jsonl").read_text()
    assert {mode(path) for path in (*logs, folder / "user-data")} == {0o600}
    assert outcome(folder)["exit_codes"][1] == 1


async def test_a_node_trusts_the_authority_that_its_document_brings(
    start: Start, hypervisor: Hypervisor, tmp_path: Path
) -> None:
    context, pem = self_signed(tmp_path)
    async with platform(context) as api, downloads.serving(0) as url:
        document = full_document(api, url)
        trusting = document + "ca_certs:\n  trusted:\n    - |\n"
        trusting += "".join(f"      {line}\n" for line in pem.splitlines())
        doubting = await asyncio.to_thread(start, document.replace("set -a;", "exit 9;"))
        await until(lambda: finished(hypervisor, doubting))
        folder = await asyncio.to_thread(start, trusting, name="web-2")
        await until(lambda: finished(hypervisor, folder))

    assert outcome(folder) == outcome(folder) | {"exit_codes": [0, 0, 0, 0], "faults": []}
    assert len(api.registrations) == 1
    bundle = folder / "root" / "etc" / "ssl" / "certs" / "ca-certificates.crt"
    assert pem.strip() in bundle.read_text()


async def test_the_seeds_literal_form_runs_and_says_what_it_lacks(
    start: Start, hypervisor: Hypervisor
) -> None:
    async with platform() as api, downloads.serving(0) as url:
        document = sample_document.seed_form(api=api.url, download_url=url, token=TOKEN)
        folder = await asyncio.to_thread(start, document)
        await until(lambda: finished(hypervisor, folder))

    assert outcome(folder)["exit_codes"] == [0, 0, 2]
    assert "PLEXD_PROJECT_ID" in (folder / "cloud-init-output.log").read_text()
    assert api.registrations == []


def test_preflight_names_the_step_that_is_not_allowed() -> None:
    limit = "echo 0 > /proc/sys/user/max_mnt_namespaces"
    check = " ".join(boot._LAUNCHER)
    command = ("unshare", "--user", "--map-root-user", "sh", "-c", f"{limit} && {check} --check")

    refused = boot.preflight(command)

    assert not refused.allowed
    assert refused.detail.startswith("cannot ")
