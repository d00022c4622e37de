"""The objects of a Project's namespace, most of which several nodes share.

What several share is released in two steps: it is marked, `needed` is asked, and it goes only
as it was marked. Who comes to need it stores that first and takes the mark off afterwards,
so that one of the two sees the other, however late a step arrives (docs/decisions/0015).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

from reconciler.ports.store.aggregates import DrawnToken

SOMEBODY_ELSE: Final = "somebody else"
"""Who holds what the broker did not make; no object has this name."""

Needed = Callable[[], Awaitable[bool]]
"""Asks the rows, as they are now, whether somebody needs what is about to be released."""


class NamespaceGateway(Protocol):
    """The hold on Projects' namespaces."""

    async def hold_namespace(
        self, namespace: str, *, records: int, needed: Needed | None = None
    ) -> None:
        """Put the hold label and the record count on a namespace; none off at zero.

        Args:
            namespace: Its name.
            records: How many need it.
            needed: Asked at zero; without it nobody can come meanwhile.

        Raises:
            GoingError: It is being deleted, and was not held before.
            NamespaceNotReadyError: It is not held yet, and our rights in it will not last.
            StaleAggregateError: It was written while it was to be held.
        """
        ...


class CredentialGateway(Protocol):
    """The Secrets and ExternalSecrets that a credential is made of."""

    async def hold_credentials(
        self, namespace: str, name: str, *, held: bool, needed: Needed | None = None
    ) -> bool:
        """Put the hold label on a Secret and on the ExternalSecret of its name, or take it off.

        An ExternalSecret whose Secret is not there yet is not labelled; where there is no
        ExternalSecret, or its kind is not served, the Secret is labelled alone. One that the
        broker rendered is deleted instead of let go, and its Secret with it.

        Returns:
            Whether the Secret is there.

        Raises:
            GoingError, StaleAggregateError: As for a namespace.

        Idempotency: compared before written, as it was read.
        """
        ...

    async def render_external_secret(self, manifest: dict[str, Any]) -> bool:
        """Create an ExternalSecret, or change ours where it differs.

        One of that name that somebody else made is left as it is.

        Returns:
            Whether one of ours brings the Secret; not where its kind is not served, or taken.

        Idempotency: create-only by name; compared before it is written, with its uid.
        """
        ...

    async def external_secret_taken(self, manifest: dict[str, Any]) -> bool:
        """Tell whether an ExternalSecret's name is somebody else's; not where none is served."""
        ...


class ProviderConfigGateway(Protocol):
    """The ProviderConfigs that the broker makes."""

    async def provider_config_holder(self, manifest: dict[str, Any]) -> str | None:
        """Return whose a ProviderConfig is, SOMEBODY_ELSE if it is not held; None: free."""
        ...

    async def ensure_provider_config(self, manifest: dict[str, Any]) -> None:
        """Create a ProviderConfig, or change ours where it differs; another's stays as it is.

        Raises:
            GoingError: Ours is being deleted.
            NotAllowedError, StaleAggregateError: Ours may not, or could not, be changed.

        Idempotency: create-only by name; compared before it is written, with its uid.
        """
        ...

    async def delete_provider_config(
        self, *, api_version: str, namespace: str, name: str, needed: Needed | None = None
    ) -> None:
        """Delete a ProviderConfig of ours unless it is needed, or changed meanwhile."""
        ...

    async def provider_config_secret(self, manifest: dict[str, Any]) -> str | None:
        """Return the Secret that a ProviderConfig refers to; None when it is absent or mute."""
        ...


class TokenSecretGateway(Protocol):
    """The Secrets that carry tokens to machines."""

    async def token_secret_exists(self, namespace: str, name: str) -> bool:
        """Tell whether a token Secret exists, by a live GET."""
        ...

    async def create_token_secret(
        self, record: dict[str, Any], *, name: str, token: DrawnToken
    ) -> bool:
        """Create a generation's immutable Secret; tell whether the one there carries this token.

        Idempotency: create-only; the record's own stays, an earlier record's gives way.
        """
        ...

    async def delete_token_secret(self, namespace: str, name: str, *, owner: str) -> None:
        """Delete a token Secret of the record with this uid; another one's stays."""
        ...
