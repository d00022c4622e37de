"""The port to the conditions of live objects.

Reading conditions and what is below. Source: docs/decisions/0021.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from function.contract.conditions import ObservedCondition
from function.contract.record import SubstrateReference


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The status of a live object.

    Attributes:
        conditions: By their type, as a provider wrote them: not redacted.
        below: What it composes, where it is a composite.
    """

    conditions: Mapping[str, ObservedCondition]
    below: tuple[SubstrateReference, ...] = ()


class HealthReader(Protocol):
    """Reads, and nothing else."""

    async def health(self, reference: SubstrateReference, namespace: str) -> Health | None:
        """Return what an object says by a live GET; None when it is gone.

        Objects of the core group are not read: Secrets are among them, and none reports. They
        count as gone.

        Raises:
            KindNotServedError: Its kind is not served in that version.
            NotAllowedError: It may not be read.
        """
        ...
