"""`make down`: ends the stack that `make up` left running.

Finding it by the process id it wrote, and waiting for its end. Its children end with it,
because the kernel ties them to it.
"""

import contextlib
import os
import signal
import sys
from pathlib import Path

from dev import arguments
from dev.process import wait_until
from dev.stack import PID_FILE, ROOT

END_TIMEOUT_S = 60.0
"""A stack stops in a few seconds; its parts are killed after ten each."""


def main() -> None:
    """End it, or say that there is nothing to end."""
    arguments.none("dev.down", main.__doc__)
    path = ROOT / ".run" / PID_FILE
    if not path.exists():
        print("nothing runs")
        return
    pid = int(path.read_text(encoding="utf-8"))
    if not _is_stack(pid):
        path.unlink()
        print("nothing runs")
        return
    os.kill(pid, signal.SIGTERM)
    try:
        wait_until(lambda: not _is_stack(pid), timeout_s=END_TIMEOUT_S)
    except TimeoutError:
        sys.exit(f"process {pid} does not end")
    print("ended")


def _is_stack(pid: int) -> bool:
    """Tell whether a process is a stack of ours: ids are used again."""
    with contextlib.suppress(OSError):
        return b"dev.stack" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


if __name__ == "__main__":
    main()
