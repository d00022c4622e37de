"""Who somebody is to an API server, and how to become a service account.

Token kubeconfigs and self-reviews. Everything in `dev` and the end-to-end tests may import
it.
"""

from datetime import timedelta
from pathlib import Path

from dev import kubeconfig
from dev.kube import REQUEST_TIMEOUT_S, Cluster, refusals

TOKEN_LIFETIME = timedelta(hours=24)
"""Longer than any session; nothing here renews a token."""

AUTHENTICATION_API = "authentication.k8s.io/v1"


def service_account_kubeconfig(cluster: Cluster, namespace: str, name: str, path: Path) -> Path:
    """Write a kubeconfig with a fresh token of a service account; answers `path`.

    Raises:
        RefusedError: 404 when the account does not exist.
    """
    request = {
        "apiVersion": AUTHENTICATION_API,
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": int(TOKEN_LIFETIME.total_seconds())},
    }
    token = cluster.resource("v1", "ServiceAccount").token
    with refusals(f"make token of ServiceAccount {namespace}/{name}"):
        answer = token.create(
            body=request, name=name, namespace=namespace, _request_timeout=REQUEST_TIMEOUT_S
        )
    user = {"token": answer.status.token}
    entry = kubeconfig.document(kubeconfig.portable_cluster(cluster.kubeconfig), user)
    return kubeconfig.write(path, entry)


def whoami(cluster: Cluster) -> tuple[str, frozenset[str]]:
    """Answer a client's user name and groups, as the API server sees them.

    Raises:
        RefusedError: the server does not know the client.
    """
    review = {"apiVersion": AUTHENTICATION_API, "kind": "SelfSubjectReview"}
    with refusals("review own identity"):
        answer = cluster.resource(AUTHENTICATION_API, "SelfSubjectReview").create(
            body=review, _request_timeout=REQUEST_TIMEOUT_S
        )
    user = answer.to_dict()["status"]["userInfo"]
    return str(user["username"]), frozenset(user.get("groups") or ())
