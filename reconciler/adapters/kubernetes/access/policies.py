"""Checks that the admission policies in force are those this version relies on.

A policy of the right name may exempt somebody, leave a namespace out, fail open or only audit. So
what is compared is what the API server would judge by: the digest of each policy's rules, and that
one of its bindings denies everywhere. `make generate` writes the digests from `deploy/policies`.

Reading and judging policies. Source: design §2 "What holds it", docs/decisions/0026.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from reconciler.adapters.kubernetes.access.policy_digests import DIGESTS
from reconciler.adapters.kubernetes.transport.client import KubernetesClient, Object

_ROOT: Final = "/apis/admissionregistration.k8s.io/v1"
_NOWHERE: Final[Object] = {}


def digest(spec: Mapping[str, Any]) -> str:
    """Return the digest of what a ValidatingAdmissionPolicy decides, as 64 hex digits.

    Messages do not count, and a default that the API server adds counts as left out.
    """
    constraints = spec.get("matchConstraints") or _NOWHERE
    decisive = {
        "failurePolicy": spec.get("failurePolicy", "Fail"),
        "paramKind": spec.get("paramKind"),
        "matchPolicy": constraints.get("matchPolicy", "Equivalent"),
        "objectSelector": _selector(constraints.get("objectSelector")),
        "namespaceSelector": _selector(constraints.get("namespaceSelector")),
        "resourceRules": _rules(constraints.get("resourceRules")),
        "excludeResourceRules": _rules(constraints.get("excludeResourceRules")),
        "matchConditions": _named(spec.get("matchConditions")),
        "variables": _named(spec.get("variables")),
        "validations": [item["expression"] for item in spec.get("validations") or ()],
    }
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()


async def problem(client: KubernetesClient) -> str | None:
    """Name the first policy that does not hold what this version relies on, and why; None: all do.

    The answer is of now, by live reads: one for each policy and one for the bindings.
    """
    for name, wanted in DIGESTS.items():
        found = await client.get(f"{_ROOT}/validatingadmissionpolicies/{name}")
        if found is None:
            return f"{name} is missing"
        if digest(found["spec"]) != wanted:
            return f"{name} has different rules than deploy/policies of this version"
    listed = await client.request("GET", f"{_ROOT}/validatingadmissionpolicybindings")
    specs = [item["spec"] for item in listed.get("items") or []]
    return next(
        (
            f"{name} has no binding that denies for every object without parameters"
            for name in DIGESTS
            if not _denies(spec for spec in specs if spec["policyName"] == name)
        ),
        None,
    )


def _denies(bindings: Iterable[Mapping[str, Any]]) -> bool:
    return any(
        "Deny" in (spec.get("validationActions") or ())
        and spec.get("paramRef") is None
        and _matches_all(spec.get("matchResources") or _NOWHERE)
        for spec in bindings
    )


def _matches_all(resources: Mapping[str, Any]) -> bool:
    """Tell whether a binding adds no condition of its own to its policy's."""
    nothing = _selector(None)
    return (
        _selector(resources.get("objectSelector")) == nothing
        and _selector(resources.get("namespaceSelector")) == nothing
        and not resources.get("resourceRules")
        and not resources.get("excludeResourceRules")
    )


def _selector(selector: Mapping[str, Any] | None) -> Object:
    found = selector or _NOWHERE
    return {
        "matchLabels": found.get("matchLabels") or {},
        "matchExpressions": found.get("matchExpressions") or [],
    }


def _rules(rules: Iterable[Mapping[str, Any]] | None) -> list[Object]:
    return [{"scope": "*", **rule} for rule in rules or ()]


def _named(items: Iterable[Mapping[str, Any]] | None) -> list[tuple[str, str]]:
    return [(item["name"], item["expression"]) for item in items or ()]
