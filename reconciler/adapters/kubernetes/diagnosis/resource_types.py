"""Finds the resource type that somebody names as they would to kubectl.

One request for the API server's aggregated discovery (Kubernetes 1.30, KEP-3352).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from reconciler.adapters.kubernetes.transport.client import KubernetesClient, Object

_DISCOVERY: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class UnknownTypeError(Exception):
    """No namespaced resource type of that name is served; the message is what to print."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceType:
    """A served, namespaced resource type."""

    api_version: str
    kind: str
    plural: str

    @property
    def resource(self) -> str:
        """The type as kubectl takes it, `plural.group`."""
        group, slash, _ = self.api_version.partition("/")
        return f"{self.plural}.{group}" if slash else self.plural


async def find(client: KubernetesClient, word: str) -> ResourceType:
    """Return the type of a kind, plural, singular or short name, `.group` appended or not.

    Raises:
        UnknownTypeError: None has the name, or several groups have it.
        KubernetesError: Discovery is refused.
    """
    listing = await client.request("GET", "/apis", accept=_DISCOVERY)
    name, _, group = word.lower().partition(".")
    found = [
        each
        for each, names in _served(listing)
        if name in names and group in ("", each.api_version.partition("/")[0])
    ]
    if len(found) == 1:
        return found[0]
    choices = ", ".join(sorted(each.resource for each in found))
    message = f"{word!r} names several resource types; take one of {choices}"
    if not found:
        message = f"the API server serves no namespaced resource type {word!r}"
    raise UnknownTypeError(message)


def _served(listing: Object) -> Iterator[tuple[ResourceType, frozenset[str]]]:
    """Yield each group's types once, from its preferred version, which comes first."""
    for group in listing.get("items") or []:
        seen: set[str] = set()
        for version in group.get("versions") or []:
            for item in version.get("resources") or []:
                plural = item["resource"]
                if item.get("scope") != "Namespaced" or plural in seen:
                    continue
                seen.add(plural)
                api_version = f"{group['metadata']['name']}/{version['version']}"
                kind = (item.get("responseKind") or {}).get("kind", "")
                found = ResourceType(api_version=api_version, kind=kind, plural=plural)
                yield found, _names(item, kind, plural)


def _names(item: dict[str, Any], kind: str, plural: str) -> frozenset[str]:
    short = item.get("shortNames") or []
    return frozenset({plural, kind.lower(), item.get("singularResource", plural), *short})
