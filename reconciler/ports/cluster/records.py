"""The records of a management cluster. Source: seed 000 "Ports"; design §5 "Kubernetes"."""

from __future__ import annotations

from typing import Any, Protocol


class RecordGateway(Protocol):
    """ProvisioningRecords: status, finalizer, Events."""

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
