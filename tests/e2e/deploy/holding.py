"""Putting our kinds and policies into force, and reading what they refuse.

What several tests of the policies do before they look.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from dev import binaries
from dev.controlplane import ControlPlane
from dev.objects import documents
from function.contract import names
from tests.e2e.deploy.identity import MASTERS, RECONCILER, Answer, Caller, wait_until
from tests.e2e.deploy.place import (
    CONFIG_MAP,
    LABEL_OFF,
    MACHINE,
    RECORD,
    RELEASED,
    SETTLED_TIMEOUT_S,
    SUBSTRATE,
    Object,
    Place,
    definition,
    held,
    manifest,
)

DEPLOY: Final = Path(__file__).resolve().parents[3] / "deploy"

ACTIVE_TIMEOUT_S: Final = 90.0
"""A policy is in force about two seconds after it was made."""

XRDS: Final = "/apis/apiextensions.crossplane.io/v2/compositeresourcedefinitions"
CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def apply_kinds(plane: ControlPlane) -> None:
    """Install our kinds, the roles, and the stand-ins."""
    plane.apply(
        DEPLOY / "namespace.yaml",
        DEPLOY / "crds",
        DEPLOY / "rbac",
        definition(SUBSTRATE),
        definition(MACHINE),
    )


def apply_policies(plane: ControlPlane, *policies: str) -> None:
    """Put policies into force, by file name without suffix, and wait until they refuse."""
    for policy in policies:
        plane.apply(DEPLOY / "policies" / f"{policy}.yaml")
    bindings = [
        binding
        for binding in documents([DEPLOY / "policies" / "bindings.yaml"])
        if binding["spec"]["policyName"].removeprefix("plexsphere-") in policies
    ]
    plane.apply(*bindings)
    place = Place(Caller(plane.kubeconfig))
    probes: dict[str, Callable[[], Answer]] = {
        "account": partial(
            place.admin.as_user(RECONCILER, MASTERS).create,
            f"{place.all(CONFIG_MAP)}?dryRun=All",
            manifest(CONFIG_MAP, "probe"),
        ),
        "hold": partial(place.admin.delete, f"{place.substrate()}?dryRun=All"),
        "hold-children": partial(place.admin.delete, f"{place.machine()}?dryRun=All"),
        "hold-records": partial(
            place.admin.patch,
            f"{make_record(place)}?dryRun=All",
            {"metadata": {"finalizers": None}},
        ),
    }
    for policy in policies:
        refuses = partial(_is_refused, probes[policy])
        wait_until(refuses, timeout_s=ACTIVE_TIMEOUT_S, what=f"{policy} refuses")
    place.clear()


def _is_refused(probe: Callable[[], Answer]) -> bool:
    return probe().status == 403


def await_deleted_xrd(admin: Caller, name: str) -> None:
    """Let go of a held XRD and its CRD, which has got the label from it, and delete them."""
    reconciler = admin.as_user(RECONCILER, MASTERS)
    reconciler.delete(f"{XRDS}/{name}")

    def gone() -> bool:
        reconciler.patch(f"{CRDS}/{name}", LABEL_OFF)
        return admin.get(f"{XRDS}/{name}").status == 404

    wait_until(gone, timeout_s=SETTLED_TIMEOUT_S, what=f"XRD {name} is gone")


def make_record(place: Place, **metadata: Any) -> str:
    """Create a record as the function would and return its path."""
    body = manifest(RECORD, f"web-{uuid4().hex[:10]}", finalizers=[names.FINALIZER], **metadata)
    body["spec"] = {
        "declaration": {
            "xr": {
                "apiVersion": names.API_VERSION,
                "kind": names.XR_KIND,
                "name": "web-1",
                "uid": str(uuid4()),
            },
            "resource": names.RESOURCE_SUBSTRATE,
            "blueprint": {"name": "generic-vm-v1alpha1", "version": "v1alpha1"},
            "injectionStrategy": "cloud-init-user-data",
            "meshRole": "node",
            "provider": "hetzner",
            "parameters": {"region": "nbg1", "diskSizeGb": 40, "backups": True},
        }
    }
    answer = place.admin.create(place.all(RECORD), body)
    assert answer.ok, answer.message
    return place.one(RECORD, body["metadata"]["name"])


def release(place: Place, path: str) -> None:
    """Release an object as the reconciler does."""
    body = {"metadata": {"annotations": RELEASED}}
    answer = place.admin.as_user(RECONCILER, MASTERS).patch(path, body)
    assert answer.ok, answer.message


def hold_namespace(place: Place, *, records: str) -> None:
    """Hold a namespace as the reconciler does."""
    metadata = {"labels": held(), "annotations": {names.ANNOTATION_RECORDS: records}}
    answer = place.admin.as_user(RECONCILER).patch(place.path, {"metadata": metadata})
    assert answer.ok, answer.message


def serve_xrds(plane: ControlPlane) -> None:
    """Install Crossplane's own definition of XRDs where nobody has."""
    name = "compositeresourcedefinitions.apiextensions.crossplane.io"
    if plane.cluster.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", name) is None:
        manifests = binaries.core_manifests(report=lambda _line: None)
        plane.apply(manifests.crds / f"apiextensions.crossplane.io_{name.partition('.')[0]}.yaml")
    admin = Caller(plane.kubeconfig)
    wait_until(lambda: admin.get(XRDS).ok, timeout_s=ACTIVE_TIMEOUT_S, what="XRDs are served")


def xrd(name: str) -> Object:
    """Return a held XRD; its name is `<plural>.<group>`."""
    plural, _, group = name.partition(".")
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.crossplane.io/v2",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": name, "labels": held()},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "XProbe", "plural": plural},
            "versions": [
                {
                    "name": "v1alpha1",
                    "served": True,
                    "referenceable": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def refused(answer: Answer, *words: str) -> bool:
    """Tell whether a policy of ours refused, with a message that holds all words."""
    if answer.status != 403 or "plexsphere-hold" not in answer.message:
        return False
    return all(word in answer.message for word in words)


def await_refusal(plane: ControlPlane, user: str, path: str) -> None:
    """Wait until a user's deletion of an object was refused, where that is audited."""
    wait_until(
        lambda: plane.audit_log is None or refusals(plane.audit_log, user, path),
        timeout_s=SETTLED_TIMEOUT_S,
        what=f"{user} is refused the deletion of {path}",
    )


def await_shown_refusal(place: Place, policy: str) -> None:
    """Wait until the status of a namespace in deletion names the policy that refuses."""
    wait_until(
        lambda: f"'{policy}'" in json.dumps(place.admin.get(place.path).body.get("status")),
        timeout_s=SETTLED_TIMEOUT_S,
        what=f"namespace {place.name} shows that {policy} refuses",
    )


def refusals(audit_log: Path, user: str, path: str) -> int:
    """Count a user's refused deletions of an object."""
    count = 0
    with audit_log.open(encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line)
            count += (
                event["user"]["username"] == user
                and event["requestURI"].partition("?")[0] == path
                and event["verb"] in {"delete", "deletecollection"}
                and event.get("responseStatus", {}).get("code") == 403
            )
    return count
