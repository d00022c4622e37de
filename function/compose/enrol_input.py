"""The input `Enrol` as its authors write it.

Belongs here: the model. Not here: which resources it means in a request (`function.enrol`),
what becomes of them. Source: kinds.md, "The function's inputs".
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field, model_validator

from function.compose.inputs import InputEnrolment, Strict
from function.contract.conditions import ConditionType
from function.contract.record import PROTECTED_MAX
from function.contract.shape import ObjectName
from function.contract.strategy import CloudProvider, InjectionStrategy, MeshRole
from function.render import fieldpath

RESOURCES_MAX: Final = 256
"""Enrolled resources of one XR: each costs its circuit breaker a dozen tokens in its life."""

_ANY: Final = "*"

ResourceName = Annotated[str, Field(min_length=1, max_length=128)]
PathText = Annotated[str, Field(min_length=1, max_length=fieldpath.LENGTH_MAX)]


class EnrolPaths(Strict):
    """Field paths of the resource; what is absent is the default of its kind."""

    user_data: PathText | None = None
    user_data_base64: PathText | None = None
    bootstrap_token: PathText | None = None
    api_url: PathText | None = None
    plexd_image: PathText | None = None
    tags: PathText | None = None


class TerminalCondition(Strict):
    """A condition of the resource that means it failed for good."""

    type: Annotated[str, Field(min_length=1, max_length=316)]
    status: Literal["True", "False"] = "True"


class EnrolResource(Strict):
    """One resource that an earlier step composes, or with `*` at the end of its name many."""

    name: ResourceName
    injection_strategy: InjectionStrategy
    mesh_role: MeshRole = MeshRole.NODE
    provider: CloudProvider
    cloud_credential: ObjectName | None = None
    paths: EnrolPaths = EnrolPaths()
    labels_from: PathText | None = None
    hold: Annotated[tuple[ResourceName, ...], Field(max_length=PROTECTED_MAX - 1)] = ()
    terminal_conditions: Annotated[tuple[TerminalCondition, ...], Field(max_length=16)] = (
        TerminalCondition(type=ConditionType.PROVISIONING_FAILED),
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


class EnrolInput(Strict):
    """The step's input."""

    api_version: Literal["broker.fn.plexsphere.com/v1alpha1"]
    kind: Literal["Enrol"]
    metadata: dict[str, Any] = Field(default_factory=dict)
    enrolment: InputEnrolment = InputEnrolment()
    resources: Annotated[tuple[EnrolResource, ...], Field(min_length=1, max_length=RESOURCES_MAX)]

    @model_validator(mode="after")
    def _says_each_once(self) -> EnrolInput:
        given = [entry.name for entry in self.resources]
        if len(set(given)) != len(given):
            message = "resources: names must be unique"
            raise ValueError(message)
        held = {name for entry in self.resources for name in entry.hold}
        if any(entry.means(name) for entry in self.resources for name in held):
            message = "resources: hold must name other resources than the enrolled ones"
            raise ValueError(message)
        return self
