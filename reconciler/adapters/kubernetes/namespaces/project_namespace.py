"""The hold on a Project's namespace, and on what gives us our rights in it.

The calls. Source: design §2 "What holds it" 3; docs/decisions/0003, 0019.
"""

from __future__ import annotations

from typing import Final

from function.contract import names
from reconciler.adapters.kubernetes.namespaces.project_rights import BINDING, ProjectRights
from reconciler.adapters.kubernetes.objects import manifests
from reconciler.adapters.kubernetes.objects.writes import Effects, is_marked
from reconciler.adapters.kubernetes.transport.client import KubernetesClient, Object
from reconciler.domain.aggregate.errors import NamespaceNotReadyError, StaleAggregateError
from reconciler.ports.cluster.namespaces import Needed

_FREE: Final = (None, None)


class ProjectNamespaces:
    """Projects' namespaces on one API server."""

    def __init__(self, client: KubernetesClient, effects: Effects, rights: ProjectRights) -> None:
        self._client = client
        self._effects = effects
        self._rights = rights

    async def hold_namespace(
        self, namespace: str, *, records: int, needed: Needed | None = None
    ) -> None:
        """Put hold and record count on a namespace; none off at zero.

        One that has nodes already is held whether or not our rights in it were kept.

        Raises:
            GoingError: It is being deleted, and was not held before.
            NamespaceNotReadyError: It is to have its first node, and our rights will not last.
            StaleAggregateError: It was written while it was to be held.
        """
        path = f"/api/v1/namespaces/{namespace}"
        found = await self._client.get(path)
        if found is None:
            return
        if not records:
            await self._let_go(path, found, needed)
            return
        if _says(found)[0] != "true":
            manifests.refuse_going(found, "Namespace")
        if not await self._rights.hold(namespace) and _says(found)[0] is None:
            message = (
                f"metadata.namespace: RoleBinding {BINDING!r} in it cannot be kept; check whether "
                "it or the namespace is being deleted"
            )
            raise NamespaceNotReadyError(message)
        wanted = ("true", str(records))
        released = manifests.is_released(found)
        if _says(found) == wanted and not is_marked(found) and not released:
            return
        if not await self._write(path, found, wanted):
            message = f"cannot hold namespace {namespace!r}: it changed since it was read"
            raise StaleAggregateError(message)

    async def _let_go(self, path: str, found: Object, needed: Needed | None) -> None:
        """Release our rights, then the namespace.

        In this order because what is left in between is seen by the hold on the namespace, and
        because its change makes the namespace controller look again at what it was refused.
        """
        namespace = path.rpartition("/")[2]
        binding = await self._rights.held(namespace)
        if binding is None and _says(found) == _FREE and not is_marked(found):
            return
        if needed is not None:
            # Both are marked before it is asked: who needs them takes both marks off.
            if binding is not None:
                binding = await self._rights.mark(namespace, binding)
            marked = await self._effects.marked(path, found, needed)
            if marked is None:
                return
            found = marked
        if binding is not None:
            await self._rights.let_go(namespace, binding)
        if not await self._write(path, found, _FREE):
            await self._effects.surely_let_go(path)

    async def _write(self, path: str, found: Object, wanted: tuple[str | None, str | None]) -> bool:
        annotations = {
            names.ANNOTATION_RECORDS: wanted[1],
            names.ANNOTATION_RELEASING: None,
            names.ANNOTATION_RELEASED: None,
        }
        labels = {names.LABEL_HOLD: wanted[0]}
        return await self._effects.change(path, found, labels=labels, annotations=annotations)


def _says(found: Object) -> tuple[str | None, str | None]:
    """Return a namespace's hold and its record count."""
    labels = found["metadata"].get("labels") or {}
    annotations = found["metadata"].get("annotations") or {}
    return labels.get(names.LABEL_HOLD), annotations.get(names.ANNOTATION_RECORDS)
