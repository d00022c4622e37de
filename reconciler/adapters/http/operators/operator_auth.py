"""Authorizes requests of the operators' listener.

The bearer header, and what each verdict is answered. Without one nothing is allowed.
Source: RFC 6750 §2.1, §3.
"""

from __future__ import annotations

import re
import time
from typing import Final

from aiohttp import web
from pydantic import SecretStr

from reconciler.adapters.http.problem import ProblemError, refuse
from reconciler.adapters.http.rate_limit import TokenBuckets, address_key
from reconciler.domain.identity.denial import Denial, rate_limited
from reconciler.ports.operators import Reviewer, ReviewUnavailableError, ReviewVerdict
from reconciler.ports.registration import Budget

_BEARER: Final = re.compile(r"(?i:bearer) +([A-Za-z0-9._~+/-]+=*)")
"""RFC 6750's b64token; the header's length is limited by the listener."""

_UNAVAILABLE: Final = Denial(
    status=503, code="", detail="the API server is unavailable; retry later", retry_after_s=5
)

REQUESTS_PER_S: Final = 20.0
"""Of one address: more than people and their scripts ask, as a page holds 500 tokens, and few
enough that the reviews of a guesser's credentials leave the API server alone."""


class Gate:
    """Lets a request through, or refuses it.

    Args:
        reviewer: Who is asked.
        address_budget: Requests per client address, with a credential or without; an IPv6
            /64 counts as one.
    """

    def __init__(self, reviewer: Reviewer, address_budget: Budget | None = None) -> None:
        self._reviewer = reviewer
        # A budget of which nobody spent yet has a length of zero.
        self._address_budget = (
            TokenBuckets(per_second=REQUESTS_PER_S, monotonic=time.monotonic)
            if address_budget is None
            else address_budget
        )

    async def admit(self, request: web.Request) -> str:
        """Return the user's name of a request that is allowed.

        Raises:
            ProblemError: 429 above the address's budget, before anybody is asked; 401 without
                a good credential, 403 without the right, 503 without a verdict.
        """
        wait_s = self._address_budget.take(address_key(request.remote))
        if wait_s is not None:
            raise ProblemError(rate_limited(wait_s))
        match = _BEARER.fullmatch(request.headers.get("Authorization", ""))
        if match is None:
            raise refuse(401, "a Kubernetes bearer token is required")
        try:
            judgement = await self._reviewer.review(
                SecretStr(match[1]), verb=request.method.lower(), path=_path(request)
            )
        except ReviewUnavailableError:
            raise ProblemError(_UNAVAILABLE) from None
        if judgement.verdict is ReviewVerdict.UNAUTHENTICATED:
            raise refuse(401, "the API server rejected the bearer token")
        if judgement.verdict is not ReviewVerdict.ALLOWED:
            raise refuse(403, "the user is not allowed to do this")
        return judgement.user


def _path(request: web.Request) -> str:
    """Build the path from what the route matched, so that no other spelling is judged."""
    resource = request.match_info.route.resource
    if resource is None:
        raise refuse(404, "not found")
    return str(resource.url_for(**request.match_info))
