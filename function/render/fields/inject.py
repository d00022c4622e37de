"""The fields of a substrate that carry the bootstrap, for each strategy.

The field map and the closed list of sticky paths. Source: seed 003, "The injected-XR field
map" and "The force-apply preservation rule".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, assert_never, cast

from function.contract.strategy import CloudProvider, InjectionStrategy
from function.render.documents import cloudinit, options, template

Path = tuple[str, ...]

USER_DATA: Final[Path] = ("spec", "userData")
_HELM: Final[Path] = ("spec", "parameters", "helmValues")
_PROVIDER_SECRET: Final[Path] = ("spec", "parameters", "providerSecret")

STICKY: Final[tuple[Path, ...]] = (
    USER_DATA,
    (*_HELM, "bootstrapToken"),
    (*_HELM, "apiUrl"),
    (*_HELM, "plexdImage"),
    (*_PROVIDER_SECRET, "bootstrapToken"),
)
"""The closed set of bootstrap paths: kept from the observed object, never rendered again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """The bootstrap material; each strategy uses its part.

    Attributes:
        enrolment: URLs, identity and token.
        plexd_image: The image a Helm release deploys; only `helm-values` needs it.
        provider: The cloud whose user-data limit holds.
    """

    enrolment: cloudinit.DocumentFields
    plexd_image: str | None
    provider: CloudProvider


def fields(strategy: InjectionStrategy, material: Material) -> dict[Path, str]:
    """Return the fields that carry the bootstrap: path to value.

    Raises:
        ContractError: A value that the strategy needs is missing or breaks its rule, or
            the document is larger than the cloud takes.
    """
    enrolment = material.enrolment
    match strategy:
        case InjectionStrategy.CLOUD_INIT_USER_DATA:
            return {USER_DATA: template.text(material.provider, enrolment)}
        case InjectionStrategy.HELM_VALUES:
            return {
                (*_HELM, "bootstrapToken"): cloudinit.plaintext(enrolment.token),
                (*_HELM, "apiUrl"): options.http_url("enrolment.baseURL", enrolment.base_url),
                (*_HELM, "plexdImage"): options.image("enrolment.plexdImage", material.plexd_image),
            }
        case InjectionStrategy.PROVIDER_SECRET:
            token = cloudinit.plaintext(enrolment.token)
            return {(*_PROVIDER_SECRET, "bootstrapToken"): token}
        case _:
            assert_never(strategy)


def observed(substrate: Mapping[str, Any]) -> dict[Path, str]:
    """Return the bootstrap fields that an object carries; empty strings count as absent."""
    found: dict[Path, str] = {}
    for path in STICKY:
        value = read(substrate, path)
        if isinstance(value, str) and value:
            found[path] = value
    return found


def read(source: Mapping[str, Any], path: Path) -> object:
    """Return what stands at a path, or None where it or a parent is absent."""
    value: object = source
    for key in path:
        # Nearly all are plain: asking the abstract class costs ten times as much.
        if value.__class__ is not dict and not isinstance(value, Mapping):
            return None
        value = cast("Mapping[str, Any]", value).get(key)
    return value


def write(target: dict[str, Any], path: Path, value: object) -> None:
    """Set a path, making the parents that are missing."""
    for key in path[:-1]:
        child = target.get(key)
        if not isinstance(child, dict):
            child = {}
            target[key] = child
        target = child
    target[path[-1]] = value
