"""The broker's view of one management cluster: what it reads there and does there.

The effects that `app.broker_*` call. Source: seed 000 "Ports"; design §5 "Kubernetes".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Protocol

from function.contract.record import SubstrateReference, XRReference
from reconciler.domain.teardown.release import XRFacts
from reconciler.ports.cluster.health import HealthReader
from reconciler.ports.store.aggregates import DrawnToken


class KindNotServedError(Exception):
    """A kind is not served, so that an object of it can be called neither there nor gone."""

    elsewhere: str | None = None
    """The apiVersion of its group that serves the kind instead; None where none does."""


class NotAllowedError(Exception):
    """The broker may not do to an object what its teardown takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveObject:
    """What a live GET of an object said.

    Attributes:
        uid: Its uid.
        terminating: It has a deletionTimestamp.
        released: It carries the released annotation.
        held: It carries the hold label.
        below_held: It is a composite that is marked, so that all below it is held.
        controller: Its controlling owner; None without one.
        finalizers: What it waits for once it is deleted.
        deleting_since: Its deletionTimestamp; None while nobody deletes it.
        below: What it composes, where it is a composite.
        version: Its resourceVersion; no part of what it is.
    """

    uid: str
    terminating: bool
    released: bool
    held: bool = False
    below_held: bool = False
    controller: XRReference | None = None
    finalizers: tuple[str, ...] = ()
    deleting_since: datetime | None = None
    below: tuple[SubstrateReference, ...] = ()
    version: str = field(default="", compare=False)


SOMEBODY_ELSE: Final = "somebody else"
"""Who holds what the broker did not make; no object has this name."""

Needed = Callable[[], Awaitable[bool]]
"""Asks the rows, as they are now, whether somebody needs what is about to be let go."""


class ManagementCluster(HealthReader, Protocol):
    """Effects on one management cluster, each safe to repeat, and harmless when it comes late.

    What several share is let go in two steps: it is marked, `needed` is asked, and it goes only
    as it was marked. Who comes to need it stores that first and takes the mark off afterwards,
    so that one of the two sees the other, however late a step arrives (docs/decisions/0015).
    """

    async def hold_policies_problem(self) -> str | None:
        """Name the first admission policy that is not in force as it must be; None: all are."""
        ...

    async def definition_problem(self, reference: SubstrateReference) -> str | None:
        """Say why a kind cannot be composed here, or None when it can."""
        ...

    async def missing_rights(
        self, *, api_version: str, kind: str, verbs: Sequence[str], namespace: str = ""
    ) -> tuple[str, ...]:
        """Return which of some verbs the broker lacks on a kind, in every namespace or in one.

        One is asked about only for what the broker's held RoleBinding gives: another right in it
        would go with it in mid-teardown. All are lacking where the kind is not served.

        What was allowed is believed for a few minutes.
        """
        ...

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

    async def get_xr_facts(self, xr: XRReference, namespace: str) -> XRFacts:
        """Look up a composite resource, live; another uid under its name is not it.

        An empty uid stands for whichever has the name.

        Raises:
            KindNotServedError: Its kind is not served.
        """
        ...

    async def get_object(self, reference: SubstrateReference, namespace: str) -> LiveObject | None:
        """Return a protected object by a live GET, or None when it is gone.

        Raises:
            KindNotServedError: Its kind is not served.
            NotAllowedError: The broker may not read it.
        """
        ...

    async def is_composite(self, reference: SubstrateReference) -> bool:
        """Tell whether an object is one that composes others, by its kind.

        One whose kind is not served is none. What was found once is believed.
        """
        ...

    async def hold_below(
        self, reference: SubstrateReference, namespace: str, *, live: LiveObject, handle: str
    ) -> None:
        """Mark a composite, so that what is below it is held at every depth.

        Args:
            reference: The composite.
            namespace: Where it is.
            live: What a look said of it.
            handle: `pr-<uuid>` of the aggregate that protects it; refusals name it.

        Raises:
            StaleAggregateError: It is not what was looked at: who lets go of it may have written.
            NotAllowedError: The broker may not change it.
        """
        ...

    async def release(self, reference: SubstrateReference, namespace: str, *, uid: str) -> None:
        """Set the released annotation, with the uid as precondition.

        Raises:
            StaleAggregateError: The object is gone, or another one has its name.
            NotAllowedError: The broker may not change it.
        """
        ...

    async def let_go(self, reference: SubstrateReference, namespace: str, *, uid: str) -> None:
        """Take hold and mark off, with the uid as precondition; absent is success.

        Raises:
            NotAllowedError: The broker may not change it.

        Idempotency: an object without the label is not written by the API server.
        """
        ...

    async def delete_object(
        self, reference: SubstrateReference, namespace: str, *, uid: str, foreground: bool = True
    ) -> None:
        """Delete with the uid as precondition; absent is success.

        Args:
            reference: What to delete.
            namespace: Where it is.
            uid: Another object under its name stays.
            foreground: It goes after what is below it; otherwise at once.

        Raises:
            NotAllowedError: The broker may not delete it.
        """
        ...

    async def write_status(self, record: dict[str, Any], status: dict[str, Any]) -> None:
        """Replace a record's status, if nobody wrote to the record since it was read.

        Raises:
            StaleAggregateError: It was written to, is gone, or another one has its name.
        """
        ...

    async def record_stands(self, record: dict[str, Any]) -> bool:
        """Tell, by a live GET, whether a record is there under its uid, as living as it was read.

        One that was read while it was terminating may be; any other may not.
        """
        ...

    async def delete_loose_record(self, record: dict[str, Any]) -> None:
        """Delete a record that nothing controls; its teardown follows.

        Idempotency: one that is gone, another one, or taken over by a composite stays as it is.
        """
        ...

    async def remove_finalizer(self, record: dict[str, Any]) -> None:
        """Take the teardown finalizer off, with its uid as precondition."""
        ...

    async def record_event(
        self, record: dict[str, Any], *, reason: str, message: str, warning: bool = False
    ) -> None:
        """Record a Kubernetes Event on the record and its XR.

        Idempotency: once per reason, message and subject.
        """
        ...
