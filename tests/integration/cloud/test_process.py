"""``python -m dev.cloud`` as a process, and the stand-ins that few machines need."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from dev.cloud import boot, downloads
from dev.cloud.__main__ import EXIT_NOT_ALLOWED, EXIT_ROOT_IN_USE
from dev.cloud.boot import Hypervisor, PowerOn
from tests.integration.cloud import sample_document
from tests.integration.cloud.conftest import Start
from tests.integration.cloud.platform import DEADLINE_S, until

pytestmark = pytest.mark.integration

STAND_INS = Path(boot.__file__).parent / "guest" / "bin"
REPOSITORY = Path(boot.__file__).parents[2]


@asynccontextmanager
async def cloud(root: Path) -> AsyncIterator[str]:
    """Runs the process without a cluster and yields what it serves; ends it as Ctrl-C does."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dev.cloud", "--root", str(root)),
        cwd=REPOSITORY,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(DEADLINE_S):
            said = (await process.stdout.readline()).decode().split()
        yield said[1]
    finally:
        process.send_signal(signal.SIGINT)
        async with asyncio.timeout(DEADLINE_S):
            status = await process.wait()
    assert status == 0


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )


async def test_the_agent_is_served_for_both_architectures_with_its_checksum(
    private_roots: None, tmp_path: Path
) -> None:
    async with cloud(tmp_path) as url, aiohttp.ClientSession() as session:
        remembered = (tmp_path / "downloads.url").read_text()
        served = []
        for name in downloads.NAMES:
            async with session.get(f"{url}/{name}") as reply:
                served.append(hashlib.sha256(await reply.read()).hexdigest())

    assert remembered == f"{url}\n"
    assert served == [downloads.sha256_hex()] * 2


async def test_a_restart_serves_where_rendered_documents_point(
    private_roots: None, tmp_path: Path
) -> None:
    async with cloud(tmp_path) as first:
        pass

    async with cloud(tmp_path) as second:
        pass

    assert second == first


async def test_a_root_belongs_to_one_cloud_at_a_time(private_roots: None, tmp_path: Path) -> None:
    async with cloud(tmp_path):
        other = await asyncio.to_thread(
            run, sys.executable, "-m", "dev.cloud", "--root", str(tmp_path)
        )

    assert other.returncode == EXIT_ROOT_IN_USE
    assert "another one uses" in other.stderr


def test_where_private_roots_are_not_allowed_it_says_so_and_stops(tmp_path: Path) -> None:
    command = f"exec {sys.executable} -m dev.cloud --root {tmp_path}"
    limit = "echo 0 > /proc/sys/user/max_mnt_namespaces"

    ended = run("unshare", "--user", "--map-root-user", "sh", "-c", f"{limit} && {command}")

    assert ended.returncode == EXIT_NOT_ALLOWED
    assert "cannot start the demo cloud: machines need namespaces" in ended.stderr
    assert list(tmp_path.iterdir()) == []


async def test_a_machine_ends_with_the_process_its_cloud_belongs_to(
    private_roots: None, hypervisor: Hypervisor, tmp_path: Path
) -> None:
    owner = await asyncio.create_subprocess_exec("sleep", "600")
    order = PowerOn(
        folder=tmp_path / "m",
        machine_id="i-1",
        name="m",
        user_data=None,
        lifetime_pid=owner.pid,
    )
    await asyncio.to_thread(hypervisor.power_on, order)

    owner.kill()
    await owner.wait()

    await until(lambda: not hypervisor.is_running(order.folder))


async def test_the_curl_stand_in_retries_and_fails_as_curl_does(tmp_path: Path) -> None:
    answers = [503, 200, 404]

    async def answer(_request: web.Request) -> web.Response:
        return web.Response(status=answers.pop(0), text="content")

    app = web.Application()
    app.router.add_get("/file", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/file"
        curl = (sys.executable, str(STAND_INS / "curl"), "-fsSL", "--retry-delay", "0.01")
        target = tmp_path / "file"
        got = await asyncio.to_thread(run, *curl, "--retry", "3", "-o", str(target), url)
        refused = await asyncio.to_thread(run, *curl, "--retry", "3", url)
    finally:
        await runner.cleanup()

    assert (got.returncode, target.read_text()) == (0, "content")
    assert (refused.returncode, refused.stdout, answers) == (22, "", [])


async def test_the_trust_stand_in_adds_certificates_once(
    start: Start, hypervisor: Hypervisor
) -> None:
    path = "/usr/local/bin/update-ca-certificates"
    stand_in = (STAND_INS / "update-ca-certificates").read_text()
    body = {
        "write_files": [{"path": path, "content": stand_in, "permissions": "0755"}],
        "ca_certs": {"trusted": ["CERTIFICATE ONE", "CERTIFICATE TWO"]},
        "runcmd": ["update-ca-certificates"],
    }
    folder = await asyncio.to_thread(start, sample_document.document(body))
    await until(lambda: hypervisor.exit_code(folder) is not None)

    bundle = (folder / "root" / "etc" / "ssl" / "certs" / "ca-certificates.crt").read_text()
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    assert events[-1]["faults"] == []
    assert bundle.count("CERTIFICATE ONE") == bundle.count("CERTIFICATE TWO") == 1


def test_the_agent_is_one_executable_file() -> None:
    named_as_published = downloads.AGENT.with_suffix("")

    assert named_as_published.resolve() == downloads.AGENT
    assert os.access(named_as_published, os.X_OK)
    assert run(str(named_as_published), "--version").stdout.startswith("plexd ")
