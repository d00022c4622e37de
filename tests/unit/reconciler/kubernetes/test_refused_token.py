"""Nobody's words about a token's Secret carry the token on."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID

import pytest

from function.contract.secrets import TokenPlaintext
from reconciler.adapters.kubernetes.namespaces import project_rights
from reconciler.adapters.kubernetes.namespaces.project_rights import ProjectRights
from reconciler.adapters.kubernetes.namespaces.token_secrets import TokenSecrets
from reconciler.adapters.kubernetes.objects.writes import Effects
from reconciler.adapters.kubernetes.transport.client import KubernetesClient
from reconciler.adapters.kubernetes.transport.responses import KubernetesError
from reconciler.app.queue.work_queue import describe
from reconciler.domain.aggregate import ids
from reconciler.ports.store.aggregates import IssuedToken

TEXT = f"psb_prod_{'a' * 26}_node_{'b' * 26}"
RECORD = {"metadata": {"name": "web", "namespace": "ns", "uid": "u-1"}}


class Gossip:
    """Refuses every Secret with words made of what was sent, as a webhook may."""

    def __init__(self, words: str) -> None:
        self.words = words

    async def create(self, collection: str, body: dict[str, Any]) -> bool:
        data = json.dumps(body["data"])
        detail = self.words.format(data=data, text=TEXT)
        attempted = f"POST {collection}"
        raise KubernetesError(attempted=attempted, status=403, reason="Forbidden", detail=detail)


class Bound:
    """Has our RoleBinding in every namespace, so that a refusal is no lack of rights."""

    async def get(self, path: str, **_: Any) -> dict[str, Any]:
        assert "/rolebindings/" in path
        return project_rights.manifest(held=False)


async def _refusal(words: str) -> str:
    token = IssuedToken(
        id=ids.BootstrapTokenID(UUID(int=1)),
        generation=1,
        plaintext=TokenPlaintext(TEXT),
        expires_at=datetime(2026, 11, 22, tzinfo=UTC),
    )
    client, effects = cast(KubernetesClient, Bound()), cast(Effects, Gossip(words))
    secrets = TokenSecrets(client, effects, ProjectRights(client, effects))
    with pytest.raises(KubernetesError) as refused:
        await secrets.create_token_secret(RECORD, name="web-g1", token=token)
    assert refused.value.status == 403
    return describe(refused.value)


@pytest.mark.parametrize("words", ["denied: {data}", "denied: {text} is no data"])
async def test_words_that_repeat_the_token_are_left_out(words: str) -> None:
    told = await _refusal(words)

    assert "403 Forbidden" in told
    assert "psb_" not in told
    assert "cHNi" not in told


async def test_other_words_are_told() -> None:
    assert "exceeded quota" in await _refusal("exceeded quota: secrets=0")
