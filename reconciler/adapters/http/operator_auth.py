"""Who may ask what on the operators' listener.

Belongs here: the bearer header, and what each verdict is answered. Not here: the verdict
(`ports.operator.Reviewer`). Without one nothing is allowed. Source: RFC 6750 §2.1, §3.
"""

from __future__ import annotations

import re
from typing import Final

from aiohttp import web
from pydantic import SecretStr

from reconciler.adapters.http.problem import ProblemError, refuse
from reconciler.domain.identity.denial import Denial
from reconciler.ports.operator import Reviewer, ReviewUnavailableError, Verdict

_BEARER: Final = re.compile(r"(?i:bearer) +([A-Za-z0-9._~+/-]+=*)")
"""RFC 6750's b64token; the header's length is limited by the listener."""

_UNAVAILABLE: Final = Denial(
    status=503, code="", detail="the API server cannot be asked now", retry_after_s=5
)


class Gate:
    """Lets a request through, or refuses it.

    Args:
        reviewer: Who is asked.
    """

    def __init__(self, reviewer: Reviewer) -> None:
        self._reviewer = reviewer

    async def admit(self, request: web.Request) -> str:
        """Return the user's name of a request that is allowed.

        Raises:
            ProblemError: 401 without a good credential, 403 without the right, 503 without
                a verdict.
        """
        match = _BEARER.fullmatch(request.headers.get("Authorization", ""))
        if match is None:
            raise refuse(401, "a Kubernetes bearer token is needed")
        try:
            judgement = await self._reviewer.review(
                SecretStr(match[1]), verb=request.method.lower(), path=_path(request)
            )
        except ReviewUnavailableError:
            raise ProblemError(_UNAVAILABLE) from None
        if judgement.verdict is Verdict.UNAUTHENTICATED:
            raise refuse(401, "the API server does not know this credential")
        if judgement.verdict is not Verdict.ALLOWED:
            raise refuse(403, "the user may not do this")
        return judgement.user


def _path(request: web.Request) -> str:
    """Build the path from what the route matched, so that no other spelling is judged."""
    resource = request.match_info.route.resource
    if resource is None:
        raise refuse(404, "not found")
    return str(resource.url_for(**request.match_info))
