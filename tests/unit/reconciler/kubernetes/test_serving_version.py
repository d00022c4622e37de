"""A kind that one version serves no more is found in the version that does."""

from __future__ import annotations

from typing import Any, cast

import pytest

from reconciler.adapters.kubernetes.objects.writes import Effects
from reconciler.adapters.kubernetes.transport.client import KubernetesClient, Object
from reconciler.adapters.kubernetes.transport.served_versions import serving_version
from reconciler.ports.cluster.substrates import KindNotServedError

LISTINGS: dict[str, Object] = {
    "/apis/cloud.test": {
        "versions": [{"groupVersion": "cloud.test/v3"}, {"groupVersion": "cloud.test/v2"}]
    },
    "/apis/cloud.test/v3": {"resources": [{"kind": "Other"}]},
    "/apis/cloud.test/v2": {"resources": [{"kind": "Machine"}]},
}


class Discovery:
    """A client of an API server that answers discovery, and 404 to all else."""

    async def get(self, path: str, **_: Any) -> Object | None:
        return LISTINGS.get(path)

    async def path(self, *_: Any, **__: Any) -> str:
        return "/nowhere"


CLIENT = cast("KubernetesClient", Discovery())


@pytest.mark.parametrize(
    ("api_version", "kind", "expected"),
    [
        ("cloud.test/v1", "Machine", "cloud.test/v2"),
        ("cloud.test/v1", "Disk", None),
        ("elsewhere.test/v1", "Machine", None),
        ("v2", "Machine", None),
    ],
)
async def test_the_version_that_serves_a_kind_is_told(
    api_version: str, kind: str, expected: str | None
) -> None:
    assert await serving_version(CLIENT, {"apiVersion": api_version, "kind": kind}) == expected


async def test_who_looks_for_an_object_hears_of_it() -> None:
    metadata = {"namespace": "shop", "name": "vm"}
    manifest = {"apiVersion": "cloud.test/v1", "kind": "Machine", "metadata": metadata}

    with pytest.raises(KindNotServedError) as raised:
        await Effects(CLIENT).find_served(manifest)

    assert raised.value.elsewhere == "cloud.test/v2"
