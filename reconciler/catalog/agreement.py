"""Checks that the files of one blueprint agree about the bootstrap and the parameters.

Rules that need all three files. Source: contracts §4.2, §6 items 5 and 14.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from function.contract.strategy import MeshRole, ParameterType
from reconciler.catalog import schema_path
from reconciler.catalog.composition import Composition
from reconciler.catalog.definition import Definition
from reconciler.catalog.findings import Report
from reconciler.catalog.injection import SITES
from reconciler.catalog.metadata import Metadata

_SCHEMA_TYPES: Final = {
    ParameterType.BOOLEAN: {"boolean"},
    ParameterType.INTEGER: {"integer", "number"},
    ParameterType.STRING: {"string"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """A blueprint's three files, each readable."""

    told: Metadata
    defined: Definition
    composed: Composition


def check_injection(parts: Parts, xrd: Report, composition: Report) -> None:
    """Report where the strategy's bootstrap would be refused, or read by nothing."""
    told, defined, composed = parts.told, parts.defined, parts.composed
    if told.mesh_role is MeshRole.STANDALONE:
        return
    reads = _paths(composed)
    strategy = told.injection_strategy
    for site in SITES[strategy]:
        path = ".".join(map(str, site))
        schema = schema_path.node(defined.schema, site)
        if schema is None or schema_path.type_of(schema) not in {None, "string"}:
            rule = f"does not declare {path} as a string, where {strategy.value} puts the bootstrap"
            xrd.add(defined.schema_at, rule)
        if any(schema_path.covers(read, site) for read in reads):
            continue
        if not any(str(site[-1]) in text for text in composed.pipeline.programs):
            rule = f"does not read {path}, where {strategy.value} puts the bootstrap"
            composition.add("spec.pipeline", rule)


def check_parameters(parts: Parts, metadata: Report, xrd: Report) -> None:
    """Report parameters that the XRD refuses or wants, and those that change nothing."""
    told, defined, composed = parts.told, parts.defined, parts.composed
    reads = _paths(composed)
    for index, parameter in enumerate(told.parameters):
        at = f"parameterSchema.parameters[{index}]"
        site = ("spec", "parameters", parameter.name)
        schema = schema_path.node(defined.schema, site)
        if schema is None:
            metadata.add(f"{at}.name", "is not declared by the XRD")
        elif schema_path.type_of(schema) not in {None, *_SCHEMA_TYPES[parameter.type]}:
            metadata.add(f"{at}.type", "is not the type that the XRD declares")
        read = any(schema_path.covers(path, site) for path in reads)
        if not read and not any(parameter.name in text for text in composed.pipeline.programs):
            metadata.add(f"{at}.name", "is read by no patch", advisory=True)
    for index, constant in enumerate(told.constants):
        if schema_path.node(defined.schema, ("spec", "parameters", constant.name)) is None:
            metadata.add(f"parameterSchema.constants[{index}].name", "is not declared by the XRD")
    given = {each.name for each in told.parameters if each.required or each.default is not None}
    given |= {constant.name for constant in told.constants}
    given |= {str(site[2]) for site in SITES[told.injection_strategy] if len(site) > 2}
    wanted = schema_path.node(defined.schema, ("spec", "parameters")) or {}
    for name in schema_path.required(wanted):
        if name not in given:
            rule = f"requires {name}, which a declaration may omit"
            xrd.add(f"{defined.schema_at}.properties.spec.properties.parameters", rule)


def _paths(composed: Composition) -> list[schema_path.Path]:
    paths = []
    for touch in composed.pipeline.reads:
        try:
            paths.append(schema_path.parse(touch.path))
        except schema_path.FieldPathError:
            continue  # reported where the Composition is checked against its XRD
    return paths
