"""What `ports.operators.Reviewer` promises, on the fake and on a real API server."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Protocol
from uuid import uuid4

import pytest
from pydantic import SecretStr

from reconciler.adapters.kubernetes.access.reviews import KubernetesReviewer
from reconciler.adapters.kubernetes.cluster import open_client
from reconciler.ports.operators import Reviewer, ReviewResult, ReviewVerdict
from tests.contract.cluster_worlds import reconciler_kubeconfig, shared_control_plane
from tests.e2e.deploy.identity import Caller, wait_until
from tests.fakes.reviewer import InMemoryReviewer

pytestmark = pytest.mark.contract

AUDIENCE = "plexsphere-operators"
TOKENS = "/v1/projects/0197b1a2-7c3d-7e4f-8a5b-6c7d8e9f0a1b/bootstrap-tokens"
RBAC_TIMEOUT_S = 20.0
RBAC = "/apis/rbac.authorization.k8s.io/v1"


class ReviewWorld(Protocol):
    """A reviewer, and people whom it can know."""

    @property
    def reviewer(self) -> Reviewer:
        """The port."""
        ...

    def person(self, *, audience: str = AUDIENCE) -> tuple[str, str]:
        """Make somebody; return the token and the user's name."""
        ...

    async def grant(self, user: str, verb: str, path: str) -> None:
        """Give a right, and return once it is in force."""
        ...


class MemoryWorld:
    """The fake."""

    def __init__(self) -> None:
        self.reviewer = InMemoryReviewer()

    def person(self, *, audience: str = AUDIENCE) -> tuple[str, str]:
        token, user = str(uuid4()), f"user-{uuid4()}"
        if audience == AUDIENCE:
            self.reviewer.know(token, user)
        return token, user

    async def grant(self, user: str, verb: str, path: str) -> None:
        self.reviewer.grant(user, verb, path)


class RealWorld:
    """Service accounts of a real API server; the reviewer works as the reconciler's account."""

    def __init__(self, reviewer: KubernetesReviewer, admin: Caller) -> None:
        self.reviewer = reviewer
        self._admin = admin
        self._made: list[str] = []

    def person(self, *, audience: str = AUDIENCE) -> tuple[str, str]:
        name = f"operator-{uuid4().hex[:8]}"
        accounts = "/api/v1/namespaces/default/serviceaccounts"
        self._create(accounts, {"apiVersion": "v1", "kind": "ServiceAccount"}, name)
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"audiences": [audience], "expirationSeconds": 600},
        }
        answer = self._admin.create(f"{accounts}/{name}/token", request)
        assert answer.ok, answer.message
        return answer.body["status"]["token"], f"system:serviceaccount:default:{name}"

    async def grant(self, user: str, verb: str, path: str) -> None:
        account = user.rpartition(":")[2]
        name = f"{account}-{uuid4().hex[:8]}"
        api = {"apiVersion": "rbac.authorization.k8s.io/v1"}
        rules = [{"nonResourceURLs": [path], "verbs": [verb]}]
        self._create(f"{RBAC}/clusterroles", {**api, "kind": "ClusterRole", "rules": rules}, name)
        subject = {"kind": "ServiceAccount", "namespace": "default", "name": account}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        binding = {"kind": "ClusterRoleBinding", "roleRef": role, "subjects": [subject]}
        self._create(f"{RBAC}/clusterrolebindings", {**api, **binding}, name)
        attributes = {"path": path.replace("*", "x"), "verb": verb}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": user, "nonResourceAttributes": attributes},
        }
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        wait_until(
            lambda: self._admin.create(path, review).body["status"]["allowed"],
            timeout_s=RBAC_TIMEOUT_S,
            what=f"{user} has its right",
        )

    def clear(self) -> None:
        """Take away what was made."""
        for path in reversed(self._made):
            self._admin.delete(path)

    def _create(self, path: str, body: dict[str, Any], name: str) -> None:
        answer = self._admin.create(path, {**body, "metadata": {"name": name}})
        assert answer.ok, answer.message
        self._made.append(f"{path}/{name}")


@pytest.fixture(params=["memory", pytest.param("kubernetes", marks=pytest.mark.integration)])
async def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ReviewWorld]:
    if request.param == "memory":
        yield MemoryWorld()
        return
    plane = shared_control_plane(request.config, tmp_path_factory)
    client = await open_client(reconciler_kubeconfig(plane))
    # No verdict is old: each question of a test must see what the test has just changed.
    reviewer = KubernetesReviewer(client, audience=AUDIENCE, monotonic=_a_minute_a_question())
    real = RealWorld(reviewer, Caller(plane.kubeconfig))
    yield real
    real.clear()
    await client.close()


def _a_minute_a_question() -> Callable[[], float]:
    started_s = time.monotonic()
    asked = 0

    def now_s() -> float:
        nonlocal asked
        asked += 1
        return started_s + 60.0 * asked

    return now_s


async def _review(world: ReviewWorld, token: str, verb: str, path: str = TOKENS) -> ReviewResult:
    return await world.reviewer.review(SecretStr(token), verb=verb, path=path)


async def test_who_has_the_right_is_allowed_by_name(world: ReviewWorld) -> None:
    token, user = world.person()
    await world.grant(user, "get", TOKENS)

    assert await _review(world, token, "get") == ReviewResult(
        verdict=ReviewVerdict.ALLOWED, user=user
    )


async def test_a_right_to_a_whole_project_ends_in_a_star(world: ReviewWorld) -> None:
    token, user = world.person()
    await world.grant(user, "get", TOKENS.removesuffix("bootstrap-tokens") + "*")

    assert (await _review(world, token, "get")).verdict is ReviewVerdict.ALLOWED


@pytest.mark.parametrize(
    ("verb", "path"),
    [("delete", TOKENS), ("get", f"{TOKENS}/x"), ("get", TOKENS.replace("a1b", "a1c"))],
    ids=["verb", "below", "other-project"],
)
async def test_another_verb_or_path_is_forbidden(world: ReviewWorld, verb: str, path: str) -> None:
    token, user = world.person()
    await world.grant(user, "get", TOKENS)

    assert await _review(world, token, verb, path) == ReviewResult(
        verdict=ReviewVerdict.FORBIDDEN, user=user
    )


async def test_who_has_no_right_is_forbidden(world: ReviewWorld) -> None:
    token, user = world.person()

    assert await _review(world, token, "get") == ReviewResult(
        verdict=ReviewVerdict.FORBIDDEN, user=user
    )


@pytest.mark.parametrize("change", [str.upper, lambda token: token + "x", lambda _: "x"])
async def test_a_forged_token_is_nobodys(world: ReviewWorld, change: Callable[[str], str]) -> None:
    token, user = world.person()
    await world.grant(user, "get", TOKENS)

    assert await _review(world, change(token), "get") == ReviewResult(
        verdict=ReviewVerdict.UNAUTHENTICATED
    )


async def test_a_token_that_is_meant_for_somebody_else_is_nobodys(world: ReviewWorld) -> None:
    token, user = world.person(audience="vault")
    await world.grant(user, "get", TOKENS)

    assert await _review(world, token, "get") == ReviewResult(verdict=ReviewVerdict.UNAUTHENTICATED)
