"""Reviews against an API server that answers as it is told."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from pydantic import SecretStr

from reconciler.adapters.kubernetes.access import reviews
from reconciler.adapters.kubernetes.access.reviews import KubernetesReviewer
from reconciler.ports.operators import ReviewUnavailableError, ReviewVerdict
from tests.integration.kubernetes.conftest import client_of, until

pytestmark = pytest.mark.integration

TOKEN = SecretStr("eyJhbGciOi.canary.token")
USER = {
    "username": "ann",
    "uid": "7",
    "groups": ["operators", "system:authenticated"],
    "extra": {"authentication.kubernetes.io/credential-id": ["JTI=1"]},
}
PATH = "/v1/projects/x/bootstrap-tokens"


class APIServer:
    """Answers reviews.

    Attributes:
        token_status: Of every TokenReview.
        access_status: Of every SubjectAccessReview.
        specs: What was asked, in order.
        fault: An HTTP status instead of an answer, or None.
        hangs: Whether it never answers.
    """

    def __init__(self) -> None:
        self.token_status: Any = {"authenticated": True, "user": USER}
        self.access_status: Any = {"allowed": True}
        self.specs: list[dict[str, Any]] = []
        self.fault: int | None = None
        self.hangs = False
        self.at_once = 0
        self.at_once_max = 0
        self.release = asyncio.Event()
        self.release.set()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        app = web.Application()
        app.router.add_post("/apis/authentication.k8s.io/v1/tokenreviews", self._token)
        app.router.add_post("/apis/authorization.k8s.io/v1/subjectaccessreviews", self._access)
        runner = web.AppRunner(app, shutdown_timeout=0, handler_cancellation=True)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        await runner.cleanup()

    async def _token(self, request: web.Request) -> web.Response:
        return await self._answer(request, self.token_status)

    async def _access(self, request: web.Request) -> web.Response:
        return await self._answer(request, self.access_status)

    async def _answer(self, request: web.Request, status: Any) -> web.Response:
        self.specs.append((await request.json())["spec"])
        self.at_once += 1
        self.at_once_max = max(self.at_once, self.at_once_max)
        await self.release.wait()
        self.at_once -= 1
        if self.hangs:
            await asyncio.Event().wait()
        if self.fault is not None:
            message = f"the server could not review {TOKEN.get_secret_value()}"
            body = {"kind": "Status", "reason": "Scripted", "message": message}
            return web.json_response(body, status=self.fault)
        return web.json_response({"kind": "Review", "status": status}, status=201)


@pytest.fixture
def server() -> APIServer:
    return APIServer()


@pytest.fixture
def clock() -> list[float]:
    return [0.0]


@pytest.fixture
async def reviewer(server: APIServer, clock: list[float]) -> AsyncIterator[KubernetesReviewer]:
    async with server.listening() as url, client_of(url) as client:
        yield KubernetesReviewer(client, monotonic=lambda: clock[0])


async def _verdict(
    reviewer: KubernetesReviewer, token: SecretStr = TOKEN, verb: str = "get", path: str = PATH
) -> ReviewVerdict:
    return (await reviewer.review(token, verb=verb, path=path)).verdict


async def test_the_whole_user_is_asked_about(
    reviewer: KubernetesReviewer, server: APIServer
) -> None:
    assert await _verdict(reviewer) is ReviewVerdict.ALLOWED

    token, access = server.specs
    assert token == {"token": TOKEN.get_secret_value()}
    assert access == {
        "user": "ann",
        "uid": "7",
        "groups": USER["groups"],
        "extra": USER["extra"],
        "nonResourceAttributes": {"path": PATH, "verb": "get"},
    }


async def test_a_verdict_is_remembered_for_seconds_and_for_its_question_alone(
    reviewer: KubernetesReviewer, server: APIServer, clock: list[float]
) -> None:
    await _verdict(reviewer)
    clock[0] = reviews.REMEMBERED_S - 0.1
    server.access_status = {"allowed": False}

    assert await _verdict(reviewer) is ReviewVerdict.ALLOWED
    assert len(server.specs) == 2
    assert await _verdict(reviewer, verb="delete") is ReviewVerdict.FORBIDDEN
    assert await _verdict(reviewer, path=f"{PATH}/y") is ReviewVerdict.FORBIDDEN
    assert await _verdict(reviewer, SecretStr("other")) is ReviewVerdict.FORBIDDEN
    clock[0] = reviews.REMEMBERED_S
    assert await _verdict(reviewer) is ReviewVerdict.FORBIDDEN


async def test_what_is_remembered_is_bounded_and_holds_no_token(
    reviewer: KubernetesReviewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reviews, "REMEMBERED_MAX", 3)
    for number in range(10):
        await _verdict(reviewer, path=f"{PATH}/{number}")

    assert len(reviewer._verdicts) == 3
    assert TOKEN.get_secret_value() not in repr(reviewer._verdicts)


@pytest.mark.parametrize(
    "status",
    [
        {},
        {"authenticated": False, "error": "invalid bearer token"},
        {"authenticated": "true", "user": USER},
        {"authenticated": True},
        {"authenticated": True, "user": {"username": ""}},
        {"authenticated": True, "user": {"username": None}},
    ],
    ids=str,
)
async def test_whom_the_api_server_does_not_name_is_nobody(
    reviewer: KubernetesReviewer, server: APIServer, status: dict[str, Any]
) -> None:
    server.token_status = status

    assert await _verdict(reviewer) is ReviewVerdict.UNAUTHENTICATED
    assert len(server.specs) == 1


@pytest.mark.parametrize(
    "status",
    [
        {},
        {"allowed": False},
        {"allowed": "true"},
        {"allowed": True, "denied": True},
        {"allowed": False, "evaluationError": "no such role"},
    ],
    ids=str,
)
async def test_what_is_not_plainly_allowed_is_forbidden(
    reviewer: KubernetesReviewer, server: APIServer, status: dict[str, Any]
) -> None:
    server.access_status = status

    assert await _verdict(reviewer) is ReviewVerdict.FORBIDDEN


@pytest.mark.parametrize("audiences", [None, [], ["https://kubernetes.default.svc"]])
async def test_an_audience_that_is_not_confirmed_is_nobody(
    server: APIServer, audiences: list[str] | None
) -> None:
    server.token_status = {"authenticated": True, "user": USER, "audiences": audiences}
    async with server.listening() as url, client_of(url) as client:
        reviewer = KubernetesReviewer(client, audience="operators")

        assert await _verdict(reviewer) is ReviewVerdict.UNAUTHENTICATED

    assert server.specs[0]["audiences"] == ["operators"]


@pytest.mark.parametrize("fault", [401, 403, 404, 422, 429, 500, 503])
async def test_a_fault_is_no_verdict_is_not_remembered_and_quotes_nothing(
    reviewer: KubernetesReviewer,
    server: APIServer,
    caplog: pytest.LogCaptureFixture,
    fault: int,
) -> None:
    caplog.set_level(logging.DEBUG)
    server.fault = fault
    with pytest.raises(ReviewUnavailableError) as caught:
        await _verdict(reviewer)

    assert TOKEN.get_secret_value() not in caplog.text + str(caught.value)
    assert f"status={fault}" in caplog.text
    server.fault = None
    assert await _verdict(reviewer) is ReviewVerdict.ALLOWED


@pytest.mark.parametrize("status", [None, [], "allowed"])
async def test_an_answer_without_a_status_is_no_verdict(
    reviewer: KubernetesReviewer, server: APIServer, status: Any
) -> None:
    server.token_status = status

    with pytest.raises(ReviewUnavailableError):
        await _verdict(reviewer)


async def test_an_api_server_that_hangs_or_is_gone_is_no_verdict(
    server: APIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reviews, "REVIEW_TIMEOUT_S", 0.2)
    server.hangs = True
    async with server.listening() as url, client_of(url) as client:
        reviewer = KubernetesReviewer(client)
        with pytest.raises(ReviewUnavailableError):
            await _verdict(reviewer)
    async with client_of(url) as client:
        with pytest.raises(ReviewUnavailableError):
            await _verdict(KubernetesReviewer(client))


async def test_a_flood_of_tokens_is_none_at_the_api_server(
    reviewer: KubernetesReviewer, server: APIServer
) -> None:
    server.release.clear()
    asked = [
        asyncio.create_task(_verdict(reviewer, SecretStr(f"token-{number}")))
        for number in range(2 * reviews.AT_ONCE_MAX)
    ]
    await until(lambda: server.at_once == reviews.AT_ONCE_MAX)
    server.release.set()

    assert set(await asyncio.gather(*asked)) == {ReviewVerdict.ALLOWED}
    assert server.at_once_max == reviews.AT_ONCE_MAX
