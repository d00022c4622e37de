"""`make demo`: one node from Git to Ready and back, on a real control plane.

Applying the example as Git would, showing what happens, and saying what blocks when
something does not come.
"""

import os
import re
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NoReturn

from dev import arguments, binaries, facts
from dev.kube import KubeError
from dev.objects import documents
from dev.process import ProcessError
from dev.stack import PROVISIONING_API as API
from dev.stack import ROOT, Stack
from dev.view import Tree

STEP_TIMEOUT_S = 120.0
"""One way, to Ready or back; a quarter of it on an idle machine."""

POLL_S = 0.2
XR_FILE = ROOT / "example/shop/web-1.yaml"
TOKEN = re.compile(r"psb_[a-z]+_[a-z2-7]+_[a-z]+_[a-z2-7]+")


class Blocked(Exception):  # noqa: N818 - it names a state, as people read it
    """A step did not come; the message names the blocker."""


class Demo:
    """The story, told over a running stack."""

    def __init__(self, stack: Stack, *, propagation: str) -> None:
        self._stack = stack
        self._cluster = stack.plane.cluster
        self._propagation = propagation
        self._tree = Tree(live=sys.stdout.isatty())
        self._namespace = ""
        self._xr_name = ""

    def run(self) -> None:
        """Tell it.

        Raises:
            Blocked: A step did not come in time.
        """
        self._say("Applying example/ as Git holds it")
        self._cluster.apply(ROOT / "example/platform", XR_FILE, timeout_s=STEP_TIMEOUT_S)
        self._namespace = self._xr_metadata()["namespace"]
        self._until(self._is_ready, "the node is not Ready")
        self._show_node()
        self._say(f"Deleting the XR ({self._propagation})")
        self._cluster.delete(
            API,
            "ProvisionedResource",
            self._xr_metadata()["name"],
            self._namespace,
            propagation=self._propagation.capitalize(),
        )
        self._until(self._is_gone, "the teardown does not end")
        self._show_timeline()

    def _until(self, condition: Any, blocker: str) -> None:
        deadline = time.monotonic() + STEP_TIMEOUT_S
        while not condition():
            self._tree.show(self._lines())
            if time.monotonic() > deadline:
                message = f"{blocker}: {self._why()}"
                raise Blocked(message)
            time.sleep(POLL_S)
        self._tree.show(self._lines())
        self._tree.close()

    def _is_ready(self) -> bool:
        xr = self._xr()
        self._xr_name = ((xr or {}).get("status") or {}).get("xrName", self._xr_name)
        return xr is not None and _condition(xr, "Ready") == "True"

    def _is_gone(self) -> bool:
        return self._xr() is None and not self._records() and not self._substrates()

    def _lines(self) -> list[str]:
        lines = [_line("ProvisionedResource", self._xr(), "Ready", "Admitted")]
        for record in self._records():
            phase = (record.get("status") or {}).get("phase", "-")
            lines.append(_line(f"├─ ProvisioningRecord [{phase}]", record, "Ready"))
        lines += [_line("└─ XGenericVM", found, "Ready") for found in self._substrates()]
        machines = self._cluster.list(
            "cloud.demo.plexsphere.com/v1alpha1", "Machine", self._namespace
        )
        for machine in [item for item in machines if item["metadata"]["name"] == self._xr_name]:
            state = ((machine.get("status") or {}).get("atProvider") or {}).get("state", "-")
            lines.append(_line(f"   └─ Machine [{state}]", machine, "Ready"))
        return lines

    def _show_node(self) -> None:
        record = self._records()[0]
        node = record["status"]["node"]
        self._say(f"Ready: node {node['id']} has mesh address {node['meshIP']}")
        substrate = self._substrates()[0]
        document = TOKEN.sub("[redacted]", substrate["spec"]["userData"])
        print("What the machine got:\n")
        print("\n".join(f"    {line}" for line in document.splitlines()))

    def _show_timeline(self) -> None:
        audit = self._stack.plane.audit_log
        told = sorted(
            [
                *facts.from_postgres(self._stack.postgres.dsn),
                *facts.from_cloud(self._stack.cloud_root),
                *facts.from_audit(audit),
            ]
        )
        if audit is None:
            self._say("What happened, as Postgres and the cloud recorded it")
            print(
                "    (who asked the API server to delete what is in its audit log, not read here)"
            )
        else:
            self._say("What happened, as Postgres, the cloud and the API server recorded it")
        ours = (self._xr_name, self._xr_metadata()["name"])
        told = [fact for fact in told if fact.subject in ours]
        start = told[0].at
        for fact in told:
            offset = (fact.at - start).total_seconds()
            print(f"    {offset:7.2f} s  {fact.source:6} {fact.what:55} {fact.subject}")
        out = facts.first(told, "mesh", "deregistered", self._xr_name)
        going = facts.first(told, "cloud", "delete-requested", self._xr_name)
        if out is None or going is None or out.at >= going.at:
            message = "the record does not show the node out of the mesh before its machine went"
            raise Blocked(message)
        ahead = (going.at - out.at).total_seconds()
        self._say(f"The node left the mesh {ahead:.2f} s before its machine was deleted")

    def _why(self) -> str:
        objects = [self._xr(), *self._records(), *self._substrates()]
        said = [
            f"{found['kind']}: {item['type']}={item['status']} {item.get('message', '')}"
            for found in objects
            if found is not None
            for item in (found.get("status") or {}).get("conditions", [])
            if item["status"] != "True"
        ]
        logs = self._stack.run_dir / "logs"
        return "; ".join(said or ["nothing says why"]) + f" (logs: {logs})"

    def _xr_metadata(self) -> dict[str, Any]:
        metadata: dict[str, Any] = next(iter(documents([XR_FILE])))["metadata"]
        return metadata

    def _xr(self) -> dict[str, Any] | None:
        metadata = self._xr_metadata()
        return self._cluster.get(
            API, "ProvisionedResource", metadata["name"], metadata["namespace"]
        )

    def _records(self) -> list[dict[str, Any]]:
        name = self._xr_metadata()["name"]
        found = self._cluster.list(API, "ProvisioningRecord", self._namespace)
        return [item for item in found if item["spec"]["declaration"]["xr"]["name"] == name]

    def _substrates(self) -> list[dict[str, Any]]:
        api = "blueprints.plexsphere.com/v1alpha1"
        found = self._cluster.list(api, "XGenericVM", self._namespace)
        return [item for item in found if item["metadata"]["name"] == self._xr_name]

    def _say(self, text: str) -> None:
        print(f"\n== {text}", flush=True)


def _line(title: str, found: dict[str, Any] | None, *conditions: str) -> str:
    if found is None:
        return f"{title} -"
    shown = " ".join(f"{name}={_condition(found, name)}" for name in conditions)
    going = " (terminating)" if "deletionTimestamp" in found["metadata"] else ""
    return f"{title} {found['metadata']['name']} {shown}{going}"


def _condition(found: dict[str, Any], name: str) -> str:
    for item in (found.get("status") or {}).get("conditions", []):
        if item["type"] == name:
            return str(item["status"])
    return "-"


def main() -> None:
    """Run the demo; exit 0 when every step came, 1 with the blocker when not."""
    arguments.none("dev.demo", main.__doc__)
    propagation = os.environ.get("DELETE", "background")
    if propagation not in {"background", "foreground"}:
        sys.exit("DELETE must be background or foreground")
    signal.signal(signal.SIGTERM, _interrupt)
    report = binaries.console()
    started = time.monotonic()
    (ROOT / ".run").mkdir(exist_ok=True)
    run_dir = Path(tempfile.mkdtemp(prefix="demo-", dir=ROOT / ".run"))
    try:
        with Stack(run_dir, report=report) as stack:
            report(f"the stack is ready after {time.monotonic() - started:.1f} s")
            Demo(stack, propagation=propagation).run()
            if not stack.plane.is_ours:
                print("\nThe installation stays; `.venv/bin/python -m dev.remove` takes it off")
    except (Blocked, ProcessError, KubeError) as error:
        sys.exit(f"demo: {error}")
    except KeyboardInterrupt:
        sys.exit("demo: interrupted; everything it started is stopped")
    print(f"\n== Done in {time.monotonic() - started:.1f} s; logs are in {run_dir.name}/logs")


def _interrupt(_number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
