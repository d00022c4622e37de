"""Raises this process's limit of open files.

Room for open files. `reconciler.main` calls it once. Source: getrlimit(2), RLIMIT_NOFILE.
"""

from __future__ import annotations

import resource
from typing import Final

OPEN_FILES_WANTED: Final = 8192
"""Connections of both listeners, Postgres and watches; many shells start with 1,024."""


def make_room_for_files() -> None:
    """Raise the soft limit of open files to what the listeners may hold, as far as allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    reachable = OPEN_FILES_WANTED
    if hard != resource.RLIM_INFINITY:
        reachable = min(reachable, hard)
    if soft != resource.RLIM_INFINITY and soft < reachable:
        resource.setrlimit(resource.RLIMIT_NOFILE, (reachable, hard))
