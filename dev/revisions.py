"""Functions that came in a package and run as processes on this host.

Telling core where the revision of an installed Function is served, and the order in which
an upgrade leaves no moment without one. Everything in `dev` and the tests may import it.

Core with the External runtime starts nothing: it calls the endpoint in an *active*
revision's status, which somebody else writes. Its package manager takes the old revision out
of service first and puts the new one in afterwards; what is reconciled in between fails. So
here the new one is active, on the old one's endpoint, before the package manager is asked.
"""

import contextlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from dev import chart
from dev.kube import Cluster
from dev.objects import Object
from dev.process import wait_until

API = "pkg.crossplane.io/v1"
PACKAGE_LABEL = "pkg.crossplane.io/package"

PAUSED = {"crossplane.io/paused": "true"}

SWITCH_TIMEOUT_S = 60.0
"""Each step of an upgrade takes core some tenths of a second; it backs off now and then."""

DIGEST_CHARACTERS = 12
NAME_CHARACTERS = 50
"""How much of each core puts into a revision's name.

Source: crossplane-runtime, `xpkg.FriendlyID`.
"""


def of(cluster: Cluster, function: str) -> list[Object]:
    """Answer the revisions of a Function, the oldest first."""
    found = cluster.list(API, "FunctionRevision", label_selector=f"{PACKAGE_LABEL}={function}")
    return sorted(found, key=lambda revision: int(revision["spec"]["revision"]))


def active(cluster: Cluster, function: str) -> Object | None:
    """Answer the revision that core calls; `None` while there is none."""
    states = {r["spec"]["desiredState"]: r for r in of(cluster, function)}
    return states.get("Active")


def serve(cluster: Cluster, revision: str, port: int, certificates: Path) -> None:
    """Say that a revision is served on a port of this host.

    Args:
        cluster: an administrator's client.
        revision: its name.
        port: where the function serves mutual TLS as `localhost`.
        certificates: its folder; core wants to see a certificate before it says Healthy.

    Raises:
        RefusedError: 404 when there is no such revision.

    Idempotency: a second call moves the revision to another port.
    """
    secret = f"{revision}-tls"
    # Core looks for the Secret once the status names it, and backs off when it is not there.
    cluster.apply(_certificate(secret, certificates))
    cluster.apply_status(_status(revision, f"dns:///localhost:{port}", secret))


def prepare(cluster: Cluster, function: str, package: str, digest: str) -> str:
    """Make the inactive revision that an update to `package` activates; answers its name.

    Args:
        cluster: an administrator's client.
        function: name of the installed Function.
        package: what `spec.package` will be.
        digest: of the package's manifest, as `sha256:…`.

    Raises:
        RefusedError: the server refuses it.
        LookupError: there is no such Function.
        TimeoutError: core did not read the package, or found it bad.

    Idempotency: a revision that exists stays as it is, active or not.
    """
    owner = _found(cluster, "Function", function)
    name = revision_name(function, digest)
    found = of(cluster, function)
    if all(revision["metadata"]["name"] != name for revision in found):
        number = max((int(revision["spec"]["revision"]) for revision in found), default=0) + 1
        cluster.apply(_revision(name, owner, package, number))
    wait_until(lambda: _is_unpacked(cluster, name), timeout_s=SWITCH_TIMEOUT_S)
    return name


@contextlib.contextmanager
def both_active(cluster: Cluster, function: str, revision: str) -> Iterator[None]:
    """Keep a prepared revision active beside the current one; update the Function inside.

    Both have the current one's endpoint meanwhile: core drops its connection, and the calls on
    it, whenever it finds another endpoint. The new revision is paused so long, because core
    can resolve dependencies of one revision of a package only. Call `serve` afterwards.

    Args:
        cluster: an administrator's client.
        function: name of the installed Function.
        revision: what `prepare` answered.

    Raises:
        TimeoutError: core did not do its part; no active revision is without an endpoint.
        LookupError: no revision is active.

    Idempotency: an upgrade that was broken off is done again from `prepare` on.
    """
    current = active(cluster, function)
    if current is None:
        message = f"cannot upgrade {function}: no revision is active"
        raise LookupError(message)
    status = current["status"]
    cluster.apply_status(_status(revision, status["endpoint"], status["tlsServerSecretName"]))
    _pause(cluster, "Function", {"metadata": {"name": function, "annotations": PAUSED}})
    try:
        _pause(cluster, "FunctionRevision", _ours(cluster, revision, PAUSED, "Inactive"))
        cluster.apply(_ours(cluster, revision, PAUSED, "Active"))
        yield
    finally:
        cluster.apply({"apiVersion": API, "kind": "Function", "metadata": {"name": function}})
    wait_until(lambda: _active(cluster, function) == [revision], timeout_s=SWITCH_TIMEOUT_S)
    cluster.apply(_ours(cluster, revision, {}, "Active"))
    wait_until(lambda: _is_unpacked(cluster, revision), timeout_s=SWITCH_TIMEOUT_S)


def revision_name(function: str, digest: str) -> str:
    """Name the revision of a Function that is made from a manifest, as core does."""
    return f"{function[:NAME_CHARACTERS]}-{digest.removeprefix('sha256:')[:DIGEST_CHARACTERS]}"


def _revision(name: str, owner: Object, package: str, number: int) -> Object:
    function = owner["metadata"]["name"]
    reference = {
        "apiVersion": API,
        "kind": "Function",
        "name": function,
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": API,
        "kind": "FunctionRevision",
        "metadata": {
            "name": name,
            "labels": {PACKAGE_LABEL: function},
            "ownerReferences": [reference],
        },
        "spec": {"image": package, "desiredState": "Inactive", "revision": number},
    }


def _ours(cluster: Cluster, name: str, annotations: Mapping[str, str], state: str) -> Object:
    """Describe a revision again as `_revision` did: what an apply leaves out is taken off."""
    found = _found(cluster, "FunctionRevision", name)
    metadata = {key: found["metadata"][key] for key in ("name", "labels", "ownerReferences")}
    spec = {key: found["spec"][key] for key in ("image", "revision")}
    return {
        "apiVersion": API,
        "kind": "FunctionRevision",
        "metadata": {**metadata, "annotations": dict(annotations)},
        "spec": {**spec, "desiredState": state},
    }


def _pause(cluster: Cluster, kind: str, item: Object) -> None:
    """Apply an object that says so, and wait until core has stopped reconciling it."""
    cluster.apply({**item, "apiVersion": API, "kind": kind})
    name = item["metadata"]["name"]
    wait_until(
        lambda: any(
            condition["reason"] == "ReconcilePaused"
            for condition in _conditions(_found(cluster, kind, name))
        ),
        timeout_s=SWITCH_TIMEOUT_S,
    )


def _active(cluster: Cluster, function: str) -> list[str]:
    found = of(cluster, function)
    return [r["metadata"]["name"] for r in found if r["spec"]["desiredState"] == "Active"]


def _is_unpacked(cluster: Cluster, revision: str) -> bool:
    return any(
        (condition["type"], condition["status"]) == ("RevisionHealthy", "True")
        for condition in _conditions(_found(cluster, "FunctionRevision", revision))
    )


def _conditions(found: Object) -> list[Object]:
    return list((found.get("status") or {}).get("conditions") or [])


def _found(cluster: Cluster, kind: str, name: str) -> Object:
    found = cluster.get(API, kind, name)
    if found is None:
        message = f"cannot upgrade function: no {kind} {name}"
        raise LookupError(message)
    return found


def _certificate(name: str, folder: Path) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": chart.NAMESPACE},
        "stringData": {"tls.crt": (folder / "tls.crt").read_text(encoding="utf-8")},
    }


def _status(revision: str, endpoint: str, secret: str) -> Object:
    healthy = {
        "type": "RuntimeHealthy",
        "status": "True",
        "reason": "ServedOnThisHost",
        "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    return {
        "apiVersion": API,
        "kind": "FunctionRevision",
        "metadata": {"name": revision},
        "status": {
            "endpoint": endpoint,
            "tlsServerSecretName": secret,
            "conditions": [healthy],
        },
    }
