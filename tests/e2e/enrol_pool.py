"""One XR of the platform team's kind, and what the tests see of it.

Making and reading it, and the facts every end of a node must show. The end-to-end tests
import it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from dev import facts
from dev.facts import Fact
from dev.kube import Cluster
from dev.stack import Stack
from function.contract import names
from tests.e2e.enrol_world import ENROLLED, GROUP, NETWORK, POOL_API
from tests.e2e.world import (
    API,
    CLOUD_API,
    EARNED_S,
    PROJECT,
    STILL_S,
    TIMEOUT_S,
    Object,
    aggregate,
    condition_of,
    wait_for,
)


@dataclass
class Pool:
    """One XR of the team's kind and everything below it."""

    stack: Stack
    name: str
    namespace: str = PROJECT

    @property
    def cluster(self) -> Cluster:
        return self.stack.plane.cluster

    def apply(
        self, count: int, *, composition: str = ENROLLED, labels: Object | None = None
    ) -> Pool:
        spec: Object = {
            "count": count,
            "labels": labels or {"team": "checkout"},
            "crossplane": {"compositionRef": {"name": composition}},
        }
        metadata = {"name": self.name, "namespace": self.namespace}
        self.cluster.apply(
            {"apiVersion": POOL_API, "kind": "Pool", "metadata": metadata, "spec": spec}
        )
        return self

    def delete(self, propagation: str) -> None:
        self.cluster.delete(POOL_API, "Pool", self.name, self.namespace, propagation=propagation)

    def xr(self) -> Object | None:
        return self.cluster.get(POOL_API, "Pool", self.name, self.namespace)

    def record(self, resource: str) -> Object | None:
        name = names.record_name(group=GROUP, kind="Pool", name=self.name, resource=resource)
        return self.cluster.get(API, "ProvisioningRecord", name, self.namespace)

    def handle(self, resource: str) -> str:
        """Return `pr-<uuid>` of a resource's record, or nothing."""
        return str(((self.record(resource) or {}).get("status") or {}).get("xrName", ""))

    def machine(self, name: str) -> Object | None:
        return self.cluster.get(CLOUD_API, "Machine", name, self.namespace)

    def composed(self, resource: str, kind: str = "ConfigMap", api: str = "v1") -> Object | None:
        """Return what the XR composes under a name."""
        found = self.cluster.list(api, kind, self.namespace)
        ours = (item for item in found if self._composes(item, resource))
        return next(({**item, "kind": kind} for item in ours), None)

    def _composes(self, item: Object, resource: str) -> bool:
        metadata = item["metadata"]
        annotations = metadata.get("annotations") or {}
        labels = metadata.get("labels") or {}
        return (
            annotations.get("crossplane.io/composition-resource-name") == resource
            and labels.get("crossplane.io/composite") == self.name
        )

    def until_ready(self, *resources: str, timeout_s: float = TIMEOUT_S) -> list[str]:
        """Wait until the XR and the records of some resources are Ready; return the handles."""
        wait_for(
            lambda: self._all_ready(resources),
            f"{self.name} Ready with {resources}",
            timeout_s=timeout_s,
            explain=self.explain,
        )
        return [self.handle(resource) for resource in resources]

    def _all_ready(self, resources: Sequence[str]) -> bool:
        records = [self.record(resource) for resource in resources]
        return all(
            condition_of(found, "Ready").get("status") == "True" for found in (self.xr(), *records)
        )

    def until_enrolling(self, *resources: str, timeout_s: float = TIMEOUT_S) -> list[str]:
        """Wait until machines run whose nodes do not come; return the handles."""

        def waiting() -> bool:
            records = [self.record(resource) or {} for resource in resources]
            phases = [(found.get("status") or {}).get("phase") for found in records]
            return phases == ["Enrolling"] * len(resources)

        what = f"{self.name} Enrolling with {resources}"
        wait_for(waiting, what, timeout_s=timeout_s, explain=self.explain)
        return [self.handle(resource) for resource in resources]

    def until_settled(
        self, *resources: str, registered: bool, timeout_s: float = TIMEOUT_S
    ) -> list[str]:
        """Wait until nodes came, or until there is nothing more to wait for than them."""
        until = self.until_ready if registered else self.until_enrolling
        return until(*resources, timeout_s=timeout_s)

    def until_earned(self) -> None:
        """Wait until its XR has earned the tokens back that it spent before it became Ready."""

        def earned() -> bool:
            spent = datetime.fromisoformat(condition_of(self.xr(), "Ready")["lastTransitionTime"])
            return (datetime.now(UTC) - spent).total_seconds() > EARNED_S

        wait_for(earned, f"{self.name} Ready for a while", explain=self.explain)

    def until_gone(self, *, but: Sequence[str] = ()) -> None:
        """Wait until nothing of the XR is left.

        Args:
            but: What is not the XR's any more, as `left` names it.
        """
        wait_for(lambda: self.xr() is None, f"{self.name} gone", explain=self.explain)
        wait_for(
            lambda: self.left() == list(but),
            f"all of {self.name} gone",
            explain=lambda: f"{self.left()} {self.explain()}",
        )

    def left(self) -> list[str]:
        """Name what is still there below the XR."""
        return [called(item) for item in self.below()]

    def below(self) -> list[Object]:
        """Return what the XR composes."""
        kinds = [(API, "ProvisioningRecord"), (CLOUD_API, "Machine"), ("v1", "ConfigMap")]
        return [
            {**item, "kind": kind}
            for api, kind in kinds
            for item in self.cluster.list(api, kind, self.namespace)
            if (item["metadata"].get("labels") or {}).get("crossplane.io/composite") == self.name
        ]

    def network(self) -> Object:
        """Return the sibling that the machines share."""
        found = self.composed(NETWORK)
        assert found is not None
        return found

    def explain(self) -> str:
        """Say what the objects themselves say."""
        found = [self.xr(), *self.cluster.list(API, "ProvisioningRecord", self.namespace)]
        return " | ".join(_explained(item) for item in found if item is not None)

    def facts(self, *subjects: str) -> list[Fact]:
        told = [
            *facts.from_postgres(self.stack.postgres.dsn),
            *facts.from_cloud(self.stack.cloud_root),
        ]
        return sorted(fact for fact in told if fact.subject in subjects)

    def moment(self, source: str, what: str, subject: str) -> datetime:
        """Return when something first happened."""
        found = facts.first(self.facts(subject), source, what, subject)
        assert found is not None, f"{source} {what} {subject}: {self.facts(subject)}"
        return found.at

    def deletion(self, plural: str, name: str) -> datetime | None:
        """Return when a deletion was not refused; None when it is not known."""
        return deletion(self.stack, plural, name)

    def assert_drained(self, handle: str, *, registered: bool = True) -> None:
        """Assert that a node was out before its machine was asked to go, and that is all."""
        out = self.moment("mesh", "deregistered" if registered else "token revoked", handle)
        assert out < self.moment("cloud", "delete-requested", handle)
        self.assert_ended(handle)
        assert self.cloud(handle).count("created") == 1

    def assert_ended(self, handle: str) -> None:
        """Assert that nothing of a node is alive, and that each of its events came once."""
        row = wait_for(lambda: aggregate(self.stack.postgres.dsn, handle), "its row")
        assert (row["status"], row["live_nodes"], row["live_tokens"]) == ("Deleted", 0, 0)
        told = [fact.what for fact in self.facts(handle) if fact.source == "event"]
        assert told[-2:] == [
            "broker.ProvisionedResourceDeleting",
            "broker.ProvisionedResourceDeleted",
        ]
        assert len(told) == len(set(told))
        made = self.cloud(handle)
        assert made.count("created") == made.count("deleted") <= 1
        assert self.machine(handle) is None

    def cloud(self, handle: str) -> list[str]:
        """Tell what the cloud did with a machine."""
        return [fact.what for fact in self.facts(handle) if fact.source == "cloud"]

    def assert_untouched(self, handle: str, machine: Object) -> None:
        """Assert that a node and its machine are what they were."""
        assert_same(self.machine(handle), machine)
        told = {fact.what for fact in self.facts(handle)}
        assert not told & {"deregistered", "delete-requested", "token revoked"}


def until_still(*pools: Pool) -> None:
    """Wait until no pipeline run is in flight: nothing of some XRs has changed for a while."""
    seen: list[str] = []
    since = time.monotonic()

    def still() -> bool:
        nonlocal seen, since
        now = [str(item) for pool in pools for item in (pool.xr(), *pool.below())]
        if now != seen:
            seen, since = now, time.monotonic()
        return time.monotonic() - since > STILL_S

    wait_for(still, "nothing changing any more")


def deletion(stack: Stack, plural: str, name: str) -> datetime | None:
    """Return when the deletion of an object was first not refused; None when it is not known."""
    log = stack.plane.audit_log
    for line in [] if log is None else log.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        target, status = entry.get("objectRef") or {}, entry.get("responseStatus") or {}
        about = (entry.get("verb"), target.get("resource"), target.get("name"))
        if about == ("delete", plural, name) and status.get("code") == 200:
            return datetime.fromisoformat(entry["requestReceivedTimestamp"])
    return None


def called(item: Object) -> str:
    """Name an object in one word and its name."""
    return f"{item['kind']} {item['metadata']['name']}"


def held(found: Object | None) -> bool:
    """Tell whether an object carries the hold."""
    labels = ((found or {}).get("metadata") or {}).get("labels") or {}
    return bool(labels.get(names.LABEL_HOLD) == "true")


def assert_same(found: Object | None, before: Object) -> None:
    """Assert that an object is the one it was, and that nobody asked for its end."""
    assert found is not None
    assert found["metadata"]["uid"] == before["metadata"]["uid"]
    assert "deletionTimestamp" not in found["metadata"]


def _explained(item: Object) -> str:
    told = " ".join(
        f"{c['type']}={c['status']}:{c.get('reason')}:{c.get('message', '')[:160]}"
        for c in (item.get("status") or {}).get("conditions", [])
    )
    return f"{item['kind']} {item['metadata']['name']}: {told}"
