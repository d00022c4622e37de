"""Takes off an existing cluster what `make up` and `make demo` installed there.

Its order. Nobody imports it.

`BROKER_KUBECONFIG=… python -m dev.remove`, while neither of the two runs.
"""

import sys
import tempfile
from collections.abc import Callable, Iterable
from http import HTTPStatus
from pathlib import Path

from dev import arguments, binaries, handmade, stack
from dev.controlplane import EXISTING_CLUSTER, ControlPlane
from dev.kube import Cluster, KubeError, RefusedError
from dev.objects import Object, documents, title
from dev.process import ProcessError, wait_until

STEP_TIMEOUT_S = 60.0
"""Each step waits for Crossplane and the collectors; seconds on an idle machine."""

NODES = (
    (stack.PROVISIONING_API, "ProvisionedResource"),
    (stack.PROVISIONING_API, "ProvisioningRecord"),
    ("blueprints.plexsphere.com/v1alpha1", "XGenericVM"),
    ("cloud.demo.plexsphere.com/v1alpha1", "Machine"),
)
"""What is left of a node whose run was interrupted, the outermost first."""

OURS = stack.FUNCTION_NAME
BINDING = "ValidatingAdmissionPolicyBinding"
LATER = frozenset({HTTPStatus.FORBIDDEN, HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND})
"""A policy without its binding acts for some two seconds more; others write in between."""


def remove(cluster: Cluster) -> bool:
    """Remove everything, nodes without their deregistration: their mesh is gone already.

    Args:
        cluster: an administrator's client.

    Returns:
        Whether there was anything.

    Raises:
        KubeError: what is there was installed by somebody else, or does not go.

    Idempotency: a second call finishes what one that failed began. What shows whose the
    installation is goes last.
    """
    function = cluster.get(handmade.API, "Function", OURS)
    if function is None:
        return False
    if not handmade.is_ours(function):
        detail = "is from a package, not from `make up` or `make demo`"
        message = f"cannot remove installation: Function {OURS} {detail}"
        raise KubeError(message)
    deployed = list(documents(stack.ROOT / part for part in (*stack.DEPLOY, *stack.CLOUD)))
    definitions = (*stack.PRODUCT, *stack.BLUEPRINTS)
    _remove(cluster, (item for item in deployed if item["kind"] == BINDING))
    for kind in NODES:
        _remove(cluster, _found(cluster, *kind), strip=True)
    _remove(cluster, _projects(cluster))
    _remove(cluster, documents([stack.ROOT / "example/platform"]))
    _remove(cluster, _compositions(cluster))
    _remove(cluster, documents(stack.ROOT / part for part in definitions))
    _remove(cluster, reversed(deployed))
    functions = filter(handmade.is_ours, _found(cluster, handmade.API, "Function"))
    _remove(cluster, (item for item in functions if item["metadata"]["name"] != OURS))
    _remove(cluster, [function])
    return True


def _found(cluster: Cluster, api_version: str, kind: str) -> list[Object]:
    named = {"apiVersion": api_version, "kind": kind}
    return [{**item, **named} for item in cluster.list(api_version, kind)]


def _compositions(cluster: Cluster) -> list[Object]:
    """Answer every Composition of ProvisionedResources: tests make slower ones too."""
    kind = {"apiVersion": stack.PROVISIONING_API, "kind": "ProvisionedResource"}
    found = _found(cluster, "apiextensions.crossplane.io/v1", "Composition")
    return [item for item in found if item["spec"]["compositeTypeRef"] == kind]


def _projects(cluster: Cluster) -> list[Object]:
    """Answer the namespaces of Projects, which the reconciler made and holds."""
    projects = cluster.list(stack.PROVISIONING_API, "Project")
    names = [(item.get("status") or {}).get("namespace") for item in projects]
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        for name in names
        if name
    ]


def _remove(cluster: Cluster, items: Iterable[Object], *, strip: bool = False) -> None:
    """Delete objects and wait until they are gone.

    Args:
        cluster: the client.
        items: what to delete; need not exist.
        strip: take their finalizers off, where whoever would do it no longer runs.
    """
    left = list(items)
    refusals: dict[str, str] = {}

    def gone() -> bool:
        left[:] = [item for item in left if not _gone(cluster, item, refusals, strip=strip)]
        return not left

    try:
        wait_until(gone, timeout_s=STEP_TIMEOUT_S)
    except TimeoutError:
        listed = "; ".join(f"{title(item)} {refusals.get(title(item), '')}" for item in left)
        message = f"cannot remove installation in {STEP_TIMEOUT_S:g} s: {listed}"
        raise KubeError(message) from None


def _gone(cluster: Cluster, item: Object, refusals: dict[str, str], *, strip: bool) -> bool:
    metadata = item["metadata"]
    place = (item["apiVersion"], item["kind"], metadata["name"], metadata.get("namespace"))
    found = cluster.get(*place)
    if found is None:
        return True
    if "deletionTimestamp" not in found["metadata"]:
        _try(lambda: cluster.delete(*place), title(item), refusals)
    elif strip and found["metadata"].get("finalizers"):
        bare = {**found, "metadata": {**found["metadata"], "finalizers": []}}
        _try(lambda: cluster.replace(bare), title(item), refusals)
    return False


def _try(step: Callable[[], None], name: str, refusals: dict[str, str]) -> None:
    try:
        step()
    except RefusedError as error:
        if error.status not in LATER:
            raise
        refusals[name] = str(error)


def main() -> None:
    """Remove it from the cluster of `$BROKER_KUBECONFIG`."""
    arguments.none("dev.remove", main.__doc__)
    report = binaries.console()
    with tempfile.TemporaryDirectory() as folder:
        plane = ControlPlane.from_environment(Path(folder), report=report)
        if plane.is_ours:
            sys.exit(f"{EXISTING_CLUSTER} names no cluster; what `make up` starts keeps nothing")
        try:
            with plane:
                removed = remove(plane.cluster)
        except (KubeError, ProcessError) as error:
            sys.exit(f"remove: {error}")
    report("removed; Crossplane stays as it was" if removed else "nothing to remove")


if __name__ == "__main__":
    main()
