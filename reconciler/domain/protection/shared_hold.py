"""A hold that all users of one credential in a namespace share.

Naming it, and the decision whether it is needed. Source: design §2 "What holds it" 3;
docs/decisions/0011.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

SECRET: Final = "Secret"  # noqa: S105 - a kind's name
PROVIDER_CONFIG: Final = "ProviderConfig"


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedHold:
    """One object that is held on behalf of one credential.

    Attributes:
        namespace: Where it is.
        api_version: Its apiVersion.
        kind: `Secret`, with the ExternalSecret of its name if there is one, or
            `ProviderConfig`.
        name: Its name, which cannot be computed again once the catalogue changed.
        credential: The CloudCredential's name.
        revision: How often it was remembered, as it was read; 0 before it was stored.
    """

    namespace: str
    api_version: str
    kind: str
    name: str
    credential: str
    revision: int = 0

    @property
    def is_secret(self) -> bool:
        """Tell whether it is the credential's Secret."""
        return self.kind == SECRET

    @property
    def manifest(self) -> dict[str, Any]:
        """Name the object as a manifest does."""
        metadata = {"name": self.name, "namespace": self.namespace}
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": metadata}


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """The credential and Secrets that one aggregate uses while it is not Deleted.

    Attributes:
        credential: The CloudCredential's name.
        enrolled: Its author brings the ProviderConfig, so that ours is none of its.
        secrets: The Secrets that are its credential's, by catalogue and by what is remembered.
    """

    credential: str
    enrolled: bool
    secrets: frozenset[str]


def secret(namespace: str, name: str, credential: str) -> SharedHold:
    """Name a credential's Secret."""
    return SharedHold(
        namespace=namespace, api_version="v1", kind=SECRET, name=name, credential=credential
    )


def provider_config(manifest: Mapping[str, Any], credential: str) -> SharedHold:
    """Name the ProviderConfig of a manifest."""
    metadata = manifest["metadata"]
    return SharedHold(
        namespace=metadata["namespace"],
        api_version=manifest["apiVersion"],
        kind=PROVIDER_CONFIG,
        name=metadata["name"],
        credential=credential,
    )


def needed(hold: SharedHold, uses: Iterable[Use]) -> bool:
    """Tell whether anybody needs what is held.

    Two credentials with the same coordinates are one Secret; a ProviderConfig is one
    credential's alone.
    """
    if hold.is_secret:
        return any(hold.name in use.secrets for use in uses)
    return any(use.credential == hold.credential and not use.enrolled for use in uses)
