"""What each way of the deletion matrix does to a life, first and last.

Requests to the API server as the one who deletes would send them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final

from dev.kube import RefusedError
from function.contract import names
from tests.e2e import dropping
from tests.e2e.deploy.identity import BREAK_GLASS, MASTERS, Caller
from tests.e2e.deploy.place import RESOURCE_NAME
from tests.e2e.matrix import LONG_S, Life, Way
from tests.e2e.world import API, SUBSTRATE_API, let_go_of_namespace, namespace_went, wait_for
from tests.simulation.evidence import made
from tests.simulation.schedule import Kind

_DECOY: Final = {"apiVersion": "v1", "kind": "ConfigMap"}


def delete(life: Life) -> None:
    """Do what the way says, as far as it needs nobody's answer.

    Before it somebody who may patch objects tries to have the machine dropped, in every phase.
    """
    for handle in life.handles:
        dropping.assert_refused(life.node, handle)
    _FIRST[life.cell.way](life)
    if life.cell.way in _SIMULATED:
        made(_SIMULATED[life.cell.way])


def finish(life: Life) -> None:
    """Let the node go on, do the way's last step, and wait until nothing is left."""
    life.lift()
    if life.cell.way in _LAST:
        _LAST[life.cell.way](life)
    node = life.node
    for what, found in (("XR", node.xr), ("record", node.record)):
        wait_for(
            partial(_absent, found),
            f"{life.cell}: {what} gone",
            timeout_s=LONG_S,
            explain=node.explain,
        )
    for handle in life.all_handles():
        life.assert_over(handle)
    if life.cell.way is Way.DECOY:
        _decoy_stays(life)


def _absent(find: Callable[[], object]) -> bool:
    return find() is None


def _xr(life: Life, propagation: str) -> None:
    with suppress(RefusedError):
        life.node.delete(propagation=propagation)


def _record(life: Life) -> None:
    if life.node.record() is not None:
        with suppress(RefusedError):
            life.node.delete_record()


def _collection(life: Life) -> None:
    xrs = life.cluster.resource(API, "ProvisionedResource")
    xrs.delete(namespace=life.node.namespace, field_selector=f"metadata.name={life.node.name}")


def _namespace(life: Life) -> None:
    def asked() -> bool:
        # The reconciler puts its label back between the two, now and then.
        let_go_of_namespace(life.stack, life.node.namespace)
        try:
            life.cluster.delete("v1", "Namespace", life.node.namespace)
        except RefusedError as error:
            if error.status != 403:
                raise
            return False
        return True

    wait_for(asked, f"{life.cell}: namespace asked to go")


def _break_glass(life: Life) -> None:
    glass = Caller(life.stack.plane.kubeconfig).as_user("jane", BREAK_GLASS, MASTERS)
    handle = life.handles[0]
    path = f"/apis/{SUBSTRATE_API}/namespaces/{life.node.namespace}/xgenericvms/{handle}"
    assert glass.delete(path).status in {200, 202, 404}


def _vanished(life: Life) -> None:
    record = life.node.record()
    if record is None:
        return
    glass = Caller(life.stack.plane.kubeconfig).as_user("jane", BREAK_GLASS, MASTERS)
    name = record["metadata"]["name"]
    path = f"/apis/{API}/namespaces/{life.node.namespace}/provisioningrecords/{name}"
    assert glass.delete(path).status in {200, 202, 404}
    assert glass.patch(path, {"metadata": {"finalizers": None}}).status in {200, 404}


def _decoy(life: Life) -> None:
    """Name another object as the substrate, by the right to edit the XR, and delete the XR."""
    node = life.node
    named = {"name": _decoy_name(life), "namespace": node.namespace}
    annotations = {RESOURCE_NAME: names.RESOURCE_SUBSTRATE}
    life.stack.plane.apply({**_DECOY, "metadata": {**named, "annotations": annotations}})
    jane = Caller(life.stack.plane.kubeconfig).as_user("jane", MASTERS)
    path = f"/apis/{API}/namespaces/{node.namespace}/provisionedresources/{node.name}"
    spec = jane.get(path).body.get("spec", {})
    known = spec.get("crossplane", {}).get("resourceRefs", [])
    refs = {"resourceRefs": [*known, {**_DECOY, "name": _decoy_name(life)}]}
    assert jane.patch(path, {"spec": {"crossplane": refs}}).status in {200, 404}
    _xr(life, "Background")


def _decoy_stays(life: Life) -> None:
    """Nobody takes the decoy for the machine: it is there as it was, until its owner deletes it."""
    at = (life.node.namespace, _decoy_name(life))
    found = life.cluster.get("v1", "ConfigMap", at[1], at[0])
    assert found is not None
    assert "labels" not in found["metadata"]
    life.cluster.delete("v1", "ConfigMap", at[1], at[0])


def _decoy_name(life: Life) -> str:
    return f"{life.node.name}-decoy"


def _orphaned_record(life: Life) -> None:
    wait_for(lambda: life.node.xr() is None, f"{life.cell}: XR gone", timeout_s=LONG_S)
    _record(life)


def _namespace_gone(life: Life) -> None:
    went = partial(namespace_went, life.stack, life.node.namespace)
    wait_for(went, f"{life.cell}: namespace gone", timeout_s=LONG_S)


_SIMULATED: Final[Mapping[Way, Kind]] = {
    Way.BACKGROUND: Kind.DELETE_BACKGROUND,
    Way.FOREGROUND: Kind.DELETE_FOREGROUND,
    Way.ORPHAN: Kind.DELETE_ORPHAN,
    Way.RECORD: Kind.DELETE_RECORD,
    Way.VANISHED: Kind.STRIP_FINALIZER,
    Way.BREAK_GLASS: Kind.BREAK_GLASS,
}
"""What the simulation calls them."""

_FIRST: Final[Mapping[Way, Callable[[Life], None]]] = {
    Way.BACKGROUND: partial(_xr, propagation="Background"),
    Way.FOREGROUND: partial(_xr, propagation="Foreground"),
    Way.ORPHAN: partial(_xr, propagation="Orphan"),
    Way.RECORD: _record,
    Way.COLLECTION: _collection,
    Way.NAMESPACE: _namespace,
    Way.BREAK_GLASS: _break_glass,
    Way.VANISHED: _vanished,
    Way.DECOY: _decoy,
}

_LAST: Final[Mapping[Way, Callable[[Life], None]]] = {
    Way.ORPHAN: _orphaned_record,
    Way.RECORD: partial(_xr, propagation="Background"),
    Way.NAMESPACE: _namespace_gone,
    Way.BREAK_GLASS: partial(_xr, propagation="Background"),
    Way.VANISHED: partial(_xr, propagation="Background"),
}
