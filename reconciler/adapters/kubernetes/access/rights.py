"""Asks the API server for the broker's own rights.

Access reviews of our own account, remembered for a while. Source: Kubernetes API,
authorization.k8s.io/v1, SelfSubjectAccessReview.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from function.contract.names import group_of
from reconciler.adapters.kubernetes.transport.client import KubernetesClient, KubernetesError

REMEMBERED_S: Final = 300.0
"""How long a right is believed: it is asked for at each acceptance, and seldom withdrawn."""

_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


class Rights:
    """The rights of our account on one API server.

    Memory is one entry per kind and verb, and namespace if in one, that was allowed.
    """

    def __init__(
        self, client: KubernetesClient, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client
        self._monotonic = monotonic
        self._allowed: dict[tuple[str, ...], float] = {}

    async def missing(
        self, *, api_version: str, kind: str, verbs: Sequence[str], namespace: str = ""
    ) -> tuple[str, ...]:
        """Return which verbs are lacking on a kind in a namespace; without one, in all of them."""
        try:
            plural = await self._client.plural(api_version, kind)
        except KubernetesError as error:
            if error.status == 404:
                return tuple(verbs)
            raise
        group = group_of(api_version)
        where = {"namespace": namespace} if namespace else {}
        asked = [{"group": group, "resource": plural, "verb": verb, **where} for verb in verbs]
        return tuple([each["verb"] for each in asked if not await self._may(each)])

    async def _may(self, attributes: dict[str, str]) -> bool:
        key = tuple(attributes.values())
        if self._monotonic() < self._allowed.get(key, 0.0):
            return True
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        answer = await self._client.request("POST", _REVIEWS, body=body)
        if not (answer.get("status") or {}).get("allowed"):
            return False
        self._allowed[key] = self._monotonic() + REMEMBERED_S
        return True
