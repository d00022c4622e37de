"""What the end-to-end tests do to a running stack, and what they read back from it.

Assertions rest on records that others keep: Postgres, the demo cloud, the audit log.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import asyncpg
import pytest

from dev import facts
from dev.facts import Fact
from dev.kube import Cluster
from dev.process import POLL_S
from dev.stack import RECONCILER_ACCOUNT, Stack
from function.contract import names

API: Final = "provisioning.plexsphere.com/v1alpha1"
SUBSTRATE_API: Final = "blueprints.plexsphere.com/v1alpha1"
CLOUD_API: Final = "cloud.demo.plexsphere.com/v1alpha1"
PROJECT: Final = "plexsphere-project-0197b1a2-7c3d-7e4f-8a5b-6c7d8e9f0a1b"
TIMEOUT_S: Final = 90.0
"""One step on a loaded machine; an idle one needs a tenth."""

STILL_S: Final = 10.0
"""Longer than two runs of the slowest pipeline here."""

OPEN_S: Final = 240.0
"""A node's way to Ready while its XR's breaker is open, which takes a run each half minute."""

_CUT_OFF: Final = "Responsive=False"
"""How `explain` tells of an XR whose breaker is open."""

EARNED_S: Final = 75.0
"""A life up to Ready spends some seventy of the hundred tokens of an XR's breaker."""

Object = dict[str, Any]


def wait_for(
    condition: Callable[[], Any],
    what: str,
    *,
    timeout_s: float = TIMEOUT_S,
    explain: Callable[[], str] = str,
) -> Any:
    """Return the first true answer of a condition; fail naming what did not come.

    Args:
        explain: Says what the objects say; an XR whose breaker is open is given `OPEN_S`.
    """
    started = time.monotonic()
    while not (answer := condition()):
        waited = time.monotonic() - started
        if waited > timeout_s and (waited > OPEN_S or _CUT_OFF not in explain()):
            pytest.fail(f"did not come in {waited:.0f} s: {what}: {explain()}")
        time.sleep(POLL_S)
    return answer


def condition_of(found: Object | None, name: str) -> Object:
    """Return a condition of an object, or an empty one."""
    status = (found or {}).get("status") or {}
    return next((c for c in status.get("conditions", []) if c["type"] == name), {})


def is_cut_off(xr: Object | None) -> bool:
    """Tell whether an XR's breaker is open: Crossplane passes hardly a change on to it."""
    return condition_of(xr, "Responsive").get("status") == "False"


@dataclass
class Node:
    """One ProvisionedResource and everything below it."""

    stack: Stack
    name: str
    namespace: str = PROJECT
    labels: dict[str, str] = field(default_factory=dict)
    composition: str = "provisionedresource"
    parameters: Object = field(default_factory=lambda: {"region": "nbg1"})
    blueprint: str = "generic-vm-v1alpha1"
    credential: str = "demo-main"

    @property
    def cluster(self) -> Cluster:
        return self.stack.plane.cluster

    def apply(self) -> Node:
        spec: Object = {
            "blueprintRef": {"name": self.blueprint},
            "cloudCredentialRef": {"name": self.credential},
            "parameters": self.parameters,
            "labels": self.labels,
            "crossplane": {"compositionRef": {"name": self.composition}},
        }
        metadata = {"name": self.name, "namespace": self.namespace}
        self.cluster.apply(
            {"apiVersion": API, "kind": "ProvisionedResource", "metadata": metadata, "spec": spec}
        )
        return self

    def xr(self) -> Object | None:
        return self.cluster.get(API, "ProvisionedResource", self.name, self.namespace)

    def record(self) -> Object | None:
        found = self.cluster.list(API, "ProvisioningRecord", self.namespace)
        return next(
            (item for item in found if item["spec"]["declaration"]["xr"]["name"] == self.name), None
        )

    def handle(self) -> str:
        """Return `pr-<uuid>` of the current record."""
        return str(((self.record() or {}).get("status") or {}).get("xrName", ""))

    def substrate(self, handle: str) -> Object | None:
        return self.cluster.get(SUBSTRATE_API, "XGenericVM", handle, self.namespace)

    def machine(self, handle: str) -> Object | None:
        return self.cluster.get(CLOUD_API, "Machine", handle, self.namespace)

    def phase(self) -> str:
        return str(((self.record() or {}).get("status") or {}).get("phase", ""))

    def until_ready(self, *, timeout_s: float = TIMEOUT_S) -> str:
        """Wait until the XR is Ready with the record that is there now; return its handle."""
        wait_for(
            self._is_ready,
            f"{self.name} Ready",
            timeout_s=timeout_s,
            explain=self.explain,
        )
        return self.handle()

    def _is_ready(self) -> bool:
        xr, handle = self.xr() or {}, self.handle()
        ours = handle != "" and (xr.get("status") or {}).get("xrName") == handle
        return ours and condition_of(xr, "Ready").get("status") == "True"

    def until_enrolling(self, *, timeout_s: float = TIMEOUT_S) -> str:
        """Wait until the machine runs and its node does not come; return the handle."""
        wait_for(
            lambda: self.phase() == "Enrolling",
            f"{self.name} Enrolling",
            timeout_s=timeout_s,
            explain=self.explain,
        )
        return self.handle()

    def until_still(self) -> None:
        """Wait until no pipeline run is in flight: nothing of it has changed for a while.

        A run that is in flight while an XR is orphaned gives the record its dead owner
        back, and the collector then deletes the record (Crossplane, not ours).
        """
        seen: tuple[str, ...] = ()
        since = time.monotonic()

        def still() -> bool:
            nonlocal seen, since
            handle = self.handle()
            found = (self.xr(), self.record(), self.substrate(handle), self.machine(handle))
            now = tuple(str((o or {}).get("metadata", {}).get("resourceVersion")) for o in found)
            if now != seen:
                seen, since = now, time.monotonic()
            return time.monotonic() - since > STILL_S

        wait_for(still, f"{self.name} at rest")

    def until_earned(self) -> None:
        """Wait until its XR has earned its breaker's tokens back: one a second."""
        xr = self.xr()
        assert xr is not None
        born = datetime.fromisoformat(xr["metadata"]["creationTimestamp"])
        wait_for(
            lambda: (datetime.now(UTC) - born).total_seconds() > EARNED_S, f"{self.name} of age"
        )

    def delete(self, *, propagation: str) -> None:
        self.cluster.delete(
            API, "ProvisionedResource", self.name, self.namespace, propagation=propagation
        )

    def delete_record(self) -> None:
        record = self.record()
        assert record is not None
        name = record["metadata"]["name"]
        self.cluster.delete(API, "ProvisioningRecord", name, self.namespace)

    def until_gone(self, handle: str) -> None:
        """Wait until XR, record, substrate and machine are gone."""
        wait_for(lambda: self.xr() is None, f"{self.name} XR gone")
        wait_for(lambda: self.record() is None, f"{self.name} record gone", explain=self.explain)
        assert self.substrate(handle) is None
        assert self.machine(handle) is None

    def assert_untouched(self, handle: str) -> None:
        """Assert that neither the mesh nor the cloud nor the API was asked to end anything."""
        for found in (self.substrate(handle), self.machine(handle)):
            assert found is not None
            assert "deletionTimestamp" not in found["metadata"]
        told = {fact.what for fact in self.facts(handle)}
        ended = told & {"deregistered", "delete-requested", "token revoked"}
        assert not ended, f"{handle}: {sorted(ended)}"

    def explain(self) -> str:
        """Say what the objects themselves say."""
        return " ".join(
            f"{item['type']}={item['status']}:{item.get('reason')}"
            for found in (self.xr(), self.record())
            for item in ((found or {}).get("status") or {}).get("conditions", [])
        )

    def facts(self, handle: str) -> list[Fact]:
        told = [
            *facts.from_postgres(self.stack.postgres.dsn),
            *facts.from_cloud(self.stack.cloud_root),
            *facts.from_audit(self.stack.plane.audit_log),
        ]
        return sorted(fact for fact in told if fact.subject == handle)

    def assert_ordered(self, handle: str, *, registered: bool) -> None:
        """Assert that the mesh was done with before the machine was touched."""
        told = self.facts(handle)
        going = facts.first(told, "cloud", "delete-requested", handle)
        assert going is not None, told
        done = "deregistered" if registered else "token revoked"
        out = facts.first(told, "mesh", done, handle)
        assert out is not None, told
        assert out.at < going.at, told
        deletions = [fact for fact in told if may_have_deleted(fact)]
        assert deletions or self.stack.plane.audit_log is None, told
        assert all(out.at < deletion.at for deletion in deletions), told

    def assert_nothing_left(self, handle: str) -> None:
        """Assert that no object, secret or live row of it remains."""
        assert self.substrate(handle) is None
        assert self.machine(handle) is None
        secrets = self.cluster.list("v1", "Secret", self.namespace)
        assert [s for s in secrets if s["metadata"]["name"].startswith(f"{self.name}-")] == []
        self.assert_aggregate_deleted(handle)

    def assert_aggregate_deleted(self, handle: str) -> None:
        """Assert that Postgres holds nothing alive of it and each event once."""
        row = wait_for(lambda: aggregate(self.stack.postgres.dsn, handle), "its row")
        assert row["status"] == "Deleted"
        assert row["live_nodes"] == 0
        assert row["live_tokens"] == 0
        told = [fact.what for fact in self.facts(handle) if fact.source == "event"]
        assert len(told) == len(set(told))
        assert told[-2:] == [
            "broker.ProvisionedResourceDeleting",
            "broker.ProvisionedResourceDeleted",
        ]

    def assert_created_once(self, handle: str) -> None:
        told = self.facts(handle)
        assert [fact.what for fact in told if fact.source == "cloud"].count("created") == 1


def may_have_deleted(fact: Fact) -> bool:
    """Whether a deletion of the substrate was not refused.

    The log of a caller killed during its call says 504, though the object went.
    """
    words = fact.what.split()
    return words[:2] == ["delete", "xgenericvms"] and not words[2].startswith("4")


def aggregate(dsn: str, handle: str) -> asyncpg.Record | None:
    """Read an aggregate's row with what is alive of it."""
    return asyncio.run(_aggregate(dsn, handle))


async def _aggregate(dsn: str, handle: str) -> asyncpg.Record | None:
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetchrow(
            """
            SELECT r.id, r.status,
              (SELECT count(*) FROM plexsphere.nodes n
               WHERE n.provisioned_resource_id = r.id AND n.deregistered_at IS NULL) AS live_nodes,
              (SELECT count(*) FROM plexsphere.bootstrap_tokens t
               WHERE t.provisioned_resource_id = r.id AND t.revoked_at IS NULL
                 AND t.consumed_at IS NULL) AS live_tokens
            FROM plexsphere.provisioned_resources r WHERE r.xr_name = $1
            """,
            handle,
        )
    finally:
        await connection.close()


def let_go_of_namespace(stack: Stack, namespace: str) -> None:
    """Take the hold off a namespace as only the reconciler may, though it has records."""
    kubeconfig = stack.plane.service_account_kubeconfig(*RECONCILER_ACCOUNT)
    with tempfile.TemporaryDirectory() as cache, Cluster(kubeconfig, Path(cache)) as reconciler:
        resource = reconciler.resource("v1", "Namespace")
        body = {"metadata": {"labels": {names.LABEL_HOLD: None}}}
        resource.patch(name=namespace, body=body, content_type="application/merge-patch+json")


def namespace_went(stack: Stack, namespace: str) -> bool:
    """Tell whether a namespace that was asked to go is gone.

    Its Project is still there: a new one of the same name may stand in its place in no time.
    """
    found = stack.plane.cluster.get("v1", "Namespace", namespace)
    return found is None or "deletionTimestamp" not in found["metadata"]
