"""Preconditions of provisioning on a management cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from function.contract.record import SubstrateReference


class ClusterChecks(Protocol):
    """The preconditions of provisioning on a management cluster."""

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
        would go with it during a teardown. All are lacking where the kind is not served.

        What was allowed is believed for a few minutes.
        """
        ...
