"""One who may patch and delete managed resources, is no administrator, and wants the machine gone.

He tries what line 1 of issue 13 names with exactly the version of the object that he looked at, so
that whether that one was protected is known; what is answered is noted and judged later.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from dev.stack import Stack
from tests.e2e.deploy.identity import Answer, Caller
from tests.e2e.dropping import CHANGES, MACHINE, SUBSTRATE, attempt
from tests.e2e.random_run.history import Try
from tests.e2e.world import API, CLOUD_API, SUBSTRATE_API, Object

NAME: Final = "mallory"
ROLE: Final = "random-run-thief"
_RBAC: Final = "rbac.authorization.k8s.io"


@dataclass
class Thief:
    """The one who tries, and what came of it."""

    stack: Stack
    tries: list[Try] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._thief = Caller(self.stack.plane.kubeconfig).as_user(NAME)
        self.stack.plane.apply(*_rights())

    def change(self, namespace: str, handles: Sequence[str]) -> Answer | None:
        """Try every change on each machine and on what is above it; return the last answer."""
        answer = None
        for which, change in CHANGES:
            for handle in handles:
                answer = self._try(_path(namespace, which, handle), change) or answer
        return answer

    def delete(self, namespace: str, handles: Sequence[str]) -> Answer | None:
        """Try to delete each machine and what is above it; return the last answer."""
        answer = None
        for handle in handles:
            for which in (SUBSTRATE, MACHINE):
                answer = self._try(_path(namespace, which, handle), None) or answer
        return answer

    def _try(self, path: str, change: Object | None) -> Answer | None:
        """Try a change, or the deletion, of an object that is there."""
        tried = attempt(self._thief, path, change)
        if tried is None:
            return None
        self.tries.append(
            Try(
                at=datetime.now(UTC),
                subject=path,
                what="a deletion" if change is None else json.dumps(change),
                held=tried.held,
                status=tried.answer.status,
                changed=tried.changed,
                message=tried.answer.message,
            )
        )
        return tried.answer


def _path(namespace: str, which: tuple[str, str], name: str) -> str:
    api, plural = which
    return f"/apis/{api}/namespaces/{namespace}/{plural}/{name}"


def _rights() -> list[Object]:
    """Return what he may do by RBAC."""
    api = f"{_RBAC}/v1"
    groups = [one.partition("/")[0] for one in (API, SUBSTRATE_API, CLOUD_API)]
    verbs = ["get", "list", "patch", "update", "delete"]
    rules: list[dict[str, Any]] = [{"apiGroups": groups, "resources": ["*"], "verbs": verbs}]
    role = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": ROLE}
    subjects = [{"apiGroup": _RBAC, "kind": "User", "name": NAME}]
    metadata = {"metadata": {"name": ROLE}}
    return [
        {"apiVersion": api, "kind": "ClusterRole", **metadata, "rules": rules},
        {
            "apiVersion": api,
            "kind": "ClusterRoleBinding",
            **metadata,
            "roleRef": role,
            "subjects": subjects,
        },
    ]
