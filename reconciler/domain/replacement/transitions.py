"""The changes of an aggregate during a replacement.

One function per change that is stored. Pure; `app.replacement.replacement` imports it.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from function.contract.strategy import Phase
from reconciler.domain.aggregate.protected_object import ProtectedObject
from reconciler.domain.aggregate.resource import ProvisionedResource


def begun(resource: ProvisionedResource, at: datetime) -> ProvisionedResource:
    """Return the aggregate with its replacement begun: its machine is no node."""
    return replace(resource, phase=Phase.ENROLLING, recreating_since=at, updated_at=at)


def abandoned(resource: ProvisionedResource, at: datetime) -> ProvisionedResource:
    """Return the aggregate as if its replacement had never begun."""
    substrate, *siblings = resource.protected
    kept = (replace(substrate, released=False), *siblings)
    return replace(resource, protected=kept, recreating_since=None, updated_at=at)


def let_go(resource: ProvisionedResource, uid: str | None, at: datetime) -> ProvisionedResource:
    """Return the aggregate with its substrate let go, and the attempt counted."""
    reference = resource.substrate.reference
    going = ProtectedObject(reference=reference, uid=uid, seen=True, released=True)
    return replace(
        resource,
        protected=(going, *resource.siblings),
        recreations=resource.recreations + 1,
        updated_at=at,
    )


def finished(resource: ProvisionedResource, at: datetime) -> ProvisionedResource:
    """Return the aggregate as it starts over: nothing is there, and a token may follow."""
    anew = known_as(resource, None).enter(Phase.PENDING, at)
    return replace(anew, recreating_since=None, provisioning_since=None)


def known_as(resource: ProvisionedResource, uid: str | None) -> ProvisionedResource:
    """Return the aggregate with another uid of its substrate remembered; None forgets it."""
    substrate, *siblings = resource.protected
    return replace(resource, protected=(replace(substrate, uid=uid), *siblings))
