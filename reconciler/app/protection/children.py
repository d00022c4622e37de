"""Remembering what a substrate is made of, and looking whether it is gone.

The live reads. It only reads: Crossplane and the garbage collector delete. Source:
docs/decisions/0016.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from function.contract.record import SubstrateReference
from reconciler.app.guard import any_version
from reconciler.domain.aggregate import children
from reconciler.domain.aggregate.children import (
    CHILDREN_MAX,
    DEPTH_MAX,
    Child,
    ChildPresence,
    Key,
    RemainingChild,
)
from reconciler.domain.aggregate.explanation import Explanation
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.replacement import transitions
from reconciler.ports.clock import Clock
from reconciler.ports.cluster.management_cluster import ManagementCluster
from reconciler.ports.cluster.substrates import KindNotServedError, LiveObject, NotAllowedError


class SubstrateChildren:
    """Looks at what is below the substrates of one management cluster."""

    def __init__(self, cluster: ManagementCluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock

    async def of_substrate(self, resource: ProvisionedResource) -> tuple[Child, ...]:
        """Return an aggregate's children, with what its substrate composes now.

        What may not be read, or is not there, adds nothing: a teardown looks again.
        """
        reference = resource.substrate.reference
        if not await self._cluster.substrates.is_composite(reference):
            return resource.children
        try:
            live = await self._cluster.substrates.get_object(reference, resource.key.namespace)
        except (KindNotServedError, NotAllowedError):
            return resource.children
        return resource.children if live is None else await self.joined(resource, live)

    async def joined(self, resource: ProvisionedResource, live: LiveObject) -> tuple[Child, ...]:
        """Return an aggregate's children and those that its live substrate names.

        None is forgotten while there is room: references may lag a pipeline run behind. Costs
        a GET per child whose uid is not known and per composite among them.
        """
        # What it composes it controls by its own uid, also where another one stood before it.
        resource = transitions.known_as(resource, live.uid)
        known = {children.key(child.reference): child for child in resource.children}
        listed = await self._walk(resource, known, live.below)
        if len(known) >= CHILDREN_MAX and not listed <= known.keys():
            await self._forget_gone(resource, known, listed)
            await self._walk(resource, known, live.below)
        return tuple(known.values())

    async def left(self, resource: ProvisionedResource) -> list[RemainingChild]:
        """Return which remembered children are not gone, by a live GET each."""
        looked = [await self._look(resource, child) for child in resource.children]
        return [item for item in looked if item is not None]

    def told(
        self, resource: ProvisionedResource, left: Sequence[RemainingChild]
    ) -> Explanation | None:
        """Say which of them hold the deletion up; None while none is stuck."""
        now = self._clock.now()
        # The last write let go of the substrate, or remembered what it is made of.
        waited_s = (now - resource.updated_at).total_seconds()
        found = children.explain_remaining(left, now=now, waited_s=waited_s)
        return None if found is None else Explanation(reason=found[0], message=found[1])

    async def _walk(
        self,
        resource: ProvisionedResource,
        known: dict[Key, Child],
        below: Sequence[SubstrateReference],
    ) -> set[Key]:
        """Remember all that is below, level by level; return what composites name."""
        listed = {children.key(reference) for reference in below}
        # What is listed goes by the version it is listed in, not by a remembered one.
        unlisted = [child.reference for key, child in known.items() if key not in listed]
        level: Iterable[SubstrateReference] = [*below, *unlisted]
        for _ in range(DEPTH_MAX):
            found = await self._add(resource, known, level)
            listed |= {children.key(reference) for reference in found}
            level = [item for item in found if not _is_known(known, item)]
            if not level:
                break
        return listed

    async def _add(
        self,
        resource: ProvisionedResource,
        known: dict[Key, Child],
        level: Iterable[SubstrateReference],
    ) -> list[SubstrateReference]:
        """Remember one level; return what the composites of it name."""
        below: list[SubstrateReference] = []
        for reference in level:
            key = children.key(reference)
            if key not in known and len(known) >= CHILDREN_MAX:
                continue
            child = replace(known.get(key) or Child(reference=reference), reference=reference)
            known[key] = child
            if child.uid is not None and not await self._cluster.substrates.is_composite(reference):
                continue
            live = await self._read(resource, reference)
            if live is None or not _is_same(resource, known.values(), child, live):
                continue
            known[key] = replace(child, uid=live.uid)
            below += live.below
        return below

    async def _forget_gone(
        self, resource: ProvisionedResource, known: dict[Key, Child], listed: set[Key]
    ) -> None:
        """Make room: forget what nobody names any more and what is not there."""
        now = replace(resource, children=tuple(known.values()))
        for key in [key for key in known if key not in listed]:
            if await self._look(now, known[key]) is None:
                del known[key]

    async def _read(
        self, resource: ProvisionedResource, reference: SubstrateReference
    ) -> LiveObject | None:
        try:
            return await self._cluster.substrates.get_object(reference, resource.key.namespace)
        except (KindNotServedError, NotAllowedError):
            return None

    async def _look(self, resource: ProvisionedResource, child: Child) -> RemainingChild | None:
        reference = child.reference
        try:
            live = await any_version.read(self._cluster, reference, resource.key.namespace)
        except KindNotServedError:
            return RemainingChild(reference=reference, look=ChildPresence.UNSERVED)
        except NotAllowedError:
            return RemainingChild(reference=reference, look=ChildPresence.FORBIDDEN)
        if live is None or not _is_same(resource, resource.children, child, live):
            return None
        return RemainingChild(
            reference=reference, deleting_since=live.deleting_since, finalizers=live.finalizers
        )


def _is_known(known: Mapping[Key, Child], reference: SubstrateReference) -> bool:
    child = known.get(children.key(reference))
    return child is not None and child.reference == reference


def _is_same(
    resource: ProvisionedResource, known: Iterable[Child], child: Child, live: LiveObject
) -> bool:
    """Tell whether it is the child: a nested composite's parts are controlled by that one."""
    owner, controller = resource.substrate.uid, live.controller
    uids = (owner, *(item.uid for item in known))
    return children.is_same(
        child,
        uid=live.uid,
        controller_uid=None if controller is None else controller.uid,
        owners=None if owner is None else {uid for uid in uids if uid is not None},
    )
