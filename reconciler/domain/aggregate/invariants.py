"""The invariants of every ProvisionedResource, new or stored.

The rules that its constructor checks. Source: seed 000 "The ProvisionedResource aggregate";
design §2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from function.contract import names
from reconciler.domain.aggregate import phase

if TYPE_CHECKING:
    from reconciler.domain.aggregate.resource import ProvisionedResource

GENERATION_MAX: Final = 10_000
"""More generations than a decade of daily replacements; beyond it something loops."""

_IDS: Final = (
    *("id", "resource_id", "project_id", "blueprint_version_id", "cloud_credential_id"),
    "management_cluster_id",
)
_TIMES: Final = (
    *("created_at", "updated_at", "deletion_requested_at", "force_released_at"),
    *("provisioning_since", "enrolling_since", "recreating_since"),
)

Fault = tuple[str, str]
"""A field, and the rule that it breaks; never its value."""


def faults(resource: ProvisionedResource) -> Iterator[Fault]:
    """Yield every rule that an aggregate breaks."""
    yield from _of_identity(resource)
    yield from _of_times(resource)
    yield from _of_counts(resource)
    yield from _of_course(resource)
    yield from _of_protection(resource)


def _of_identity(resource: ProvisionedResource) -> Iterator[Fault]:
    for field in _IDS:
        if getattr(resource, field).int == 0:
            yield field, "must not be the zero id"
    if resource.xr_name != names.xr_name(resource.id):
        yield "xr_name", "must be derived from the id"
    if resource.key.project_id != resource.project_id:
        yield "key.project_id", "must equal project_id"


def _of_times(resource: ProvisionedResource) -> Iterator[Fault]:
    naive = [
        field
        for field in _TIMES
        if (at := getattr(resource, field)) is not None and at.tzinfo is None
    ]
    for field in naive:
        yield field, "must carry a time zone"
    # Times with and without a zone cannot be compared.
    if not naive and resource.created_at > resource.updated_at:
        yield "updated_at", "must not lie before created_at"


def _of_counts(resource: ProvisionedResource) -> Iterator[Fault]:
    if not 0 <= resource.generation <= GENERATION_MAX:
        yield "generation", f"must lie between 0 and {GENERATION_MAX}"
    for field in ("recreations", "version"):
        if getattr(resource, field) < 0:
            yield field, "must not be negative"


def _of_course(resource: ProvisionedResource) -> Iterator[Fault]:
    if resource.deletion_requested_at is not None:
        return
    if phase.is_teardown(resource.phase):
        yield "deletion_requested_at", "must be set in a teardown phase"
    if resource.force_released_at is not None:
        yield "force_released_at", "must follow a deletion request"


def _of_protection(resource: ProvisionedResource) -> Iterator[Fault]:
    substrate, siblings = resource.protected[:1], resource.siblings
    if not substrate or substrate[0].sibling:
        yield "protected", "must begin with the substrate"
    elif not all(item.sibling for item in siblings):
        yield "protected", "must hold siblings behind the substrate"
