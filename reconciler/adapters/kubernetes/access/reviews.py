"""Authenticates and authorizes callers by the API server's token and access reviews.

TokenReview and SubjectAccessReview, remembered for seconds. Source: Kubernetes API,
authentication.k8s.io/v1 TokenReview, authorization.k8s.io/v1 SubjectAccessReview.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

from pydantic import SecretStr

from reconciler.adapters.kubernetes.transport.client import (
    KubernetesClient,
    KubernetesError,
    UnreachableError,
)
from reconciler.ports.operators import ReviewResult, ReviewUnavailableError, ReviewVerdict

REMEMBERED_S: Final = 10.0
"""How long a verdict is believed; a right that is withdrawn ends within it."""
REMEMBERED_MAX: Final = 1000
"""Verdicts remembered at once, some 300 kB; the oldest is forgotten first."""
REVIEW_TIMEOUT_S: Final = 5.0
"""Both questions together; each takes milliseconds."""
AT_ONCE_MAX: Final = 16
"""Reviews under way: a flood of invented tokens must not become one at the API server."""

_TOKEN_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 - a path
_ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

_Key = tuple[bytes, str, str]
_log = logging.getLogger(__name__)


class KubernetesReviewer:
    """Implements `ports.operators.Reviewer` with one API server's authentication and RBAC.

    A request is a non-resource URL there: a ClusterRole with `nonResourceURLs` allows it.

    Args:
        client: Of the cluster whose tokens count.
        audience: What a token must be meant for; None for the API server's own audience.
        monotonic: A clock in seconds that never goes back.
    """

    def __init__(
        self,
        client: KubernetesClient,
        *,
        audience: str | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._audience = audience
        self._monotonic = monotonic
        self._verdicts: OrderedDict[_Key, tuple[float, ReviewResult]] = OrderedDict()
        self._slots = asyncio.Semaphore(AT_ONCE_MAX)

    async def review(self, credential: SecretStr, *, verb: str, path: str) -> ReviewResult:
        """Judge one request; a verdict may be REMEMBERED_S old.

        Raises:
            ReviewUnavailableError: The API server gives no verdict.
        """
        token = credential.get_secret_value()
        key = (hashlib.sha256(token.encode()).digest(), verb, path)
        remembered = self._verdicts.get(key)
        if remembered is not None and self._monotonic() < remembered[0]:
            return remembered[1]
        try:
            async with asyncio.timeout(REVIEW_TIMEOUT_S), self._slots:
                judgement = await self._judge(token, verb=verb, path=path)
        except (KubernetesError, UnreachableError, TimeoutError, ValueError) as error:
            # Neither the text nor the cause: both may quote what was sent.
            status = getattr(error, "status", "-")
            _log.warning("review_failed error=%s status=%s", type(error).__name__, status)
            message = "cannot review the credential: the API server did not answer the review"
            raise ReviewUnavailableError(message) from None
        self._remember(key, judgement)
        return judgement

    def _remember(self, key: _Key, judgement: ReviewResult) -> None:
        self._verdicts[key] = (self._monotonic() + REMEMBERED_S, judgement)
        self._verdicts.move_to_end(key)
        if len(self._verdicts) > REMEMBERED_MAX:
            self._verdicts.popitem(last=False)

    async def _judge(self, token: str, *, verb: str, path: str) -> ReviewResult:
        user = await self._authenticated(token)
        if user is None:
            return ReviewResult(verdict=ReviewVerdict.UNAUTHENTICATED)
        spec = {
            "user": user["username"],
            "uid": user.get("uid") or "",
            "groups": user.get("groups") or [],
            "extra": user.get("extra") or {},
            "nonResourceAttributes": {"path": path, "verb": verb},
        }
        status = await self._ask(_ACCESS_REVIEWS, "SubjectAccessReview", "authorization", spec)
        # `denied` wins over `allowed`, and what cannot be evaluated is not allowed.
        allowed = status.get("allowed") is True and not status.get("denied")
        return ReviewResult(
            verdict=ReviewVerdict.ALLOWED if allowed else ReviewVerdict.FORBIDDEN,
            user=user["username"],
        )

    async def _authenticated(self, token: str) -> dict[str, Any] | None:
        spec: dict[str, Any] = {"token": token}
        if self._audience is not None:
            spec["audiences"] = [self._audience]
        status = await self._ask(_TOKEN_REVIEWS, "TokenReview", "authentication", spec)
        if status.get("authenticated") is not True:
            return None
        # An authenticator that knows no audiences says nothing of them.
        if self._audience is not None and self._audience not in (status.get("audiences") or ()):
            return None
        user = status.get("user")
        if not isinstance(user, dict) or not isinstance(user.get("username"), str):
            return None
        return user if user["username"] else None

    async def _ask(self, path: str, kind: str, group: str, spec: dict[str, Any]) -> dict[str, Any]:
        body = {"apiVersion": f"{group}.k8s.io/v1", "kind": kind, "spec": spec}
        answer = await self._client.request("POST", path, body=body)
        status = answer.get("status")
        if not isinstance(status, dict):
            message = f"cannot read {kind}: it has no status"
            raise ValueError(message)  # noqa: TRY004 - an answer's content, as UnreadableError is
        return status
