"""Every way to delete something, from every phase, with every crash: the cells of one table.

How a node comes to stand in each phase, and what must be true of every cell in the end.
Source: seed 001 "Deletion state machine"; issue 6, line 7c.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum, unique
from functools import partial
from typing import Final

import asyncpg
from kubernetes.client.exceptions import ApiException

from dev.stack import Stack
from function.contract.strategy import Phase
from tests.e2e.conftest import DELAYS, delayed
from tests.e2e.world import (
    API,
    CLOUD_API,
    PROJECT,
    Node,
    aggregate,
    may_have_deleted,
    wait_for,
)

LONG_S: Final = 280.0
"""A step of a life beside twenty others on two cores."""


@unique
class Way(StrEnum):
    """Who deletes what; the last step of each leaves nothing wanted."""

    BACKGROUND = "background"
    FOREGROUND = "foreground"
    ORPHAN = "orphan-then-record"
    RECORD = "record-then-xr"
    COLLECTION = "collection"
    NAMESPACE = "namespace"
    BREAK_GLASS = "substrate-by-break-glass"
    VANISHED = "record-without-finalizer"
    DECOY = "xr-with-a-decoy"


@unique
class Crash(StrEnum):
    """What happens to the reconciler meanwhile."""

    NONE = "undisturbed"
    DOWN = "down-when-asked"
    KILLED = "killed-after"
    LED_BY_ANOTHER = "led-by-another-after"


STANDS: Final[Mapping[Phase, Mapping[str, str]]] = {
    Phase.PROVISIONING: {"demo-create": "hang"},
    Phase.FAILED: {"demo-create": "fail"},
    Phase.ENROLLING: {"demo-boot": "never"},
    Phase.DEPROVISIONING: {"demo-delete": "hang"},
}
"""The demo cloud's faults in which a node stands still."""

_KEEP: Final = """
CREATE FUNCTION plexsphere.keep_{name}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'this node stays'; END $$;
CREATE TRIGGER keep_{name} BEFORE UPDATE ON plexsphere.nodes FOR EACH ROW
WHEN (new.deregistered_at IS NOT NULL AND new.provisioned_resource_id = '{resource}')
EXECUTE FUNCTION plexsphere.keep_{name}();
"""
_LET_GO: Final = "DROP FUNCTION IF EXISTS plexsphere.keep_{name} CASCADE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One life of the table."""

    way: Way
    phase: Phase
    crash: Crash

    def __str__(self) -> str:
        return f"{self.way}/{self.phase}/{self.crash}"

    @property
    def name(self) -> str:
        return str(self).lower().replace("/", "-")

    @property
    def own(self) -> bool:
        """Whether it needs a Project of its own, because the namespace will go."""
        return self.way is Way.NAMESPACE

    def project(self, stack: Stack) -> str:
        """Return the id of its own Project."""
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{stack.node_url}/{self}"))


class Life:
    """Leads one cell's node to its phase, deletes it as its way says, and looks at the end."""

    def __init__(self, stack: Stack, cell: Cell) -> None:
        self.stack = stack
        self.cell = cell
        self.cluster = stack.plane.cluster
        slow = delayed(max(DELAYS)) if cell.phase is Phase.PENDING else "provisionedresource"
        self.node = Node(
            stack,
            cell.name,
            namespace=f"plexsphere-project-{cell.project(stack)}" if cell.own else PROJECT,
            labels=dict(STANDS.get(cell.phase, {})),
            composition=slow,
        )
        self.handles: list[str] = []

    def arrive(self) -> None:
        """Bring the node to its phase, and no further."""
        node, phase = self.node, self.cell.phase
        node.apply()
        handle = wait_for(node.handle, f"{self.cell} accepted", timeout_s=LONG_S)
        self.handles.append(handle)
        teardown = phase in {Phase.DEREGISTERING, Phase.DEPROVISIONING, Phase.DELETED}
        if teardown:
            node.until_ready(timeout_s=LONG_S)
            if phase is Phase.DEREGISTERING:
                self._sql(_KEEP.format(name=_hex(handle), resource=handle.removeprefix("pr-")))
            node.delete(propagation="Background")
        if phase is Phase.DELETED:
            wait_for(lambda: node.xr() is None, f"{self.cell} gone", timeout_s=LONG_S)
        elif phase is not Phase.PENDING:
            wait_for(
                lambda: node.phase() == phase,
                f"{self.cell} in its phase",
                timeout_s=LONG_S,
                explain=node.explain,
            )

    def assert_over(self, handle: str) -> None:
        """Assert that an incarnation ended in order and left nothing."""
        node = self.node
        wait_for(
            lambda: (aggregate(self.stack.postgres.dsn, handle) or {}).get("status") == "Deleted",
            f"{self.cell}: {handle} Deleted",
            timeout_s=LONG_S,
        )
        node.assert_nothing_left(handle)
        told = node.facts(handle)
        made = [fact.what for fact in told if fact.source == "cloud"]
        # A pipeline run in flight makes again what break-glass took, and nothing of ours can keep
        # Crossplane from it; that such a machine is not the node's is `test_substrates_lost`'s.
        assert made.count("created") <= (2 if self.cell.way is Way.BREAK_GLASS else 1)
        assert made.count("created") == made.count("deleted"), told
        going = [fact for fact in told if fact.what == "delete-requested"]
        out = [fact for fact in told if fact.what in {"deregistered", "token revoked"}]
        # Break-glass takes the machine whatever its node does: that is what it is for.
        if going and self.cell.way is not Way.BREAK_GLASS:
            assert out, told
            gone = min(fact.at for fact in out)
            assert gone < going[0].at, told
            assert all(gone < fact.at for fact in told if may_have_deleted(fact)), told

    def all_handles(self) -> list[str]:
        """Return `pr-<uuid>` of every incarnation, also of those that came meanwhile."""
        names = {*self.handles}
        rows = self._rows(
            "SELECT xr_name FROM plexsphere.provisioned_resources"
            " WHERE namespace = $1 AND owner_name = $2",
            self.node.namespace,
            self.node.name,
        )
        return sorted(names | {str(row["xr_name"]) for row in rows})

    def lift(self) -> None:
        """Take away what held the node in its phase."""
        for handle in self.handles:
            self._sql(_LET_GO.format(name=_hex(handle)))
            lifted = {
                f"cloud.demo.plexsphere.com/{what}": "lifted" for what in ("create", "delete")
            }
            body = {"metadata": {"annotations": lifted}}
            machines = self.cluster.resource(CLOUD_API, "Machine")
            try:
                machines.patch(
                    name=handle,
                    namespace=self.node.namespace,
                    body=body,
                    content_type="application/merge-patch+json",
                )
            except ApiException as error:
                if error.status != 404:
                    raise

    def _sql(self, statement: str) -> None:
        async def run() -> None:
            connection = await asyncpg.connect(self.stack.postgres.dsn)
            try:
                await connection.execute(statement)
            finally:
                await connection.close()

        asyncio.run(run())

    def _rows(self, statement: str, *values: object) -> list[asyncpg.Record]:
        async def run() -> list[asyncpg.Record]:
            connection = await asyncpg.connect(self.stack.postgres.dsn)
            try:
                return list(await connection.fetch(statement, *values))
            finally:
                await connection.close()

        return asyncio.run(run())


def make_projects(stack: Stack, cells: Sequence[Cell]) -> None:
    """Make the Projects of the cells that need their own; idempotent."""
    own = {f"project-{cell.project(stack)}": cell.project(stack) for cell in cells if cell.own}
    credential = stack.plane.cluster.get(API, "CloudCredential", "demo-main")
    assert credential is not None
    projects = sorted({*credential["spec"]["projects"], *own})
    kinds = [
        {
            "apiVersion": API,
            "kind": "Project",
            "metadata": {"name": name},
            "spec": {"id": identity, "domainRef": {"name": "acme"}},
        }
        for name, identity in own.items()
    ]
    given = {
        "apiVersion": API,
        "kind": "CloudCredential",
        "metadata": {"name": "demo-main"},
        "spec": {**credential["spec"], "projects": projects},
    }
    stack.plane.apply(*kinds, given)
    for identity in own.values():
        namespace = f"plexsphere-project-{identity}"
        wait_for(partial(stack.plane.cluster.get, "v1", "Namespace", namespace), namespace)


def _hex(handle: str) -> str:
    return handle.removeprefix("pr-").replace("-", "")
