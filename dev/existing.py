"""A cluster that somebody else runs: whether the broker can be tried on it.

What must be true of it before anything is written, each as one line for people.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dev import accounts, chart, crossplane, handmade, kubeconfig
from dev.kube import REQUEST_TIMEOUT_S, Cluster, KubeError, refusals

OLDEST = (1, 30)
"""The first Kubernetes whose admission policies are stable."""

NEEDS = (
    ("create", "", "namespaces"),
    ("create", "", "secrets"),
    ("get", "", "secrets"),
    ("create", "", "serviceaccounts"),
    ("create", "", "serviceaccounts/token"),
    ("create", "apiextensions.k8s.io", "customresourcedefinitions"),
    ("create", "rbac.authorization.k8s.io", "clusterroles"),
    ("escalate", "rbac.authorization.k8s.io", "clusterroles"),
    ("bind", "rbac.authorization.k8s.io", "clusterroles"),
    ("create", "rbac.authorization.k8s.io", "clusterrolebindings"),
    ("create", "admissionregistration.k8s.io", "validatingadmissionpolicies"),
    ("create", "admissionregistration.k8s.io", "validatingadmissionpolicybindings"),
)
"""What is asked of the given user on any cluster: verb, API group, resource."""

CROSSPLANE_NEEDS = (
    ("create", "pkg.crossplane.io", "functions"),
    ("patch", "pkg.crossplane.io", "functionrevisions/status"),
    ("create", "apiextensions.crossplane.io", "compositeresourcedefinitions"),
    ("create", "apiextensions.crossplane.io", "compositions"),
)
"""The same where Crossplane is used."""

XRDS = "compositeresourcedefinitions.apiextensions.crossplane.io"
"""The kind whose v2 came with Crossplane 2."""

REVIEW_API = "authorization.k8s.io/v1"


def check_kubeconfig(path: Path) -> None:
    """Insist that a kubeconfig means a cluster.

    Raises:
        KubeError: why it does not, in one line.
    """
    try:
        kubeconfig.portable_cluster(path)
    except ValueError as error:
        raise KubeError(str(error)) from error


def check_access(cluster: Cluster) -> None:
    """Insist that the cluster is reached, new enough, and the user allowed enough.

    Raises:
        KubeError: what is missing, in one line.
    """
    version = cluster.version()
    numbers = tuple(int(text) for text in re.findall(r"\d+", version)[:2])
    if numbers < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        message = f"cannot use cluster: it is Kubernetes {version}, and {wanted} is the oldest"
        raise KubeError(message)
    _insist_on_rights(cluster, NEEDS)
    # Only a controller manager that uses accounts of their own makes this one.
    if cluster.get("v1", "ServiceAccount", "generic-garbage-collector", "kube-system") is None:
        message = (
            "cannot use cluster: its kube-controller-manager runs without "
            "--use-service-account-credentials, which the admission policies need"
        )
        raise KubeError(message)


def check_crossplane(cluster: Cluster, *functions: str) -> None:
    """Insist that Crossplane 2 is there, and that no other installation would be disturbed.

    Args:
        cluster: the client that will install.
        functions: names that will be registered by hand.

    Raises:
        KubeError: what is missing or in the way, in one line.
    """
    definition = cluster.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", XRDS)
    versions = [] if definition is None else definition["spec"]["versions"]
    account = cluster.get("v1", "ServiceAccount", crossplane.ACCOUNT, chart.NAMESPACE)
    if account is None or "v2" not in [version["name"] for version in versions]:
        where = f"with service account {crossplane.ACCOUNT} in namespace {chart.NAMESPACE}"
        message = f"cannot use cluster: it has no Crossplane 2.2 or later {where}"
        raise KubeError(message)
    _insist_on_rights(cluster, CROSSPLANE_NEEDS)
    for name in functions:
        found = cluster.get(handmade.API, "Function", name)
        if found is not None and not handmade.is_ours(found):
            detail = "is installed from a package already, and this would replace it"
            message = f"cannot use cluster: Function {name} {detail}"
            raise KubeError(message)


def check_no_nodes(cluster: Cluster) -> None:
    """Insist that no node lives there of which a fresh Postgres knows nothing.

    Raises:
        KubeError: ProvisioningRecords exist; names the first and counts them.
    """
    found = cluster.list("provisioning.plexsphere.com/v1alpha1", "ProvisioningRecord")
    if found:
        metadata = found[0]["metadata"]
        message = (
            f"cannot use cluster: an empty Postgres does not know its ProvisioningRecords"
            f" ({len(found)}, one is {metadata['namespace']}/{metadata['name']});"
            " give the one that does as PLEXSPHERE_DSN, or, when an interrupted run left"
            " them, remove what it installed with `python -m dev.remove`"
        )
        raise KubeError(message)


def _insist_on_rights(cluster: Cluster, needs: tuple[tuple[str, str, str], ...]) -> None:
    missing = [need for need in needs if not _may(cluster, *need)]
    if missing:
        user, _ = accounts.whoami(cluster)
        listed = ", ".join(
            f"{verb} {resource}{'.' if group else ''}{group}" for verb, group, resource in missing
        )
        message = f"cannot use cluster: user {user} may not {listed}"
        raise KubeError(message)


def _may(cluster: Cluster, verb: str, group: str, resource: str) -> bool:
    name, _, subresource = resource.partition("/")
    asked: Mapping[str, Any] = {
        "verb": verb,
        "group": group,
        "resource": name,
        "subresource": subresource,
    }
    review = {
        "apiVersion": REVIEW_API,
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": asked},
    }
    with refusals("review own rights"):
        answer = cluster.resource(REVIEW_API, "SelfSubjectAccessReview").create(
            body=review, _request_timeout=REQUEST_TIMEOUT_S
        )
    return bool(answer.status.allowed)
