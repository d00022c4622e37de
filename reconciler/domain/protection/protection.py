"""The objects that an aggregate protects, as its record lists them.

From `spec.substrate` to protected objects, at acceptance and later, and that no object is
protected twice. Pure. Source: design §2 and §3, `hold`; kinds.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from function.contract import names
from function.contract.conditions import Reason
from function.contract.record import SubstrateReference, XRReference
from reconciler.domain.aggregate.errors import ProtectedElsewhereError, RefusedError
from reconciler.domain.aggregate.protected_object import ProtectedObject
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.protection import external_secret
from reconciler.domain.protection.shared_hold import SECRET

_FIELD = "spec.substrate"
_RESERVED = frozenset({SECRET, external_secret.KIND})


def protect(listed: Sequence[SubstrateReference], *, xr_name: str) -> tuple[ProtectedObject, ...]:
    """Return what a new aggregate protects: the substrate, then its siblings.

    Args:
        listed: `spec.substrate`; an empty name of its first stands for `xr_name`.
        xr_name: The aggregate's own name.

    Raises:
        RefusedError: It lists nothing, or what a credential is made of.
    """
    if not listed:
        message = f"{_FIELD}: must name the enrolled resource"
        raise RefusedError(message, reason=Reason.INVALID_INPUT)
    _refuse_reserved(listed)
    first, *others = listed
    substrate = first.model_copy(update={"name": first.name or xr_name})
    siblings = (ProtectedObject(reference=other, sibling=True) for other in others)
    return (ProtectedObject(reference=substrate), *siblings)


def follow(
    protected: Sequence[ProtectedObject], listed: Sequence[SubstrateReference]
) -> tuple[ProtectedObject, ...]:
    """Return what an aggregate protects with what its record lists now.

    Versions are followed, because an old one may be served no longer; siblings are added,
    and none is forgotten here.

    Raises:
        RefusedError: The first of the list is another kind of object, or another one, or it
            lists what a credential is made of.
    """
    if not listed:
        return tuple(protected)
    _refuse_reserved([item for item in listed if not protects(protected, item)])
    substrate = protected[0]
    first, *others = listed
    named = first.model_copy(update={"name": first.name or substrate.reference.name})
    if _key(named) != _key(substrate.reference):
        message = f"{_FIELD}[0]: kind, group and name are immutable; restore the accepted ones"
        raise RefusedError(message, reason=Reason.IMMUTABLE)
    known = {_key(item.reference): item for item in protected[1:]}
    for other in others:
        old = known.get(_key(other), ProtectedObject(reference=other, sibling=True))
        known[_key(other)] = replace(old, reference=other)
    return (replace(substrate, reference=named), *known.values())


def moved(protected: Sequence[ProtectedObject], api_version: str) -> tuple[ProtectedObject, ...]:
    """Return what an aggregate protects, its substrate in another version of its group."""
    substrate, *siblings = protected
    reference = substrate.reference.model_copy(update={"api_version": api_version})
    return (replace(substrate, reference=reference), *siblings)


def unlisted(
    protected: Sequence[ProtectedObject], listed: Sequence[SubstrateReference]
) -> tuple[ProtectedObject, ...]:
    """Return the siblings that a record lists no longer."""
    present = {_key(reference) for reference in listed}
    return tuple(item for item in protected[1:] if _key(item.reference) not in present)


def protects(protected: Iterable[ProtectedObject], reference: SubstrateReference) -> bool:
    """Tell whether an object is among protected ones, whatever the version."""
    return any(_key(item.reference) == _key(reference) for item in protected)


def added(
    resource: ProvisionedResource, known: Iterable[ProtectedObject]
) -> tuple[ProtectedObject, ...]:
    """Return what an aggregate protects beyond what it is known to."""
    before = list(known)
    return tuple(item for item in resource.protected if not protects(before, item.reference))


def refuse_contested(
    resource: ProvisionedResource,
    fresh: Iterable[ProtectedObject],
    others: Iterable[ProvisionedResource],
) -> None:
    """Hold each object to one aggregate; siblings to those of one composite.

    Args:
        resource: Who is to protect them.
        fresh: What it does not protect yet. What it does is not judged again, or an aggregate
            of before this rule could not be taken down.
        others: Aggregates of its namespace and cluster that are not Deleted.

    Raises:
        ProtectedElsewhereError: The first that another one protects, with its holder.
    """
    rivals = [other for other in others if other.id != resource.id]
    for item in fresh:
        for other in rivals:
            theirs = next((one for one in other.protected if _same(one, item)), None)
            shared = item.sibling and theirs is not None and theirs.sibling
            if theirs is not None and not (shared and _composite(other) == _composite(resource)):
                raise ProtectedElsewhereError(_contested(resource, item, other))


def _refuse_reserved(listed: Sequence[SubstrateReference]) -> None:
    """Refuse what is held for others: the end of one node would let go of it.

    Raises:
        RefusedError: The first that is.
    """
    for index, item in enumerate(listed):
        if item.kind in _RESERVED and names.is_cloud_credentials_secret(item.name):
            message = f"{_FIELD}[{index}]: must not name a Secret or ExternalSecret of a credential"
            raise RefusedError(message, reason=Reason.INVALID_INPUT)


def _contested(
    resource: ProvisionedResource, item: ProtectedObject, other: ProvisionedResource
) -> str:
    index = resource.protected.index(item)
    what, holder = item.reference, other.key
    rule = (
        "one enrolled resource has one record"
        if _composite(other) == _composite(resource)
        else "only one XR may protect an object"
    )
    return (
        f"{_FIELD}[{index}]: {what.kind} {what.name!r} is protected for {holder.kind} "
        f"{holder.name!r}, resource {holder.resource!r}, until that is deleted; {rule}"
    )


def _same(one: ProtectedObject, another: ProtectedObject) -> bool:
    return _key(one.reference) == _key(another.reference)


def _composite(resource: ProvisionedResource) -> tuple[str, str, str]:
    return resource.key.group, resource.key.kind, resource.key.name


def _key(reference: SubstrateReference) -> tuple[str, str, str]:
    return names.group_of(reference.api_version), reference.kind, reference.name


def is_ours(controller: XRReference | None, xr: XRReference) -> bool:
    """Tell whether an object of a protected name is this composite's to end.

    Two composites may name one object; it belongs to the one that controls it. One without
    a controller is an orphan of ours.
    """
    return controller is None or _identity(controller) == _identity(xr)


def _identity(xr: XRReference) -> tuple[str, str, str]:
    """Tell composites apart: the version may change, and of one applied again the uid does."""
    return names.group_of(xr.api_version), xr.kind, xr.name
