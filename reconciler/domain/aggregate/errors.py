"""The closed set of the broker's domain errors: the seeds' nine sentinels.

Errors that a caller of the context branches on; `code` is the seeds' name, so that a
runbook search finds the class. Source: seed 000 "Error sentinels", seed 001
`ErrNodeDeregistrationFailed`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from function.contract.conditions import Reason


class BrokerError(Exception):
    """Base of the closed set.

    Attributes:
        code: The seeds' sentinel name.
        reason: The CamelCase reason that conditions show.
    """

    code: ClassVar[str] = "ErrBroker"
    reason: ClassVar[str] = "BrokerError"


class InvalidInputError(BrokerError):
    """A value breaks an invariant of the aggregate or of a port."""

    code = "ErrInvalidInput"
    reason = "InvalidInput"


class BlueprintNotFoundError(BrokerError):
    """The declaration's BlueprintVersion does not exist."""

    code = "ErrBlueprintNotFound"
    reason = "BlueprintNotFound"


class CloudNotFoundError(BrokerError):
    """The credential's Cloud does not exist."""

    code = "ErrCloudNotFound"
    reason = "CloudNotFound"


class CredentialNotFoundError(BrokerError):
    """The declaration's CloudCredential does not exist."""

    code = "ErrCredentialNotFound"
    reason = "CredentialNotFound"


class AssignmentNotFoundError(BrokerError):
    """The namespace belongs to no placed Project."""

    code = "ErrAssignmentNotFound"
    reason = "ProjectNotFound"


class ParameterValuesInvalidError(BrokerError):
    """The declared parameters do not satisfy the blueprint's schema."""

    code = "ErrParameterValuesInvalid"
    reason = "InvalidParameters"


class ProvisionedResourceNotFoundError(BrokerError):
    """No row has this ProvisionedResourceID."""

    code = "ErrProvisionedResourceNotFound"
    reason = "ProvisionedResourceNotFound"


class NamespaceNotReadyError(BrokerError):
    """The Project's namespace is not Ready."""

    code = "ErrNamespaceNotReady"
    reason = "NamespaceNotReady"


class NodeDeregistrationFailedError(BrokerError):
    """The node could not be taken out of the mesh; nothing else was touched."""

    code = "ErrNodeDeregistrationFailed"
    reason = "NodeDeregistrationFailed"


class TokenRevocationFailedError(NodeDeregistrationFailedError):
    """A token could not be revoked, which comes before the node; nothing else was touched.

    The same sentinel, because it is the same step; a reason of its own, because another part
    of the identity side is to be fixed.
    """

    reason = "TokenRevocationFailed"


class StaleAggregateError(Exception):
    """Somebody else wrote the aggregate since it was read; observe again.

    Outside the closed set: a conflict is not an answer to a caller, it is a retry.
    """


class RefusedError(InvalidInputError):
    """A declaration is refused for a reason of its own, with a field and a rule.

    Attributes:
        shown_reason: The CamelCase reason that the Admitted condition shows.
    """

    def __init__(self, message: str, *, reason: str) -> None:
        self.shown_reason = reason
        super().__init__(message)


class LivesElsewhereError(RefusedError):
    """A declaration's resource lives on another management cluster of this database.

    It is not judged again for a while: the other one lives until somebody takes it down there.
    """

    def __init__(self, slug: str) -> None:
        message = (
            "metadata.namespace: a resource of this name and Project exists on management cluster "
            f"{slug!r}; delete it there first"
        )
        super().__init__(message, reason=Reason.LIVES_ELSEWHERE)


class ProtectedElsewhereError(RefusedError):
    """A declaration names an object that another unfinished aggregate protects.

    It is judged again by itself: the other one may be on its way out.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message, reason=Reason.PROTECTED_ELSEWHERE)


class ExternalSecretTakenError(RefusedError):
    """The name of a credential's ExternalSecret is somebody else's.

    It is judged again by itself: the other one may be deleted.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message, reason=Reason.EXTERNAL_SECRET_TAKEN)


class GoingError(Exception):
    """The object to hold is being deleted; the reconcile waits until it is gone.

    Outside the closed set: a record goes on by itself.
    """

    def __init__(self, kind: str, name: str, finalizers: Sequence[str] = ()) -> None:
        waits = f" (finalizers: {', '.join(finalizers)})" if finalizers else ""
        super().__init__(f"{kind} {name!r} is being deleted{waits}")
