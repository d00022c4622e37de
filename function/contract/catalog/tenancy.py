"""The kinds of tenancy: Domain and Project.

The shapes of their specs and statuses. Source: kinds.md, "What people write".
"""

from __future__ import annotations

import ipaddress
from typing import Annotated

from pydantic import Field, field_validator

from function.contract.conditions import Condition
from function.contract.shape import NameRef, Shape

UUID_PATTERN = r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
UUIDText = Annotated[str, Field(pattern=UUID_PATTERN, description="Canonical lower-case UUID.")]
Region = Annotated[
    str,
    Field(
        min_length=1,
        max_length=64,
        pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$",
        description="Kebab-case region, for example eu-central.",
    ),
]


class DomainSpec(Shape):
    """A mesh: the address range its nodes live in."""

    region: Region | None = Field(default=None, description="Where its Projects are placed.")
    mesh_cidr: Annotated[str, Field(alias="meshCIDR", max_length=49)] = Field(
        alias="meshCIDR",
        description="The mesh's address range, for example 100.64.0.0/16; immutable.",
    )

    @field_validator("mesh_cidr")
    @classmethod
    def _is_a_network(cls, value: str) -> str:
        ipaddress.ip_network(value)
        return value


class ProjectSpec(Shape):
    """A tenant's Project in a Domain."""

    id: UUIDText | None = Field(
        default=None, description="Minted once into the status when absent; immutable."
    )
    domain_ref: NameRef = Field(description="The Domain it belongs to; immutable.")


class ProjectStatus(Shape):
    """The status of a Project, written by the reconciler."""

    id: UUIDText | None = Field(
        default=None, description="The Project's id, given or minted; never changes."
    )
    namespace: Annotated[str, Field(max_length=63)] | None = Field(
        default=None, description="Namespace that holds its records."
    )
    management_cluster: Annotated[str, Field(max_length=253)] | None = Field(
        default=None, description="Management cluster that the Project is placed on."
    )
    region: Annotated[str, Field(max_length=64)] | None = Field(
        default=None, description="Region it was placed in."
    )
    namespace_phase: Annotated[str, Field(max_length=63)] | None = Field(
        default=None, description="Phase of that namespace."
    )
    conditions: tuple[Condition, ...] = Field(
        default=(), description="Latest observations, one per type."
    )
