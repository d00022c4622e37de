"""The same objects in function-pythonic's language; runs in its environment, not in ours.

One class that composes the plan it finds beside it. It imports nothing of ours.
"""

import json
import os
from pathlib import Path

from crossplane.pythonic import BaseComposite

PLAN = json.loads(Path(os.environ["BENCH_PLAN"]).read_text())
_TRUTH = {
    "STATUS_CONDITION_TRUE": True,
    "STATUS_CONDITION_FALSE": False,
    "STATUS_CONDITION_UNKNOWN": None,
}


class Plan(BaseComposite):  # type: ignore[misc]
    """Composes the plan."""

    def compose(self) -> None:
        """Answer one call."""
        for name, entry in PLAN["desired"]["resources"].items():
            manifest = entry["resource"]
            composed = self.resources[name](manifest["apiVersion"], manifest["kind"])
            composed.metadata = manifest["metadata"]
            composed.spec = manifest["spec"]
            if "ready" in entry:
                composed.ready = entry["ready"] == "READY_TRUE"
        status = PLAN["desired"].get("composite", {}).get("resource", {}).get("status", {})
        for key, value in status.items():
            self.status[key] = value
        if PLAN["desired"].get("composite", {}).get("ready") == "READY_FALSE":
            self.ready = False
        for each in PLAN["conditions"]:
            self.conditions[each["type"]](each["reason"], each["message"], _TRUTH[each["status"]])
