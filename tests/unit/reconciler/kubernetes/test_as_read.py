"""What was written since it was read is neither kept nor marked in silence."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from function.contract import names
from function.contract.record import SubstrateReference
from reconciler.adapters.kubernetes.gateway import KubernetesGateway
from reconciler.adapters.kubernetes.objects import composites
from reconciler.adapters.kubernetes.transport.client import KubernetesClient, KubernetesError
from reconciler.domain.aggregate.errors import StaleAggregateError
from reconciler.domain.protection import external_secret
from reconciler.domain.protection.provider_config import ANNOTATION_CREDENTIAL
from reconciler.ports.cluster.substrates import LiveObject

UID = "0197b1a2-0000-7000-8000-0000000000aa"
HANDLE = "pr-0197b1a2-0000-7000-8000-000000000001"
NAMESPACE = "plexsphere-project-x"
NETWORK = SubstrateReference(api_version="example.org/v1", kind="Network", name="net")


class Contended:
    """An API server with one object, which somebody else writes after each look.

    Attributes:
        item: The object; every path leads to it.
        patches: What was patched into it, refused or not.
    """

    def __init__(self, *, annotations: dict[str, str] | None = None) -> None:
        self.item: dict[str, Any] = {
            "metadata": {
                "name": "it",
                "namespace": NAMESPACE,
                "uid": UID,
                "resourceVersion": "1",
                "labels": {
                    external_secret.LABEL_MANAGED_BY: external_secret.MANAGED_BY,
                    names.LABEL_HOLD: "true",
                },
                "annotations": annotations or {},
            }
        }
        self.patches: list[dict[str, Any]] = []
        self.contended = True

    async def get(self, path: str, *, accept: str = "") -> dict[str, Any]:
        found = copy.deepcopy(self.item)
        if self.contended:
            version = int(self.item["metadata"]["resourceVersion"])
            self.item["metadata"]["resourceVersion"] = str(version + 1)
        return found

    async def path(self, api_version: str, kind: str, *, namespace: str, name: str) -> str:
        return f"/apis/{api_version}/namespaces/{namespace}/{kind.lower()}s/{name}"

    async def request(
        self, method: str, path: str, *, body: dict[str, Any] | None = None, **_: Any
    ) -> dict[str, Any]:
        assert method == "PATCH"
        assert body is not None
        self.patches.append(body["metadata"])
        version = body["metadata"].get("resourceVersion")
        if version not in (None, self.item["metadata"]["resourceVersion"]):
            raise KubernetesError(attempted="patch", status=409, reason="Conflict", detail="")
        return self.item


def _gateway(client: Contended) -> KubernetesGateway:
    return KubernetesGateway(cast("KubernetesClient", client))


def _manifest(kind: str) -> dict[str, Any]:
    metadata = {
        "name": "it",
        "namespace": NAMESPACE,
        "labels": {names.LABEL_HOLD: "true"},
        "annotations": {ANNOTATION_CREDENTIAL: "demo"},
    }
    return {"apiVersion": "example.org/v1", "kind": kind, "metadata": metadata}


@pytest.mark.parametrize(
    "keep",
    [
        lambda it: it.provider_configs.ensure_provider_config(_manifest("ProviderConfig")),
        lambda it: it.credentials.render_external_secret(_manifest("ExternalSecret")),
    ],
    ids=["provider config", "external secret"],
)
async def test_what_may_be_let_go_meanwhile_is_not_believed_to_be_kept(
    keep: Callable[[KubernetesGateway], Awaitable[object]],
) -> None:
    marks = {names.ANNOTATION_RELEASING: "true", ANNOTATION_CREDENTIAL: "demo"}
    client = Contended(annotations=marks)

    with pytest.raises(StaleAggregateError, match="cannot keep"):
        await keep(_gateway(client))


def _seen(client: Contended) -> LiveObject:
    version = client.item["metadata"]["resourceVersion"]
    return LiveObject(uid=UID, version=version, terminating=False, released=False)


async def test_a_composite_that_was_written_since_it_was_looked_at_is_not_marked() -> None:
    client = Contended()
    seen = _seen(client)
    await client.get("it")

    with pytest.raises(StaleAggregateError):
        await _gateway(client).substrates.hold_below(NETWORK, NAMESPACE, live=seen, handle=HANDLE)


async def test_a_composite_is_marked_as_it_was_looked_at() -> None:
    client = Contended()

    await _gateway(client).substrates.hold_below(
        NETWORK, NAMESPACE, live=_seen(client), handle=HANDLE
    )

    labels = composites.mark(HANDLE, NAMESPACE)
    assert client.patches == [{"uid": UID, "resourceVersion": "1", "labels": labels}]
