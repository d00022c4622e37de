"""The RoleBinding that gives our account its rights in a Project's namespace.

Making it, repairing it, and the hold on it. It cannot be made once its namespace is in
deletion, so it is held while a node there may need it for its teardown. Source:
docs/decisions/0019.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from function.contract import names
from reconciler.adapters.kubernetes.objects.writes import Effects, is_marked
from reconciler.adapters.kubernetes.transport.client import (
    MERGE,
    METADATA_ONLY,
    KubernetesClient,
    KubernetesError,
    Object,
)
from reconciler.domain.aggregate.errors import StaleAggregateError
from reconciler.ports.cluster.substrates import NotAllowedError

BINDING: Final = "provisioning-broker"
ROLE: Final = "provisioning-broker-project"

_API: Final = "rbac.authorization.k8s.io"
_ROLE_REF: Final = {"apiGroup": _API, "kind": "ClusterRole", "name": ROLE}
_SUBJECTS: Final = [
    {"kind": "ServiceAccount", "name": "provisioning-broker", "namespace": "plexsphere-system"}
]
"""The account under whose name the policies know us, wherever we run."""

_LABELS: Final = {"app.kubernetes.io/part-of": "plexsphere-provisioning-broker"}
_TERMINATING: Final = "NamespaceTerminating"


class ProjectRights:
    """Our rights in the namespaces of one API server."""

    def __init__(self, client: KubernetesClient, effects: Effects) -> None:
        self._client = client
        self._effects = effects

    @asynccontextmanager
    async def exercised(self, namespace: str) -> AsyncIterator[None]:
        """Mend what gives the rights where something is forbidden, so that the next try has them.

        Raises:
            NotAllowedError: They are lacking, and cannot be had: nothing new is made in a
                namespace that is in deletion.
        """
        try:
            yield
        except KubernetesError as error:
            if error.status != 403 or await self._stand(namespace, held=False) is not None:
                raise
            message = (
                f"cannot use the reconciler's rights in namespace {namespace!r}: RoleBinding "
                f"{BINDING!r} is missing and cannot be created while the namespace is terminating; "
                f"bind ClusterRole {ROLE!r} to its ServiceAccount with a ClusterRoleBinding until "
                "the namespace is gone"
            )
            raise NotAllowedError(message) from error

    async def hold(self, namespace: str) -> bool:
        """Have the RoleBinding, held; tell whether it stands and is going to.

        Raises:
            StaleAggregateError: It was written while it was to be held.

        Idempotency: one that is as it should be is not written.
        """
        found = await self._stand(namespace, held=True)
        return found is not None and "deletionTimestamp" not in found["metadata"]

    async def held(self, namespace: str) -> Object | None:
        """Return the RoleBinding if it is held; it is made, or fixed, without a hold."""
        found = await self._stand(namespace, held=False)
        return None if found is None or not _is_held(found) else found

    async def mark(self, namespace: str, held: Object) -> Object | None:
        """Mark the RoleBinding as one that is about to be released; None when it is gone."""
        return await self._effects.marked(_path(namespace), held, _nobody, accept=METADATA_ONLY)

    async def let_go(self, namespace: str, marked: Object) -> None:
        """Take the hold off the RoleBinding as it was marked; itself it stays.

        Raises:
            StaleAggregateError: It was written since by somebody who does not need it.
        """
        path = _path(namespace)
        changed = await self._effects.change(
            path,
            marked,
            labels={names.LABEL_HOLD: None},
            annotations={names.ANNOTATION_RELEASING: None},
        )
        if not changed:
            await self._effects.surely_let_go(path, accept=METADATA_ONLY)

    async def _stand(self, namespace: str, *, held: bool) -> Object | None:
        """Make the RoleBinding, or fix it, and return it.

        Args:
            namespace: Where.
            held: Put the hold on it; one that is on stays in any case.

        Returns:
            The RoleBinding; None where there is none, and none can be made any more.

        Raises:
            StaleAggregateError: It was written meanwhile.
        """
        path = _path(namespace)
        found = await self._client.get(path)
        if found is not None and found.get("roleRef") != _ROLE_REF:
            # Somebody took the name; a RoleBinding's role cannot be changed.
            await self._effects.delete(path, uid=found["metadata"]["uid"])
            found = None
        if found is None:
            return await self._create(namespace, held=held)
        kept = not held or (_is_held(found) and _is_clean(found))
        if found.get("subjects") == _SUBJECTS and kept:
            return found
        return await self._mend(namespace, found, held=held)

    async def _create(self, namespace: str, *, held: bool) -> Object | None:
        body = manifest(held=held)
        try:
            made = await self._effects.create(_path(namespace).rpartition("/")[0], body)
        except KubernetesError as error:
            if error.status == 404 or _TERMINATING in error.causes:
                return None
            raise
        if not made:
            raise _lost(namespace)
        return body

    async def _mend(self, namespace: str, found: Object, *, held: bool) -> Object:
        metadata: Object = {key: found["metadata"][key] for key in ("uid", "resourceVersion")}
        if held:
            metadata["labels"] = {names.LABEL_HOLD: "true"}
            metadata["annotations"] = {
                names.ANNOTATION_RELEASING: None,
                names.ANNOTATION_RELEASED: None,
            }
        body = {"metadata": metadata, "subjects": _SUBJECTS}
        try:
            return await self._effects.patch(_path(namespace), body, content_type=MERGE)
        except KubernetesError as error:
            if error.status not in (404, 409):
                raise
            raise _lost(namespace) from error


def _path(namespace: str) -> str:
    return f"/apis/{_API}/v1/namespaces/{namespace}/rolebindings/{BINDING}"


def manifest(*, held: bool) -> Object:
    """Render the RoleBinding, held or not."""
    hold = {names.LABEL_HOLD: "true"} if held else {}
    return {
        "apiVersion": f"{_API}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": BINDING, "labels": {**_LABELS, **hold}},
        "roleRef": _ROLE_REF,
        "subjects": _SUBJECTS,
    }


def _is_held(found: Object) -> bool:
    return (found["metadata"].get("labels") or {}).get(names.LABEL_HOLD) == "true"


def _is_clean(found: Object) -> bool:
    """Tell whether nobody marked it as one that may go."""
    released = (found["metadata"].get("annotations") or {}).get(names.ANNOTATION_RELEASED)
    return released is None and not is_marked(found)


def _lost(namespace: str) -> StaleAggregateError:
    message = f"cannot hold RoleBinding {BINDING!r} in {namespace!r}: it changed since it was read"
    return StaleAggregateError(message)


async def _nobody() -> bool:
    return False
