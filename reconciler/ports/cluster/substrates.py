"""Substrates on a management cluster. Source: seed 000 "Ports"; design §5 "Kubernetes"."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from function.contract.record import SubstrateReference, XRReference
from reconciler.domain.teardown.release import XRFacts
from reconciler.ports.cluster.health import HealthReader


class KindNotServedError(Exception):
    """A kind is not served, so that an object of it can be called neither there nor gone."""

    elsewhere: str | None = None
    """The apiVersion of its group that serves the kind instead; None where none does."""


class NotAllowedError(Exception):
    """The broker may not do to an object what its teardown takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveObject:
    """The facts of a live GET of an object.

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


class SubstrateGateway(HealthReader, Protocol):
    """Substrates, their siblings and their XRs: objects of any kind."""

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
            StaleAggregateError: It is not what was looked at: who releases it may have written.
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
