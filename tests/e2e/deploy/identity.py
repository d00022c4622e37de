"""Requests to an API server under another identity, to see what it is told.

Impersonation, with as many groups as wanted, and the plain answer. The end-to-end tests
import it.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from kubernetes import config
from urllib3 import HTTPHeaderDict

MASTERS: Final = "system:masters"
"""Allowed everything by RBAC, so that what refuses is the policy."""

RECONCILER: Final = "system:serviceaccount:plexsphere-system:provisioning-broker"
CROSSPLANE: Final = "system:serviceaccount:crossplane-system:crossplane"
COLLECTOR: Final = "system:serviceaccount:kube-system:generic-garbage-collector"
NAMESPACE_CONTROLLER: Final = "system:serviceaccount:kube-system:namespace-controller"
BREAK_GLASS: Final = "plexsphere:break-glass"

REQUEST_TIMEOUT_S: Final = 30.0
PAUSE_S: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the API server said."""

    status: int
    body: dict[str, Any]

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))

    @property
    def ok(self) -> bool:
        return 200 <= self.status <= 299


class Caller:
    """One identity on one API server; by default an administrator."""

    def __init__(self, kubeconfig: Path, *, user: str = "", groups: tuple[str, ...] = ()) -> None:
        new_client: Any = config.new_client_from_config
        self._kubeconfig = kubeconfig
        self._client = new_client(config_file=str(kubeconfig))
        self._headers = HTTPHeaderDict()
        if user:
            self._headers.add("Impersonate-User", user)
        for group in groups:
            self._headers.add("Impersonate-Group", group)

    def as_user(self, user: str, *groups: str) -> Self:
        """Return the same server seen by somebody else."""
        return type(self)(self._kubeconfig, user=user, groups=groups)

    def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        content_type: str = "application/json",
    ) -> Answer:
        """Send one request; every status is an answer."""
        headers = HTTPHeaderDict(self._headers)
        headers["Accept"] = "application/json"
        headers["Content-Type"] = content_type
        authorization = self._client.configuration.auth_settings().get("BearerToken")
        if authorization:
            headers["Authorization"] = authorization["value"]
        response = self._client.rest_client.pool_manager.request(
            method,
            f"{self._client.configuration.host}{path}",
            body=None if body is None else json.dumps(body),
            headers=headers,
            timeout=REQUEST_TIMEOUT_S,
        )
        if "json" not in response.headers.get("Content-Type", ""):
            return Answer(status=response.status, body={"message": response.data.decode()})
        return Answer(status=response.status, body=json.loads(response.data))

    def get(self, path: str) -> Answer:
        return self.request("GET", path)

    def create(self, path: str, body: Mapping[str, Any]) -> Answer:
        return self.request("POST", path, body)

    def delete(self, path: str, **options: Any) -> Answer:
        return self.request("DELETE", path, options)

    def patch(self, path: str, body: Mapping[str, Any]) -> Answer:
        return self.request("PATCH", path, body, content_type="application/merge-patch+json")


def wait_until(fact: Callable[[], object], *, timeout_s: float, what: str) -> None:
    """Return once a fact holds.

    Raises:
        AssertionError: it did not hold in time.
    """
    deadline = time.monotonic() + timeout_s
    pause = threading.Event()
    while not fact():
        assert time.monotonic() < deadline, f"still waiting after {timeout_s:g} s: {what}"
        pause.wait(PAUSE_S)
