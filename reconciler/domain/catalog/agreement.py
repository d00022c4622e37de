"""What the files of one blueprint must agree about: the bootstrap, and parameters.

Belongs here: rules that need all three files. Not here: rules of one file, nor the pair of
XRD and Composition alone (`composition`). Source: contracts §4.2, §6 items 5 and 14.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from function.contract.strategy import MeshRole, ParameterType
from reconciler.domain.catalog import fieldpath
from reconciler.domain.catalog.composition import Composition
from reconciler.domain.catalog.definition import Definition
from reconciler.domain.catalog.findings import Report
from reconciler.domain.catalog.injection import SITES
from reconciler.domain.catalog.metadata import Metadata

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
        schema = fieldpath.node(defined.schema, site)
        if schema is None or fieldpath.type_of(schema) not in {None, "string"}:
            rule = f"does not declare {path} as a string, where {strategy.value} puts the bootstrap"
            xrd.add(defined.schema_at, rule)
        if any(fieldpath.covers(read, site) for read in reads):
            continue
        if not any(str(site[-1]) in text for text in composed.pipeline.programs):
            rule = f"reads {path} nowhere, where {strategy.value} puts the bootstrap"
            composition.add("spec.pipeline", rule)


def check_parameters(parts: Parts, metadata: Report, xrd: Report) -> None:
    """Report parameters that the XRD refuses or wants, and those that change nothing."""
    told, defined, composed = parts.told, parts.defined, parts.composed
    reads = _paths(composed)
    for index, parameter in enumerate(told.parameters):
        at = f"parameterSchema.parameters[{index}]"
        site = ("spec", "parameters", parameter.name)
        schema = fieldpath.node(defined.schema, site)
        if schema is None:
            metadata.add(f"{at}.name", "is not declared by the XRD")
        elif fieldpath.type_of(schema) not in {None, *_SCHEMA_TYPES[parameter.type]}:
            metadata.add(f"{at}.type", "is not the type that the XRD declares")
        read = any(fieldpath.covers(path, site) for path in reads)
        if not read and not any(parameter.name in text for text in composed.pipeline.programs):
            metadata.add(f"{at}.name", "is read by no patch", advisory=True)
    for index, constant in enumerate(told.constants):
        if fieldpath.node(defined.schema, ("spec", "parameters", constant.name)) is None:
            metadata.add(f"parameterSchema.constants[{index}].name", "is not declared by the XRD")
    given = {each.name for each in told.parameters if each.required or each.default is not None}
    given |= {constant.name for constant in told.constants}
    given |= {str(site[2]) for site in SITES[told.injection_strategy] if len(site) > 2}
    wanted = fieldpath.node(defined.schema, ("spec", "parameters")) or {}
    for name in fieldpath.required(wanted):
        if name not in given:
            rule = f"requires {name}, which a declaration may leave out"
            xrd.add(f"{defined.schema_at}.properties.spec.properties.parameters", rule)


def _paths(composed: Composition) -> list[fieldpath.Path]:
    paths = []
    for touch in composed.pipeline.reads:
        try:
            paths.append(fieldpath.parse(touch.path))
        except fieldpath.FieldPathError:
            continue  # reported where the Composition is checked against its XRD
    return paths
