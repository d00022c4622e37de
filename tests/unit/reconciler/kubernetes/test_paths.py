"""A name out of somebody's manifest never leads to another object."""

from __future__ import annotations

import pytest
from kubernetes.aio.client import ApiClient, Configuration

from reconciler.adapters.kubernetes.transport.client import KubernetesClient, KubernetesError


@pytest.mark.parametrize(
    "name",
    ["../../other/secrets/victim", "..", ".", "a/../../b", "%2e%2e", "a?b", "a#b", "a//b", "", " "],
)
async def test_a_path_that_a_name_bent_is_not_sent(name: str) -> None:
    client = KubernetesClient(ApiClient(Configuration(host="http://127.0.0.1:9")))
    try:
        with pytest.raises(KubernetesError, match="InvalidPath"):
            await client.request("DELETE", f"/api/v1/namespaces/mine/secrets/{name}")
    finally:
        await client.close()
