"""Who has which rights on an API server, asked and given.

Access reviews, and users with a role in one namespace. The end-to-end tests of `deploy/`
import it.
"""

from __future__ import annotations

from typing import Any, Final

from function.contract import names
from tests.e2e.deploy.identity import Caller, wait_until
from tests.e2e.deploy.place import Place

AGGREGATED_TIMEOUT_S: Final = 20.0
"""Roles are aggregated within a second or two."""

RECORDS: Final = f"{names.GROUP}/provisioningrecords"


def may(
    admin: Caller, user: str, verb: str, resource: str, *, namespace: str = "", name: str = ""
) -> bool:
    """Ask whether a user, or a group after a `@`, may do something.

    Args:
        admin: who asks.
        user: a name, or `@` and the name of a group.
        verb: as in a role.
        resource: group and resource, with a subresource after a further slash.
        namespace: empty for everywhere.
        name: of one object.
    """
    group, _, rest = resource.partition("/")
    kind, _, subresource = rest.partition("/")
    attributes = {
        "group": group,
        "resource": kind,
        "subresource": subresource,
        "verb": verb,
        "namespace": namespace,
        "name": name,
    }
    groups = ["system:authenticated", *([user[1:]] if user.startswith("@") else [])]
    spec: dict[str, Any] = {"user": user, "groups": groups, "resourceAttributes": attributes}
    answer = admin.create(
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec},
    )
    assert answer.ok, answer.message
    return bool(answer.body["status"]["allowed"])


def bind(place: Place, role: str) -> str:
    """Give a user of its own a role in a place, as a Project's tenants have it."""
    user = f"{role}-of-{place.name}"
    body = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": user},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": role,
        },
        "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
    }
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{place.name}/rolebindings"
    assert place.admin.create(path, body).ok
    wait_until(
        lambda: may(place.admin, user, "get", RECORDS, namespace=place.name),
        timeout_s=AGGREGATED_TIMEOUT_S,
        what=f"{user} has its role",
    )
    return user
