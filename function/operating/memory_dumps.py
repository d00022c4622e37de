"""Keeps this process's memory out of core dumps and other processes.

What asks the operating system to give it to nobody. `function.main` and `reconciler.main`
call it once, before a secret is in memory. Source: prctl(2), PR_SET_DUMPABLE; getrlimit(2),
RLIMIT_CORE.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from typing import Final

_PR_SET_DUMPABLE: Final = 4


def forbid() -> None:
    """Let nobody have this process's memory: no core file, no debugger of the same user.

    On Linux a process that is not dumpable writes no core whatever pipes `core_pattern` names,
    and only root reads its `/proc/PID/{mem,environ,fd}`. Elsewhere the size limit alone holds.

    Raises:
        OSError: The kernel refuses.

    Idempotency: repeating it changes nothing; nothing takes it back.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
