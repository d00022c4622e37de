"""Looks at a run while it lasts: objects as they are, and the document of each machine.

What is gone when the run is over. One thread that only reads; a look has the moments before
and after it, because the judge may believe no more than that the object was so somewhere in
between.
"""

from __future__ import annotations

import hashlib
import threading
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from dev.cloud.document import parse
from dev.stack import Stack
from function.render.documents.cloudinit import TOKEN_PATH
from tests.e2e.deploy.identity import Caller
from tests.e2e.dropping import is_protected
from tests.e2e.random_run.history import Boot, Interval, Look
from tests.e2e.world import API, CLOUD_API, SUBSTRATE_API, Object, condition_of

EVERY_S: Final = 1.0
"""Between two looks; a hold that was off for less is the policies' tests' to see."""

REQUEST_TIMEOUT_S: Final = 10.0

KINDS: Final = {
    "ProvisioningRecord": f"/apis/{API}/namespaces/{{}}/provisioningrecords",
    "XGenericVM": f"/apis/{SUBSTRATE_API}/namespaces/{{}}/xgenericvms",
    "Machine": f"/apis/{CLOUD_API}/namespaces/{{}}/machines",
}


def looked(kind: str, found: Object, when: Interval) -> Look:
    """Return what is seen of an object."""
    metadata = found["metadata"]
    owners = metadata.get("ownerReferences") or []
    ready, stalled = (condition_of(found, each) for each in ("Ready", "Stalled"))
    return Look(
        begun=when.begun,
        ended=when.ended,
        kind=kind,
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        created_at=datetime.fromisoformat(metadata["creationTimestamp"]),
        held=is_protected(found),
        ready=(ready.get("status", ""), ready.get("reason", "")),
        stalled=(stalled.get("status", ""), stalled.get("reason", "")),
        owner=next((owner["uid"] for owner in owners if owner.get("controller")), ""),
        handle=str((found.get("status") or {}).get("xrName", "")),
    )


@dataclass
class Witness:
    """Looks until the block is over.

    Attributes:
        texts: Every token's text that a machine was given, which nobody else may ever show.
        frozen: When the reconciler said that it froze.
    """

    stack: Stack
    namespaces: Sequence[str]
    looks: list[Look] = field(default_factory=list)
    boots: dict[str, Boot] = field(default_factory=dict)
    texts: set[str] = field(default_factory=set, repr=False)
    frozen: list[Interval] = field(default_factory=list)
    machines: dict[str, str] = field(default_factory=dict)

    def __enter__(self) -> Self:
        self._caller = Caller(self.stack.plane.kubeconfig)
        self._over = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._watch, name="witness")
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()
        if self._failure is not None and error is None:
            raise self._failure

    def _watch(self) -> None:
        try:
            while not self._over.wait(EVERY_S):
                self.look()
        except Exception as error:  # noqa: BLE001 - told when the block ends
            self._failure = error

    def look(self) -> None:
        """Look once at everything."""
        for namespace in self.namespaces:
            for kind, path in KINDS.items():
                begun = datetime.now(UTC)
                items = self._caller.get(path.format(namespace)).body.get("items", [])
                when = Interval(begun=begun, ended=datetime.now(UTC))
                self.looks += [looked(kind, item, when) for item in items]
                if kind == "Machine":
                    for item in items:
                        self.machines[item["metadata"]["uid"]] = item["metadata"]["name"]
        begun = datetime.now(UTC)
        if is_frozen(self.stack):
            ended = datetime.now(UTC) + timedelta(seconds=EVERY_S)
            self.frozen.append(Interval(begun=begun, ended=ended))
        for uid, name in self.machines.items():
            if uid not in self.boots:
                self._read(uid, name, self.stack.cloud_root / uid / "user-data")

    def _read(self, uid: str, name: str, document: Path) -> None:
        try:
            text = document.read_text(encoding="utf-8")
        except FileNotFoundError:
            return
        for file in parse(text).files if text else ():
            if file.path == TOKEN_PATH:
                digest = hashlib.sha256(file.content).hexdigest()
                self.boots[uid] = Boot(uid=uid, name=name, digest=digest)
                self.texts.add(file.content.decode())


def is_frozen(stack: Stack) -> bool:
    """Tell whether the reconciler says that it froze; one that is down says nothing."""
    try:
        with urllib.request.urlopen(  # noqa: S310 - our own listener
            f"{stack.operator_url}/metrics", timeout=REQUEST_TIMEOUT_S
        ) as answer:
            text = answer.read().decode()
    except OSError:
        return False
    return any(
        line.startswith("plexsphere_frozen{") and line.endswith(" 1.0")
        for line in text.splitlines()
    )
