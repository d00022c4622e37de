"""Who may not write any more sends nothing that changes anything."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast
from uuid import uuid4

import pytest

from function.contract import names
from function.contract.record import SubstrateReference
from reconciler.adapters.kubernetes.gateway import KubernetesGateway
from reconciler.adapters.kubernetes.namespaces.projects import KubernetesProjectGateway
from reconciler.adapters.kubernetes.transport.client import KubernetesClient
from reconciler.domain.protection.provider_config import ANNOTATION_CREDENTIAL
from reconciler.ports.store.lease import FencedError, Lease
from tests.contract.cluster_worlds import token

UID = str(uuid4())
NAMESPACE = "plexsphere-project-x"
REFERENCE = SubstrateReference(api_version="example.org/v1", kind="VM", name="vm")
RECORD: dict[str, Any] = {
    "metadata": {
        "name": "web", "namespace": NAMESPACE, "uid": UID, "resourceVersion": "1",
        "finalizers": [names.FINALIZER],
        "labels": {names.LABEL_HOLD: "true"},
        "annotations": {ANNOTATION_CREDENTIAL: "demo", names.ANNOTATION_RECORDS: "1"},
        "ownerReferences": [{"uid": UID}],
    }
}  # fmt: skip


class OneObject:
    """An API server where every path leads to one object."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    async def get(self, path: str, *, accept: str = "") -> dict[str, Any]:
        return RECORD

    async def path(self, api_version: str, kind: str, *, namespace: str, name: str) -> str:
        return f"/apis/{api_version}/namespaces/{namespace}/{kind.lower()}s/{name}"

    async def request(self, method: str, path: str, **_: Any) -> dict[str, Any]:
        if method != "GET":
            self.sent.append(f"{method} {path}")
        return {**RECORD, "resources": []}


async def _needed() -> bool:
    return False


CALLS: dict[str, Callable[[KubernetesGateway], Awaitable[object]]] = {
    "hold namespace": lambda it: it.namespaces.hold_namespace(NAMESPACE, records=2),
    "let namespace go": lambda it: it.namespaces.hold_namespace(
        NAMESPACE, records=0, needed=_needed
    ),
    "create token": lambda it: it.token_secrets.create_token_secret(
        RECORD, name="web-g1", token=token()
    ),
    "delete token": lambda it: it.token_secrets.delete_token_secret(NAMESPACE, "web-g1", owner=UID),
    "delete provider config": lambda it: it.provider_configs.delete_provider_config(
        api_version="example.org/v1", namespace=NAMESPACE, name="demo", needed=_needed
    ),
    "let credentials go": lambda it: it.credentials.hold_credentials(
        NAMESPACE, "secret", held=False, needed=_needed
    ),
    "release": lambda it: it.substrates.release(REFERENCE, NAMESPACE, uid=UID),
    "let go": lambda it: it.substrates.let_go(REFERENCE, NAMESPACE, uid=UID),
    "delete": lambda it: it.substrates.delete_object(REFERENCE, NAMESPACE, uid=UID),
    "write status": lambda it: it.records.write_status(RECORD, {"phase": "Ready"}),
    "delete record": lambda it: it.records.delete_loose_record(RECORD),
    "remove finalizer": lambda it: it.records.remove_finalizer(RECORD),
    "record event": lambda it: it.records.record_event(RECORD, reason="Ready", message="It is."),
}


def _over() -> None:
    raise FencedError(Lease(key=uuid4(), holder="former", fence=1))


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
async def test_nothing_is_sent_once_the_term_is_over(
    call: Callable[[KubernetesGateway], Awaitable[object]],
) -> None:
    client = OneObject()

    with pytest.raises(FencedError):
        await call(KubernetesGateway(cast("KubernetesClient", client), _over))

    assert client.sent == []


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
async def test_each_of_them_sends_something_before(
    call: Callable[[KubernetesGateway], Awaitable[object]],
) -> None:
    client = OneObject()

    await call(KubernetesGateway(cast("KubernetesClient", client)))

    assert client.sent


async def test_nor_is_a_projects_status() -> None:
    client = OneObject()
    gateway = KubernetesProjectGateway(
        cast("KubernetesClient", client), domains=cast("Any", None), may_write=_over
    )

    with pytest.raises(FencedError):
        await gateway.write_project_status(RECORD, {"phase": "Ready"})

    assert client.sent == []
