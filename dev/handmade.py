"""A Function and its revision, made without any package.

The documents that make core call a process on this host. Only `dev.crossplane` and tests
import it.

Composing needs the revision's label, its state, its endpoint and its capability.
Everything else is there for people and for gates that ask whether the Function is
healthy.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

API = "pkg.crossplane.io/v1"

PLACE = "packages.invalid/broker-dev"
"""What the packages claim to come from; RFC 2606 keeps it unreachable."""

PAUSED = {"crossplane.io/paused": "true"}
"""Keeps core's package manager from looking for packages that do not exist."""

COMPOSITION = "composition"
"""The capability that a Composition's step asks of a function."""


def function(name: str) -> dict[str, Any]:
    """Describe the Function."""
    return {
        "apiVersion": API,
        "kind": "Function",
        "metadata": {"name": name, "annotations": PAUSED},
        "spec": {"package": _package(name), "packagePullPolicy": "Never"},
    }


def is_ours(function: Mapping[str, Any]) -> bool:
    """Tell whether a Function was made by hand here, and not installed from a package."""
    return str(function["spec"]["package"]).startswith(f"{PLACE}/")


def revision(name: str, *, owner_uid: str) -> dict[str, Any]:
    """Describe its only revision, which goes when the Function goes."""
    owner = {
        "apiVersion": API,
        "kind": "Function",
        "name": name,
        "uid": owner_uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": API,
        "kind": "FunctionRevision",
        "metadata": {
            "name": revision_name(name),
            "labels": {"pkg.crossplane.io/package": name},
            "annotations": PAUSED,
            "ownerReferences": [owner],
        },
        "spec": {
            "image": _package(name),
            "packagePullPolicy": "Never",
            "desiredState": "Active",
            "revision": 1,
        },
    }


def revision_status(name: str, address: str, now: datetime) -> dict[str, Any]:
    """Describe the revision's status: where core finds the function.

    Args:
        name: the function's.
        address: `host:port`; the host must be a name in the function's certificate.
        now: aware; becomes the time of the conditions.
    """
    conditions = [_true("RevisionHealthy", now), _true("RuntimeHealthy", now)]
    return {
        "apiVersion": API,
        "kind": "FunctionRevision",
        "metadata": {"name": revision_name(name)},
        "status": {
            "endpoint": f"dns:///{address}",
            "capabilities": [COMPOSITION],
            "conditions": conditions,
        },
    }


def function_status(name: str, now: datetime) -> dict[str, Any]:
    """Describe the Function's status, as the package manager would leave it."""
    return {
        "apiVersion": API,
        "kind": "Function",
        "metadata": {"name": name},
        "status": {
            "conditions": [_true("Installed", now), _true("Healthy", now)],
            "currentRevision": revision_name(name),
        },
    }


def revision_name(name: str) -> str:
    """Name the only revision of a function."""
    return f"{name}-dev"


def _package(name: str) -> str:
    return f"{PLACE}/{name}:v0.0.0"


def _true(condition: str, now: datetime) -> dict[str, str]:
    return {
        "type": condition,
        "status": "True",
        "reason": "RegisteredByHand",
        "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
