"""Checks that an API server's records belong to the management cluster that is driven.

Asking the store where records are at home, all of them before a term drives any. A cluster
whose slug changed, or a copy of another one, would find none of its aggregates, and let go
of the finalizers and the hold of everything that lives. Source: docs/decisions/0017.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from reconciler.ports.store.census import Placements

CHUNK: Final = 1_000
"""Records of one question: some milliseconds of an index; ten thousand take ten."""


async def elsewhere(placements: Placements, uids: Sequence[str]) -> str | None:
    """Return the slug of another management cluster that one of these records is at home on.

    Args:
        placements: Of the cluster that is about to drive them.
        uids: Of every record that its API server has.

    Returns:
        The first that is found; None when all are this cluster's, or nobody's yet.
    """
    for start in range(0, len(uids), CHUNK):
        slug = await placements.elsewhere_by_record(uids[start : start + CHUNK])
        if slug is not None:
            return slug
    return None
