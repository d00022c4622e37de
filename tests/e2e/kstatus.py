"""What kstatus, by which GitOps tools wait, says of an object: its own code, run on it."""

from __future__ import annotations

import json
import subprocess
from typing import Final

from dev import binaries
from tests.e2e.world import Object

TIMEOUT_S: Final = 30.0


def kstatus(thing: Object | None) -> str:
    """Return `Current`, `InProgress`, `Failed`, `Terminating` or `Unknown`; `NotFound` for None."""
    if thing is None:
        return "NotFound"
    program = binaries.ensure(["kstatus"], report=print)["kstatus"]
    done = subprocess.run(
        [program],
        input=json.dumps(thing),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["status"])
