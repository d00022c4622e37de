"""Translates errors of the Postgres client into our own.

The one translation table. What is not understood passes through, with a note of what was
attempted. Messages name constraints, never row values.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import asyncpg

from function.contract.conditions import Reason
from reconciler.domain.aggregate.errors import AssignmentNotFoundError, BrokerError, RefusedError
from reconciler.ports.registration import AllocationLostError, StoreUnavailableError
from reconciler.ports.store.aggregates import MeshRefusedError

_UNAVAILABLE: Final = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    # A connection that has read the server's farewell and not yet its end takes no statement.
    asyncpg.InternalClientError,
    asyncpg.TooManyConnectionsError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.IdleInTransactionSessionTimeoutError,
)
_LOST: Final = (
    asyncpg.LockNotAvailableError,
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
)
_PLACEMENT: Final = frozenset(
    {
        "provisioned_resources_project_id_fkey",
        "provisioned_resources_management_cluster_id_fkey",
        "bootstrap_tokens_project_id_fkey",
        "shared_holds_management_cluster_id_fkey",
    }
)
_TAKEN: Final = frozenset(
    {
        "nodes_mesh_ip_live",
        "nodes_public_key_live",
        "nodes_resource_live",
        "registration_nonces_pkey",
    }
)
"""What two registrations may want at once; the later one is judged again."""
_FOR_GOOD: Final = (
    asyncpg.SyntaxOrAccessError,
    asyncpg.InvalidSchemaNameError,
    asyncpg.InvalidAuthorizationSpecificationError,
)
"""A table or a right that is missing, a wrong password: what no other try fixes."""


_RULES: Final = (
    asyncpg.CheckViolationError,
    asyncpg.ForeignKeyViolationError,
    asyncpg.NotNullViolationError,
)


class BrokenRuleError(RefusedError):
    """The schema refuses a row.

    Attributes:
        rule: The field, as the schema names it, and what it must be; never its value.
    """

    def __init__(self, attempt: str, rule: str) -> None:
        self.rule = rule
        super().__init__(f"cannot {attempt}: {rule}", reason=Reason.INVALID_INPUT)


@contextmanager
def translated(attempt: str) -> Iterator[None]:
    """Translate the driver errors of a block.

    Args:
        attempt: Verb and noun of what the block does, for the message.

    Raises:
        AssignmentNotFoundError: A Project or cluster that a row refers to is not stored.
        BrokenRuleError: A CHECK or another reference refuses a row, or Postgres a value.
        AllocationLostError: A lock, an address, a key or a nonce was lost to somebody else.
        StoreUnavailableError: The server cannot be reached now.
    """
    try:
        yield
    except _RULES as error:
        if error.constraint_name in _PLACEMENT:
            message = f"cannot {attempt}: its Project or management cluster is not stored"
            raise AssignmentNotFoundError(message) from error
        raise BrokenRuleError(attempt, _rule(error)) from error
    except asyncpg.DataError as error:
        kind = type(error).__name__.removesuffix("Error")
        rule = f"a value cannot be stored in Postgres ({kind})"
        # Not the cause: it quotes the value.
        raise BrokenRuleError(attempt, rule) from None
    except asyncpg.UniqueViolationError as error:
        if error.constraint_name in _TAKEN:
            message = f"cannot {attempt}: {error.constraint_name} is already taken"
            raise AllocationLostError(message) from error
        error.add_note(f"attempted: {attempt}")
        raise
    except _LOST as error:
        message = f"cannot {attempt}: another transaction held its rows"
        raise AllocationLostError(message) from error
    except _UNAVAILABLE as error:
        message = f"cannot {attempt}: the store is unreachable"
        raise StoreUnavailableError(message) from error
    except asyncpg.PostgresError as error:
        error.add_note(f"attempted: {attempt}")
        raise


@contextmanager
def passing(attempt: str) -> Iterator[None]:
    """Translate as `translated`, and what that passes on as `untranslated`.

    Raises:
        AllocationLostError: A lock was lost to somebody else.
        StoreUnavailableError: The server cannot be reached, or refuses it now.
        asyncpg.PostgresError: A table, a right or the password is missing or wrong.
    """
    with untranslated(attempt), translated(attempt):
        yield


@contextmanager
def untranslated(attempt: str) -> Iterator[None]:
    """Count every refusal that nobody translated, and that may pass, as a store that is away.

    For what is tried again anyhow: a full disk, a primary that was demoted or a cancelled
    statement is no reason to end a process.

    Raises:
        StoreUnavailableError: The server refuses it now.
        asyncpg.PostgresError: A table, a right or the password is missing or wrong.
    """
    try:
        yield
    except _FOR_GOOD:
        raise
    except asyncpg.PostgresError as error:
        message = f"cannot {attempt}: the store refuses it temporarily ({type(error).__name__})"
        raise StoreUnavailableError(message) from error


@contextmanager
def refused(attempt: str) -> Iterator[None]:
    """Translate as `translated`, and make one refusal of all that its caller cannot fix.

    For what a teardown asks of the identity side: it has no input that could be invalid, so
    a CHECK or a reference in its way, and what nobody understands, is the store's refusal.

    Raises:
        MeshRefusedError: The store refuses it; nothing was changed.
        AllocationLostError: A lock was lost to somebody else.
        StoreUnavailableError: The server cannot be reached now.
    """
    try:
        with translated(attempt):
            yield
    except BrokenRuleError as error:
        raise MeshRefusedError(str(error), rule=error.rule) from error
    except (asyncpg.PostgresError, BrokerError) as error:
        message = f"cannot {attempt}: the store refuses it"
        raise MeshRefusedError(message) from error


def _rule(error: asyncpg.PostgresError) -> str:
    """Return field and rule of a refused row; constraints are named `<table>_<field>_<kind>`."""
    table, constraint = error.table_name or "", error.constraint_name or ""
    if isinstance(error, asyncpg.NotNullViolationError):
        return f"{table}.{error.column_name}: must not be null"
    field = constraint.removeprefix(f"{table}_").rpartition("_")[0] or constraint
    if isinstance(error, asyncpg.ForeignKeyViolationError):
        return f"{table}.{field}: must name a stored row ({constraint})"
    return f"{table}.{field}: must satisfy {constraint}"
