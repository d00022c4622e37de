"""Does the deeds of a random run, each as the one who would: Git, a person, break-glass, a thief.

Requests, and what each was answered. No answer is asserted away: a refusal is a deed's
outcome.
"""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from dev.stack import Stack
from function.contract import names
from tests.e2e.deploy.identity import BREAK_GLASS, MASTERS, Answer, Caller
from tests.e2e.dropping import MACHINE, SUBSTRATE
from tests.e2e.random_run.deeds import DELETIONS, Deed, Kind
from tests.e2e.random_run.ground import DISK_GB, TEAM, Xr, no_faults
from tests.e2e.random_run.thief import Thief
from tests.e2e.world import API, CLOUD_API, Object

REQUEST_TIMEOUT_S: Final = 30.0
_CLOUD: Final = CLOUD_API.partition("/")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What came of a deed.

    Attributes:
        status: The API server's; 0 where there was nothing to do it to.
    """

    deed: Deed
    at: datetime
    status: int
    message: str = ""

    def __str__(self) -> str:
        return f"{self.deed} -> {self.status} {self.message}".rstrip()


@dataclass
class People:
    """Everybody with a keyboard."""

    stack: Stack
    xrs: Sequence[Xr]
    by_hand: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.git = Caller(self.stack.plane.kubeconfig)
        self.glass = self.git.as_user("jane", BREAK_GLASS, MASTERS)
        self.thief = Thief(self.stack)

    def do(self, deed: Deed) -> Done:
        """Do one deed now."""
        xr = self.xrs[deed.target]
        act = _DEEDS[deed.kind]
        at = datetime.now(UTC)
        answer = act(self, xr, deed)
        if answer is None:
            return Done(deed=deed, at=at, status=0, message="nothing is there")
        return Done(deed=deed, at=at, status=answer.status, message=answer.message[:200])

    def records(self, xr: Xr) -> list[Object]:
        """Return the records of an XR that are there."""
        answers = [self.git.get(_record(xr, name)) for name in xr.records]
        return [answer.body for answer in answers if answer.ok]

    def handles(self, xr: Xr) -> list[str]:
        """Return what its substrates are called."""
        named = [(record.get("status") or {}).get("xrName") for record in self.records(xr)]
        return [str(name) for name in named if name]

    def mend(self) -> None:
        """Undo what goes wrong and what stands still; what is there already stays."""
        for xr in self.xrs:
            found = self.git.get(xr.path)
            if not found.ok:
                continue
            labels = found.body["spec"].get("labels") or {}
            if set(labels) & set(no_faults()["spec"]["labels"]):
                self.git.patch(xr.path, no_faults())
            if (found.body["metadata"].get("annotations") or {}).get(names.PAUSED):
                self._annotate(self.git, xr.path, names.PAUSED, None)
            if not xr.is_pool and found.body["spec"]["parameters"].get("region") != "nbg1":
                self.git.patch(xr.path, {"spec": {"parameters": {"region": "nbg1"}}})
        for namespace in sorted({xr.namespace for xr in self.xrs}):
            machines = f"/apis/{CLOUD_API}/namespaces/{namespace}/machines"
            for machine in self.git.get(machines).body.get("items", []):
                wanted = {f"{_CLOUD}/{what}": "works" for what in ("create", "delete")}
                if not wanted.items() <= (machine["metadata"].get("annotations") or {}).items():
                    body = {"metadata": {"annotations": wanted}}
                    self.glass.patch(f"{machines}/{machine['metadata']['name']}", body)

    def part(self, xr: Xr, propagation: str) -> None:
        """Delete an XR for good, and the records that an orphaning left."""
        if self.git.delete(xr.path, propagationPolicy=propagation).status == 404:
            for name in xr.records:
                self.git.delete(_record(xr, name))

    def _annotate(self, who: Caller, path: str, name: str, value: str | None) -> Answer:
        return who.patch(path, {"metadata": {"annotations": {name: value}}})

    def apply(self, xr: Xr, deed: Deed) -> Answer:
        return self.git.request(
            "PATCH",
            f"{xr.path}?fieldManager=random-run&force=true",
            xr.manifest(deed),
            content_type="application/apply-patch+yaml",
        )

    def edit_labels(self, xr: Xr, deed: Deed) -> Answer:
        labels = {**TEAM, "edit": str(deed.chance), **deed.fault.labels}
        return self.git.patch(xr.path, {"spec": {"labels": labels}})

    def edit_mutable(self, xr: Xr, deed: Deed) -> Answer:
        size = DISK_GB + deed.chance % 50
        return self.git.patch(xr.path, {"spec": {"parameters": {"diskSizeGb": size}}})

    def edit_fixed(self, xr: Xr, deed: Deed) -> Answer:
        region = f"fsn{deed.chance % 3}"
        return self.git.patch(xr.path, {"spec": {"parameters": {"region": region}}})

    def edit_reference(self, xr: Xr, deed: Deed) -> Answer:
        return self.git.patch(xr.path, {"spec": {"blueprintRef": {"name": "another"}}})

    def resize(self, xr: Xr, deed: Deed) -> Answer:
        return self.git.patch(xr.path, {"spec": {"count": deed.chance % 3}})

    def retry(self, xr: Xr, deed: Deed) -> Answer:
        found = self.git.get(xr.path)
        if not found.ok:
            return found
        now = int(found.body["spec"].get("retry") or 0)
        return self.git.patch(xr.path, {"spec": {"retry": now + 1}})

    def delete(self, xr: Xr, deed: Deed) -> Answer:
        way = deed.kind.removeprefix("delete-").capitalize()
        return self.git.delete(xr.path, propagationPolicy=way)

    def delete_record(self, xr: Xr, deed: Deed) -> Answer:
        name = xr.records[deed.chance % len(xr.records)]
        return self.git.delete(_record(xr, name))

    def pause(self, xr: Xr, deed: Deed) -> Answer:
        value = "true" if deed.kind is Kind.PAUSE else None
        return self._annotate(self.git, xr.path, names.PAUSED, value)

    def break_glass(self, xr: Xr, deed: Deed) -> Answer | None:
        machine = deed.kind is Kind.BREAK_GLASS_MACHINE or xr.is_pool
        way = ("Background", "Foreground")[deed.chance % 2]
        paths = [_at(xr, MACHINE if machine else SUBSTRATE, name) for name in self.handles(xr)]
        answers = [self.glass.delete(path, propagationPolicy=way) for path in paths[:1]]
        return answers[0] if answers else None

    def cloud(self, xr: Xr, deed: Deed) -> Answer | None:
        value = {Kind.DELETE_HANGS: "hang", Kind.DELETE_FAILS: "fail"}.get(deed.kind, "works")
        paths = [_at(xr, MACHINE, name) for name in self.handles(xr)]
        whats = ("create", "delete") if value == "works" else ("delete",)
        answers = [
            self._annotate(self.glass, path, f"{_CLOUD}/{what}", value)
            for path in paths
            for what in whats
        ]
        return answers[-1] if answers else None

    def late_node(self, xr: Xr, deed: Deed) -> Answer | None:
        """Enrol a node with the token of its Secret, as an agent that was started by hand."""
        for record in self.records(xr):
            status = record.get("status") or {}
            secret = ((status.get("bootstrap") or {}).get("secretRef") or {}).get("name", "")
            found = self.git.get(f"/api/v1/namespaces/{xr.namespace}/secrets/{secret}")
            if secret and found.ok:
                token = base64.b64decode(found.body["data"][names.TOKEN_SECRET_KEY]).decode()
                return self._register(xr, str(status["xrName"]), token)
        return None

    def _register(self, xr: Xr, handle: str, token: str) -> Answer:
        body = {
            "project_id": xr.namespace.removeprefix("plexsphere-project-"),
            "resource_handle": handle,
            "bootstrap_token": token,
            "nonce": str(uuid.uuid4()),
            "public_key": base64.b64encode(uuid.uuid4().bytes * 2).decode(),
        }
        request = urllib.request.Request(  # noqa: S310 - our own listener
            f"{self.stack.node_url}/v1/register",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
            method="POST",
        )
        # Before it is answered: who is killed in between may have enrolled it.
        self.by_hand.add(handle)
        try:
            with urllib.request.urlopen(request, timeout=REQUEST_TIMEOUT_S) as answer:  # noqa: S310 - as above
                return Answer(status=answer.status, body={})
        except urllib.error.HTTPError as error:
            with error:
                return Answer(status=error.code, body={"message": error.read().decode()})
        except OSError as error:
            return Answer(status=503, body={"message": type(error).__name__})

    def try_changes(self, xr: Xr, deed: Deed) -> Answer | None:
        return self.thief.change(xr.namespace, self.handles(xr))

    def try_deleting(self, xr: Xr, deed: Deed) -> Answer | None:
        return self.thief.delete(xr.namespace, self.handles(xr))


def _record(xr: Xr, name: str) -> str:
    return f"/apis/{API}/namespaces/{xr.namespace}/provisioningrecords/{name}"


def _at(xr: Xr, which: tuple[str, str], name: str) -> str:
    api, plural = which
    return f"/apis/{api}/namespaces/{xr.namespace}/{plural}/{name}"


_Act = Callable[[People, Xr, Deed], Answer | None]

_DEEDS: Final[Mapping[Kind, _Act]] = {
    Kind.APPLY: People.apply,
    Kind.EDIT_LABELS: People.edit_labels,
    Kind.EDIT_MUTABLE: People.edit_mutable,
    Kind.EDIT_FIXED: People.edit_fixed,
    Kind.EDIT_REFERENCE: People.edit_reference,
    Kind.RESIZE: People.resize,
    Kind.RETRY: People.retry,
    **dict.fromkeys(DELETIONS, People.delete),
    Kind.DELETE_RECORD: People.delete_record,
    Kind.PAUSE: People.pause,
    Kind.UNPAUSE: People.pause,
    Kind.BREAK_GLASS_SUBSTRATE: People.break_glass,
    Kind.BREAK_GLASS_MACHINE: People.break_glass,
    Kind.TRY_CHANGES: People.try_changes,
    Kind.TRY_DELETING: People.try_deleting,
    Kind.DELETE_HANGS: People.cloud,
    Kind.DELETE_FAILS: People.cloud,
    Kind.CLOUD_MENDED: People.cloud,
    Kind.NODE_LATE: People.late_node,
}
