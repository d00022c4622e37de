"""How long a right is believed."""

from __future__ import annotations

from typing import Any, cast

import pytest

from reconciler.adapters.kubernetes.access.rights import REMEMBERED_S, Rights
from reconciler.adapters.kubernetes.transport.client import KubernetesClient, KubernetesError

VERBS = ("get", "delete")


class Reviewer:
    """An API server that answers access reviews, and counts them."""

    def __init__(self, *allowed: str) -> None:
        self.allowed = set(allowed)
        self.asked: list[dict[str, str]] = []
        self.fault: KubernetesError | None = None

    async def plural(self, api_version: str, kind: str) -> str:
        if self.fault is not None:
            raise self.fault
        return f"{kind.lower()}s"

    async def request(self, method: str, path: str, *, body: dict[str, Any]) -> dict[str, Any]:
        attributes = body["spec"]["resourceAttributes"]
        self.asked.append(attributes)
        return {"status": {"allowed": attributes["verb"] in self.allowed}}


@pytest.fixture
def now() -> list[float]:
    return [0.0]


def _rights(reviewer: Reviewer, now: list[float]) -> Rights:
    return Rights(cast("KubernetesClient", reviewer), monotonic=lambda: now[0])


async def _missing(rights: Rights) -> tuple[str, ...]:
    return await rights.missing(api_version="cloud.test/v1", kind="Server", verbs=VERBS)


async def test_the_question_is_for_all_namespaces(now: list[float]) -> None:
    reviewer = Reviewer()

    assert await _missing(_rights(reviewer, now)) == VERBS

    assert reviewer.asked == [
        {"group": "cloud.test", "resource": "servers", "verb": verb} for verb in VERBS
    ]


async def test_what_was_allowed_is_asked_again_after_a_while(now: list[float]) -> None:
    reviewer = Reviewer(*VERBS)
    rights = _rights(reviewer, now)
    await _missing(rights)
    reviewer.allowed.clear()

    assert await _missing(rights) == ()
    now[0] = REMEMBERED_S

    assert await _missing(rights) == VERBS


async def test_what_was_lacking_is_asked_again_at_once(now: list[float]) -> None:
    reviewer = Reviewer("get")
    rights = _rights(reviewer, now)
    assert await _missing(rights) == ("delete",)

    reviewer.allowed.add("delete")

    assert await _missing(rights) == ()


@pytest.mark.parametrize(("status", "told"), [(404, True), (500, False)])
async def test_only_a_kind_that_is_not_served_lacks_everything(
    now: list[float], status: int, *, told: bool
) -> None:
    reviewer = Reviewer(*VERBS)
    reviewer.fault = KubernetesError(attempted="find", status=status, reason="", detail="")
    rights = _rights(reviewer, now)

    if told:
        assert await _missing(rights) == VERBS
        return
    with pytest.raises(KubernetesError):
        await _missing(rights)
