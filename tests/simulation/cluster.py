"""The management cluster's API server: the contract-tested fake, and what its neighbours do.

Objects, their versions and watches, ownership, garbage collection, the admission policy
that holds a substrate.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from function.contract import names
from function.contract.record import SubstrateReference, XRReference
from reconciler.domain.teardown.release import XRFacts
from reconciler.ports.cluster.substrates import LiveObject
from reconciler.ports.store.aggregates import DrawnToken
from tests.fakes.management_cluster import GONE, InMemoryManagementCluster
from tests.unit.reconciler import samples

Raw = dict[str, Any]
Key = tuple[str, str]

XR_VERSION: Final = samples.XR["apiVersion"]
XR_KIND: Final = samples.XR["kind"]
SUBSTRATE_VERSION: Final = samples.SUBSTRATE.api_version
SUBSTRATE_KIND: Final = samples.SUBSTRATE.kind
MACHINE_VERSION: Final = "cloud.test/v1"
MACHINE_KIND: Final = "Machine"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of a record; None: it is gone."""

    version: int
    key: Key
    raw: Raw | None


class SimulatedCluster(InMemoryManagementCluster):
    """One API server.

    Attributes:
        log: Every change of every record, oldest first.
        heard: Called after each change with the name of what changed, a record or substrate.
        deleting: Called before a substrate begins to go, with its name and by whom.
    """

    log: list[Change]
    heard: Callable[[str], None]
    deleting: Callable[[LiveObject, str, str], None]

    def begin(
        self,
        *,
        heard: Callable[[str], None],
        deleting: Callable[[LiveObject, str, str], None],
        new_uid: Callable[[str], str],
    ) -> None:
        """Connect it to the world."""
        self.log, self.heard, self.deleting, self._new_uid = [], heard, deleting, new_uid

    # What the reconciler does.

    async def write_status(self, record: Raw, status: Raw) -> None:
        await super().write_status(record, copied(status))
        self._changed(_key(record))

    async def remove_finalizer(self, record: Raw) -> None:
        await super().remove_finalizer(record)
        self._changed(_key(record))

    async def delete_loose_record(self, record: Raw) -> None:
        await super().delete_loose_record(record)
        self._changed(_key(record))

    async def release(self, reference: SubstrateReference, namespace: str, *, uid: str) -> None:
        await super().release(reference, namespace, uid=uid)
        self.heard(reference.name)

    async def delete_object(
        self, reference: SubstrateReference, namespace: str, *, uid: str, foreground: bool = True
    ) -> None:
        live = self.substrate(reference.name)
        if live is not None and live.uid == uid:
            self.delete_substrate(reference.name, by="broker")

    async def create_token_secret(self, record: Raw, *, name: str, token: DrawnToken) -> bool:
        made = await super().create_token_secret(record, name=name, token=token)
        self.heard(name)
        return made

    # What everybody else does.

    def record(self, name: str) -> Raw | None:
        """Return a record as it is."""
        return self.records.get((samples.NAMESPACE, name))

    def substrate(self, name: str) -> LiveObject | None:
        """Return a substrate as it is."""
        return self.objects.get((SUBSTRATE_VERSION, SUBSTRATE_KIND, name))

    def put_xr(self, name: str, uid: str, facts: XRFacts) -> None:
        """Say how an XR is; one that is gone stays known as gone."""
        self.xrs[XR_VERSION, XR_KIND, name] = (uid, facts)

    def forget_xr(self, name: str) -> None:
        """Remove an XR."""
        self.xrs[XR_VERSION, XR_KIND, name] = ("", GONE)

    def apply_record(self, name: str, spec: Raw, *, xr: XRReference) -> bool:
        """Create or change a record, as server-side apply does; False: another XR's.

        A terminating one takes no new finalizer.
        """
        live = self.record(name)
        owner = {
            "apiVersion": xr.api_version, "kind": xr.kind, "name": xr.name, "uid": xr.uid,
            "controller": True, "blockOwnerDeletion": True,
        }  # fmt: skip
        if live is None:
            metadata = {
                "name": name,
                "namespace": samples.NAMESPACE,
                "uid": self._new_uid("record"),
                "generation": 1,
                "finalizers": [names.FINALIZER],
                "ownerReferences": [owner],
            }
            raw = {"apiVersion": names.API_VERSION, "kind": names.RECORD_KIND}
            self.records[samples.NAMESPACE, name] = {
                **raw, "metadata": metadata, "spec": copied(spec)
            }  # fmt: skip
            self._changed((samples.NAMESPACE, name))
            return True
        metadata = live["metadata"]
        if controller_of(live) not in (None, xr.uid):
            return False
        changed = live["spec"] != spec or metadata.get("ownerReferences") != [owner]
        if live["spec"] != spec:
            live["spec"] = copied(spec)
            metadata["generation"] += 1
        metadata["ownerReferences"] = [owner]
        if "deletionTimestamp" not in metadata and names.FINALIZER not in metadata["finalizers"]:
            metadata["finalizers"].append(names.FINALIZER)
            changed = True
        if changed:
            self._changed((samples.NAMESPACE, name))
        return True

    def delete_record(self, name: str) -> None:
        """Delete a record; its finalizers keep it."""
        live = self.record(name)
        if live is not None and "deletionTimestamp" not in live["metadata"]:
            live["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
            self._changed((samples.NAMESPACE, name))

    def strip_finalizers(self, name: str) -> None:
        """Take a record's finalizers off by hand, and delete it: it is gone at once."""
        live = self.record(name)
        if live is not None:
            live["metadata"]["finalizers"] = []
            live["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
            self._changed((samples.NAMESPACE, name))

    def disown(self, xr_uid: str) -> None:
        """Take an XR off what it controls, as the orphan propagation does."""
        for (_, name), raw in self.records.items():
            if raw is not None and controller_of(raw) == xr_uid:
                raw["metadata"]["ownerReferences"] = []
                self._changed((samples.NAMESPACE, name))
        for ref, live in list(self.objects.items()):
            if ref[1] != SUBSTRATE_KIND:
                continue
            if live.controller is not None and live.controller.uid == xr_uid:
                self.objects[ref] = replace(live, controller=None)
                self.heard(ref[2])

    def create_substrate(self, name: str, xr: XRReference) -> str:
        """Create a substrate with its hold; return its uid. The caller tells."""
        uid = self._new_uid("substrate")
        reference = samples.SUBSTRATE.model_copy(update={"name": name})
        self.compose(reference, uid=uid, controller=xr)
        below = samples.SUBSTRATE.model_copy(
            update={"api_version": MACHINE_VERSION, "kind": MACHINE_KIND, "name": f"{name}-vm"}
        )
        owner = XRReference(api_version=SUBSTRATE_VERSION, kind=SUBSTRATE_KIND, name=name, uid=uid)
        self.objects[SUBSTRATE_VERSION, SUBSTRATE_KIND, name] = replace(
            self.objects[SUBSTRATE_VERSION, SUBSTRATE_KIND, name], below=(below,)
        )
        self.composites.add((SUBSTRATE_VERSION, SUBSTRATE_KIND))
        self.compose(below, uid=self._new_uid("machine"), controller=owner)
        return uid

    def drop_machine(self, name: str, substrate_uid: str) -> None:
        """Remove the machine below a substrate: the cloud has confirmed that it is gone."""
        key = (MACHINE_VERSION, MACHINE_KIND, f"{name}-vm")
        live = self.objects.get(key)
        owner = None if live is None else live.controller
        if owner is not None and owner.uid == substrate_uid:
            del self.objects[key]

    def adopt_substrate(self, name: str, xr: XRReference) -> bool:
        """Control a substrate; False: another XR does."""
        live = self.substrate(name)
        if live is None or (live.controller is not None and live.controller.uid != xr.uid):
            return False
        if live.controller is None:
            self._put(name, replace(live, controller=xr))
        return True

    def delete_substrate(self, name: str, *, by: str) -> bool:
        """Begin to delete a substrate in the foreground; False: the policy refuses it.

        Only the reconciler may delete what is held and not released.
        """
        live = self.substrate(name)
        if live is None or live.terminating:
            return True
        if by not in ("broker", "break-glass") and not (live.released and live.held):
            return False
        self.deleting(live, name, by)
        self._put(name, replace(live, terminating=True))
        self.heard(name)
        return True

    def drop_substrate(self, name: str, uid: str) -> None:
        """Remove a substrate: nothing of it is left below."""
        live = self.substrate(name)
        if live is not None and live.uid == uid:
            del self.objects[SUBSTRATE_VERSION, SUBSTRATE_KIND, name]
            self.heard(name)

    def collect_secrets(self) -> None:
        """Delete token Secrets whose record is gone."""
        alive = {raw["metadata"]["uid"] for raw in self.records.values() if raw is not None}
        for key, owner in list(self.secret_owners.items()):
            if owner not in alive:
                self.secrets.pop(key, None)
                del self.secret_owners[key]

    def _put(self, name: str, live: LiveObject) -> None:
        self.objects[SUBSTRATE_VERSION, SUBSTRATE_KIND, name] = live

    def _changed(self, key: Key) -> None:
        live = self.records.get(key)
        version = len(self.log) + 1
        if live is not None:
            metadata = live["metadata"]
            if "deletionTimestamp" in metadata and not metadata.get("finalizers"):
                self.records[key] = live = None
            else:
                metadata["resourceVersion"] = str(version)
        raw = None if live is None else copied(live)
        if raw is None and (not self.log or all(item.key != key for item in self.log)):
            return
        self.log.append(Change(version=version, key=key, raw=raw))
        self.heard(key[1])


def controller_of(raw: Raw) -> str | None:
    """Return the uid of what controls an object."""
    for owner in raw["metadata"].get("ownerReferences") or []:
        if owner.get("controller"):
            return str(owner["uid"])
    return None


def copied(raw: Raw) -> Raw:
    """Return a deep copy of plain data, several times as fast as `copy.deepcopy`."""
    return cast("Raw", marshal.loads(marshal.dumps(raw)))  # noqa: S302 - our own bytes


def _key(record: Raw) -> Key:
    return record["metadata"]["namespace"], record["metadata"]["name"]
