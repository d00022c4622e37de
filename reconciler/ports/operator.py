"""What the operators' listener asks: may somebody, and what is there.

Belongs here: who is asked for a verdict, and the rows that operators read. Not here: HTTP,
Kubernetes, SQL. `adapters.http` calls it; nothing of it holds a token's text or digest.
Source: contracts §3.4 and §3.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol
from uuid import UUID

from pydantic import SecretStr

from reconciler.domain.broker import ids


class Verdict(StrEnum):
    """What a reviewer makes of a request."""

    ALLOWED = "allowed"
    FORBIDDEN = "forbidden"
    UNAUTHENTICATED = "unauthenticated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A verdict, and whose it is; the name is empty when nobody was recognised."""

    verdict: Verdict
    user: str = ""


class ReviewUnavailableError(Exception):
    """Nobody can say now who somebody is or what they may; nothing is allowed."""


class Reviewer(Protocol):
    """Knows who holds a credential, and what they may."""

    async def review(self, credential: SecretStr, *, verb: str, path: str) -> Judgement:
        """Judge one request.

        Args:
            credential: What the bearer header carries.
            verb: The HTTP method in lower case.
            path: What is asked for, without a query.

        Raises:
            ReviewUnavailableError: There is no verdict now.

        Idempotency: asks only; a verdict may be some seconds old.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """Where a Project lives."""

    project_id: UUID
    management_cluster_id: UUID
    region: str | None
    namespace_name: str
    namespace_phase: str
    assigned_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenMetadata:
    """All that is ever told of a bootstrap token.

    Attributes:
        resource_id: The one resource that it may enrol.
        generation: Its number among that resource's tokens, from 1.
        consumed_at: None while nobody registered with it.
        revoked_at: None while it was not revoked.
    """

    id: UUID
    project_id: UUID
    resource_id: UUID
    generation: int
    kind: str
    env_prefix: str
    issued_at: datetime
    expires_at: datetime
    consumed_at: datetime | None
    revoked_at: datetime | None


class TokenRevocation(StrEnum):
    """What became of an operator's wish to revoke one token."""

    REVOKED = "revoked"
    SPENT = "spent"
    """It was consumed or revoked before."""
    ABSENT = "absent"
    """The Project has no such token."""


class OperatorStore(Protocol):
    """What operators read, and the one thing that they change."""

    async def assignment(self, project: ids.ProjectID) -> Assignment | None:
        """Return where a Project lives; None when it was never placed."""
        ...

    async def tokens(
        self, project: ids.ProjectID, *, after: ids.BootstrapTokenID | None, limit: int
    ) -> Sequence[TokenMetadata]:
        """Return a Project's tokens by id, which is the order of their issue.

        Args:
            project: Whose.
            after: The last one of the page before; None for the first page.
            limit: Most tokens to return, from 1.
        """
        ...

    async def token(
        self, project: ids.ProjectID, token: ids.BootstrapTokenID
    ) -> TokenMetadata | None:
        """Return one of a Project's tokens, or None."""
        ...

    async def revoke(
        self, project: ids.ProjectID, token: ids.BootstrapTokenID, *, by: str
    ) -> TokenRevocation:
        """Revoke one of a Project's tokens, and audit it in the same transaction.

        Other generations of its resource stay.

        Args:
            project: Whose.
            token: Which.
            by: The user's name, as the reviewer gave it.

        Idempotency: a second call is told that it is spent.
        """
        ...
