"""`metadata.json`: what a blueprint says about itself.

Its shape, which is this system's trust boundary, and the rules inside it. Source: contracts
§4.1 and §4.4.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from function.contract.catalog.parameters import RESERVED
from function.contract.limits import ENUM_MAX
from function.contract.patterns import PATTERN_MAX
from function.contract.strategy import (
    CloudProvider,
    InjectionStrategy,
    MeshRole,
    ParameterType,
)
from reconciler.catalog import decoding
from reconciler.catalog.findings import Report

_JSON_TYPES: Final = {
    ParameterType.BOOLEAN: bool,
    ParameterType.INTEGER: int,
    ParameterType.STRING: str,
}


class _Strict(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, alias_generator=to_camel, populate_by_name=False
    )


class CatalogParameter(_Strict):
    """One declared parameter."""

    name: Annotated[str, Field(max_length=63, pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")]
    type: ParameterType
    required: bool = False
    default: bool | int | str | None = None
    enum: Annotated[tuple[bool | int | str, ...], Field(max_length=ENUM_MAX)] | None = None
    pattern: Annotated[str, Field(max_length=PATTERN_MAX)] | None = None
    min_length: int | None = None
    max_length: int | None = None
    minimum: int | None = None
    maximum: int | None = None
    mutable: bool = False
    description: Annotated[str, Field(max_length=4096)] = ""


class CatalogConstant(_Strict):
    """One value that the platform sets."""

    name: Annotated[str, Field(max_length=63, pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")]
    value: bool | int | str
    description: Annotated[str, Field(max_length=4096)] = ""


class ParameterSchema(_Strict):
    """The lists of parameters and of constants."""

    parameters: Annotated[tuple[CatalogParameter, ...], Field(max_length=64)]
    constants: Annotated[tuple[CatalogConstant, ...], Field(max_length=32)] = ()


class Metadata(_Strict):
    """The file: seven required fields and the mesh role, which defaults to `node`."""

    slug: Annotated[str, Field(max_length=63, pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
    display_name: Annotated[str, Field(min_length=1, max_length=256)]
    description: Annotated[str, Field(max_length=4096)]
    version: Annotated[str, Field(max_length=63, pattern=r"^v[0-9]+((alpha|beta)[0-9]+)?$")]
    provider_kinds: Annotated[tuple[CloudProvider, ...], Field(min_length=1, max_length=6)]
    injection_strategy: InjectionStrategy
    mesh_role: MeshRole = MeshRole.NODE
    parameter_schema: ParameterSchema

    @property
    def parameters(self) -> tuple[CatalogParameter, ...]:
        """What a declaration may set."""
        return self.parameter_schema.parameters

    @property
    def constants(self) -> tuple[CatalogConstant, ...]:
        """What the platform sets, and no declaration."""
        return self.parameter_schema.constants


def parse(content: bytes, report: Report) -> Metadata | None:
    """Return the metadata, or None after every broken rule was reported."""
    try:
        decoding.from_json(content)
        metadata = Metadata.model_validate_json(content)
    except decoding.DecodeError as error:
        report.add("", str(error))
        return None
    except ValidationError as error:
        for each in error.errors(include_url=False, include_input=False, include_context=False):
            report.add(_path(each["loc"]), _rule(each))
        return None
    _check(metadata, report)
    return metadata


def _check(metadata: Metadata, report: Report) -> None:
    if len(set(metadata.provider_kinds)) != len(metadata.provider_kinds):
        report.add("providerKinds", "names a provider twice")
    names: set[str] = set()
    for index, parameter in enumerate(metadata.parameters):
        at = f"parameterSchema.parameters[{index}]"
        if parameter.name in names:
            report.add(f"{at}.name", "is duplicated")
        names.add(parameter.name)
        if parameter.name in RESERVED:
            report.add(f"{at}.name", "is reserved for the bootstrap material")
        _check_default(parameter, f"{at}.default", report)
    for index, constant in enumerate(metadata.constants):
        at = f"parameterSchema.constants[{index}]"
        if constant.name in names:
            report.add(f"{at}.name", "is duplicated")
        names.add(constant.name)
        if constant.name in RESERVED:
            report.add(f"{at}.name", "is reserved for the bootstrap material")


def _check_default(parameter: CatalogParameter, at: str, report: Report) -> None:
    if parameter.default is None:
        return
    if parameter.required:
        report.add(at, "must not be set on a required parameter")
    if type(parameter.default) is not _JSON_TYPES[parameter.type]:
        report.add(at, f"is not of type {parameter.type.value}")


def _path(location: tuple[int | str, ...]) -> str:
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in location]
    return "".join(parts).removeprefix(".")


def _rule(error: Any) -> str:
    match error["type"]:
        case "missing":
            return "is missing"
        case "extra_forbidden":
            return "is not a field of this file"
        case _:
            text: str = error["msg"]
            return f"is invalid: {text[:1].lower()}{text[1:]}"
