"""What the operating system may do with this process.

Belongs here: no core dumps, room for open files. Not here: any limit that Python can keep
itself. `reconciler.main` calls it once, before a secret is in memory.
Source: prctl(2), PR_SET_DUMPABLE; getrlimit(2), RLIMIT_CORE, RLIMIT_NOFILE.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from typing import Final

OPEN_FILES_WANTED: Final = 8192
"""Connections of both listeners, Postgres and watches; many shells start with 1,024."""

_PR_SET_DUMPABLE: Final = 4


def forbid_memory_dumps() -> None:
    """Let nobody have this process's memory: no core file, no debugger of the same user.

    On Linux a process that is not dumpable writes no core whatever pipes `core_pattern` names,
    and only root reads its `/proc/PID/{mem,environ}`. Elsewhere the size limit alone holds.

    Raises:
        OSError: The kernel refuses.

    Idempotency: repeating it changes nothing; nothing takes it back.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def make_room_for_files() -> None:
    """Raise the soft limit of open files to what the listeners may hold, as far as allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    reachable = OPEN_FILES_WANTED
    if hard != resource.RLIM_INFINITY:
        reachable = min(reachable, hard)
    if soft != resource.RLIM_INFINITY and soft < reachable:
        resource.setrlimit(resource.RLIMIT_NOFILE, (reachable, hard))
