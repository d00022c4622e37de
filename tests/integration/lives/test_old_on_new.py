"""The program of the version before, on this version's schema."""

from __future__ import annotations

import asyncio
import io
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, LiteralString

import aiohttp
import asyncpg
import pytest

from dev.controlplane import ControlPlane
from dev.kube import RefusedError
from dev.stack import RECONCILER_ACCOUNT, ROOT
from reconciler.adapters.kubernetes.namespaces.project_rights import ROLE
from reconciler.adapters.postgres.connection import migrate
from tests.fakes.databases import empty_database
from tests.integration.lives.life import Life
from tests.integration.load.agents import Agents
from tests.integration.load.stage import Broker, cluster_settings, furnished

BEFORE: Final = "1c6168e64b49f1fa168dbf5d943fdbd12e1f9720"
"""The last commit of the version before; a release sets it anew (docs/operations/upgrade.md)."""
BEFORE_REVISION: Final = "0036"
ARCHIVE_TIMEOUT_S: Final = 60.0

GAPS: Final[LiteralString] = """
SELECT aggregate_id FROM plexsphere.outbox_events GROUP BY aggregate_id
HAVING count(*) <> max(aggregate_sequence) OR min(aggregate_sequence) <> 1
"""
TOLD: Final[LiteralString] = """
SELECT event_type FROM plexsphere.outbox_events
WHERE aggregate_type = 'ProvisionedResource' ORDER BY aggregate_id, aggregate_sequence
"""
LIFE: Final = [
    f"broker.ProvisionedResource{step}" for step in ("Requested", "Ready", "Deleting", "Deleted")
]

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def program_before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Unpack the program of the version before."""
    git = shutil.which("git")
    if git is None:
        pytest.skip("there is no git to take the version before from")
    archive = subprocess.run(
        [git, "-C", str(ROOT), "archive", "--format=tar", BEFORE, "function", "reconciler"],
        capture_output=True,
        timeout=ARCHIVE_TIMEOUT_S,
        check=False,
    )
    if archive.returncode != 0:
        pytest.skip(f"this clone has no commit {BEFORE[:7]}, the version before")
    folder = tmp_path_factory.mktemp("version-before")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder


@pytest.fixture
def dsn() -> Iterator[str]:
    with empty_database() as dsn:
        yield dsn


@pytest.fixture
def rights_of_before(control_plane: ControlPlane) -> Iterator[Callable[[], None]]:
    """Give the account its rights in Projects everywhere, as it had them; answer what ends it."""
    api, name = "rbac.authorization.k8s.io", "rights-of-before"
    account = {"kind": "ServiceAccount", "name": RECONCILER_ACCOUNT[1]}
    control_plane.apply(
        {
            "apiVersion": f"{api}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": ROLE},
            "subjects": [{**account, "namespace": RECONCILER_ACCOUNT[0]}],
        }
    )

    def end() -> None:
        with suppress(RefusedError):
            control_plane.cluster.delete(f"{api}/v1", "ClusterRoleBinding", name)

    yield end
    end()


async def test_f07_the_version_before_goes_on_while_the_schema_is_brought_up_beneath_it(
    control_plane: ControlPlane,
    tmp_path: Path,
    program_before: Path,
    dsn: str,
    rights_of_before: Callable[[], None],
) -> None:
    settings = {**cluster_settings(control_plane), "PLEXSPHERE_DSN": dsn}
    old = Broker(tmp_path / "old", {**settings, "PYTHONPATH": str(program_before)})
    new = Broker(tmp_path / "new", settings)
    async with (
        furnished(control_plane, old) as stage,
        aiohttp.ClientSession(old.node_url) as at_old,
        aiohttp.ClientSession(new.node_url) as at_new,
    ):
        assert await migrate.current(dsn) == BEFORE_REVISION
        begun_before = await Life.begun(stage, "begun-before")
        await migrate.migrate(dsn)
        old_agents = Agents(at_old)
        await begun_before.registers(old_agents)
        begun_after = await Life.begun(stage, "begun-after")
        await begun_after.registers(old_agents)
        await begun_before.ends()
        old.assert_running()
        await asyncio.to_thread(old.stop)

        # The order of an upgrade: what takes rights away comes last.
        await asyncio.to_thread(new.start)
        await asyncio.to_thread(rights_of_before)
        new_agents = Agents(at_new)
        is_known = await new_agents.reports(begun_after.reply)
        await begun_after.ends()
        new.assert_running()
        await asyncio.to_thread(new.stop)
    connection = await asyncpg.connect(dsn)
    gaps, told = await connection.fetch(GAPS), await connection.fetch(TOLD)
    await connection.close()

    assert is_known
    assert gaps == []
    assert [row["event_type"] for row in told] == [*LIFE, *LIFE]
