"""Who wrote what to the API server, by its own audit log.

Reading it. A replica is known by the id of its token; Events are not in the log, because
they are for people and may come late.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

CREDENTIAL: Final = "authentication.kubernetes.io/credential-id"
QUESTIONS: Final = frozenset({"authentication.k8s.io", "authorization.k8s.io"})
"""Groups whose objects are asked and not kept: creating one changes nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One request that changed something.

    Attributes:
        at: When the API server got it.
        verb: `create`, `update`, `patch`, `delete` or `deletecollection`.
        resource: Plural, with the subresource if there is one.
        name: The object's; empty where the API server chose it.
        credential: Id of the token that it came with; empty for a certificate.
    """

    at: datetime
    verb: str
    resource: str
    name: str
    credential: str


def writes(log: Path, *, namespace: str) -> Sequence[Write]:
    """Return what was written in a namespace, and to it, in the order of the log."""
    whole = log.read_text(encoding="utf-8").rpartition("\n")[0]
    entries = (json.loads(line) for line in whole.splitlines() if namespace in line)
    return [_write(entry) for entry in entries if _is_written(entry)]


def _is_written(entry: dict[str, Any]) -> bool:
    succeeded = 200 <= entry["responseStatus"]["code"] <= 299
    return succeeded and entry["objectRef"].get("apiGroup") not in QUESTIONS


def _write(entry: dict[str, Any]) -> Write:
    target = entry["objectRef"]
    parts = (target["resource"], target.get("subresource"))
    shown = (entry["user"].get("extra") or {}).get(CREDENTIAL) or [""]
    return Write(
        at=datetime.fromisoformat(entry["requestReceivedTimestamp"]),
        verb=entry["verb"],
        resource="/".join(part for part in parts if part),
        name=target.get("name", ""),
        credential=shown[0],
    )
