"""Map PostgreSQL errors to outbox.errors, and tell which of them leave a unit in doubt."""

from __future__ import annotations

import asyncio

import asyncpg

from outbox.errors import DatabaseFault, DatabaseUnavailable

# asyncpg raises InternalClientError when the server closed the connection between two statements;
# the second statement was never sent.
LOST = (
    OSError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncio.TimeoutError,
)
GOING = (
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.TransactionTimeoutError,
)
REFUSED = (
    asyncpg.InvalidCatalogNameError,
    asyncpg.InvalidAuthorizationSpecificationError,
)
"""Errors of a connection that the server does not let in, which includes a wrong password."""
STALE = (asyncpg.InvalidCachedStatementError, asyncpg.OutdatedSchemaCacheError)
"""Errors of statements prepared before a schema change; asyncpg has dropped these statements."""
MOVING = "CAR01"
"""The SQLSTATE of a write that a guard refuses, because its owner is moving."""
_FULL = ("no more connections allowed", "max clients reached", "max client connections reached")
"""What PgBouncer and Supavisor say."""
_RACE = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)


def fault_of(error: BaseException) -> DatabaseFault | None:
    """Return the fault of the engine; None for a fault of the statement itself."""
    if isinstance(error, _RACE):
        return "serialization"
    if isinstance(error, asyncpg.DiskFullError | asyncpg.OutOfMemoryError):
        return "full"
    if isinstance(error, asyncpg.DataCorruptedError | asyncpg.IndexCorruptedError):
        return "corrupt"
    if isinstance(error, asyncpg.LockNotAvailableError | asyncpg.QueryCanceledError):
        return "busy"
    if isinstance(error, asyncpg.PostgresIOError):
        return "io"
    if isinstance(
        error, asyncpg.ReadOnlySQLTransactionError | asyncpg.TargetServerAttributeNotMatched
    ):
        return "read_only"
    # asyncpg also raises InterfaceError for an argument of a wrong type, which is a bug in our
    # code.
    if isinstance(error, (*LOST, *GOING, *REFUSED)) and not isinstance(error, ValueError):
        return "connection"
    return None


def is_full(error: BaseException) -> bool:
    """Return whether the server, or a pooler before it, takes no further connection now."""
    if isinstance(error, asyncpg.TooManyConnectionsError):
        return True
    # Poolers have no code of their own for it.
    text = str(error).lower()
    return isinstance(error, asyncpg.PostgresError) and any(one in text for one in _FULL)


def breaks_off(error: BaseException) -> bool:
    """Return whether `error` ended the connection, so that a COMMIT may have succeeded."""
    severity = getattr(error, "severity_en", None) or getattr(error, "severity", None)
    gone = isinstance(error, (*LOST, *GOING)) and not isinstance(error, ValueError)
    return gone or severity in ("FATAL", "PANIC")


def is_moving(error: BaseException) -> bool:
    """Return whether a guard has refused the write (see outbox.database.postgres.guards)."""
    return getattr(error, "sqlstate", None) == MOVING


def unavailable(error: BaseException) -> DatabaseUnavailable:
    """Return what the caller of a unit gets, after the last try."""
    if is_full(error):
        return DatabaseUnavailable("busy", f"PostgreSQL: no connection is free ({error})")
    kind = fault_of(error) or "connection"
    if isinstance(error, TimeoutError):
        return DatabaseUnavailable("busy", "PostgreSQL: no answer in time")
    name = type(error).__name__
    text = {"read_only": "the server takes no writes", "serialization": "a race was lost"}
    return DatabaseUnavailable(kind, f"PostgreSQL: {text.get(kind, 'connection lost')} ({name})")
