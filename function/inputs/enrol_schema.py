"""The input `Enrol` as its authors write it.

The model. Source: kinds.md, "The function's inputs".
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, model_validator

from function.contract.catalog.terminal import TerminalCondition
from function.contract.conditions import ConditionType
from function.contract.record import PROTECTED_MAX
from function.contract.shape import ObjectName
from function.contract.strategy import CloudProvider, InjectionStrategy, MeshRole
from function.inputs.schema import (
    API_VERSION_SAYS,
    KIND_SAYS,
    InputEnrolment,
    InputRegistration,
    StrictInput,
)
from function.render.fields import fieldpath

RESOURCES_MAX: Final = 256
"""Enrolled resources of one XR: far more than its circuit breaker bears at once (0009)."""

RECORD_PREFIX: Final = "record-"
"""A resource's record is composed under this and the resource's own name."""

_ANY: Final = "*"

ResourceName = Annotated[str, Field(min_length=1, max_length=128)]
PathText = Annotated[str, Field(min_length=1, max_length=fieldpath.LENGTH_MAX)]


class EnrolPaths(StrictInput):
    """Field paths of the resource; what is absent is the default of its kind."""

    user_data: PathText | None = Field(
        default=None, description="Where the enrolment document goes as text."
    )
    user_data_base64: PathText | None = Field(
        default=None, description="Where the enrolment document goes as base64; this one wins."
    )
    bootstrap_token: PathText | None = Field(
        default=None, description="Where the token goes with helm-values or provider-secret."
    )
    api_url: PathText | None = Field(
        default=None, description="Where the URL to register at goes with helm-values."
    )
    plexd_image: PathText | None = Field(
        default=None, description="Where the image of plexd goes with helm-values."
    )
    tags: PathText | None = Field(
        default=None,
        description=(
            "Where cloud tags go: spec.x for a map, spec.x[key,value] for a list of objects "
            "with these fields, spec.x[] for a list of key=value texts."
        ),
    )


class InputTerminalCondition(TerminalCondition):
    """A condition of the resource that is a terminal failure."""

    model_config = ConfigDict(extra="forbid")


class EnrolResource(StrictInput):
    """One resource that an earlier step composes, or with `*` at the end of its name many."""

    name: ResourceName = Field(
        description=(
            "Its name in the pipeline; with `*` at the end, every resource with that prefix. "
            "An exact name wins over a star, an earlier star over a later one."
        )
    )
    injection_strategy: InjectionStrategy = Field(description="How its bootstrap reaches it.")
    mesh_role: MeshRole = Field(
        default=MeshRole.NODE,
        description="Whether it becomes a node; standalone: no token, no bootstrap.",
    )
    provider: CloudProvider = Field(
        description="The cloud, which decides the size of documents and the form of tags."
    )
    cloud_credential: ObjectName | None = Field(
        default=None,
        description="The CloudCredential that it uses; it must list the Project.",
    )
    paths: EnrolPaths = Field(
        default=EnrolPaths(),
        description="Field paths of the resource; an absent one defaults to that of its kind.",
    )
    labels_from: PathText | None = Field(
        default=None,
        description="Field path of the XR's labels, which become cloud tags; such as spec.labels.",
    )
    hold: Annotated[tuple[ResourceName, ...], Field(max_length=PROTECTED_MAX - 1)] = Field(
        default=(),
        description="Resources of the pipeline that outlive its node, such as network and volume.",
    )
    terminal_conditions: Annotated[tuple[InputTerminalCondition, ...], Field(max_length=16)] = (
        Field(
            default=(InputTerminalCondition(type=ConditionType.PROVISIONING_FAILED),),
            description="Conditions of the resource, any of which is a terminal failure.",
        )
    )
    registration: InputRegistration | None = Field(
        default=None,
        description="Policy for a node that does not register in time. Absent: Keep, after the "
        "reconciler's timeout.",
    )

    @property
    def many(self) -> bool:
        """Whether it means every resource whose name begins as it does."""
        return self.name.endswith(_ANY)

    def means(self, name: str) -> bool:
        """Whether it means a resource."""
        if self.many:
            return name.startswith(self.name.removesuffix(_ANY))
        return self.name == name

    def means_any(self, names: Collection[str]) -> bool:
        """Whether it means one of many resources; each call asks, for every entry."""
        if self.many:
            beginning = self.name.removesuffix(_ANY)
            return any(name.startswith(beginning) for name in names)
        return self.name in names


class EnrolInput(StrictInput):
    """The step's input."""

    api_version: Literal["broker.fn.plexsphere.com/v1alpha1"] = Field(description=API_VERSION_SAYS)
    kind: Literal["Enrol"] = Field(description=KIND_SAYS)
    metadata: dict[str, Any] = Field(default_factory=dict)
    enrolment: InputEnrolment = InputEnrolment()
    resources: Annotated[
        tuple[EnrolResource, ...], Field(min_length=1, max_length=RESOURCES_MAX)
    ] = Field(description="The resources that become nodes; names are unique.")

    @model_validator(mode="after")
    def _says_each_once(self) -> EnrolInput:
        given = [entry.name for entry in self.resources]
        if len(set(given)) != len(given):
            message = "resources: names must be unique"
            raise ValueError(message)
        held = {name for entry in self.resources for name in entry.hold}
        if any(entry.means(name) for entry in self.resources for name in held):
            message = "resources: hold must not name an enrolled resource"
            raise ValueError(message)
        records = {name for name in {*held, *given} if name.startswith(RECORD_PREFIX)}
        owners = {name.removeprefix(RECORD_PREFIX) for name in records}
        if any(entry.means(name) for entry in self.resources for name in owners):
            message = "resources: the record of an enrolled resource must not be named"
            raise ValueError(message)
        return self
