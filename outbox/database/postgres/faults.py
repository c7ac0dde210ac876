"""PostgreSQL's troubles by the names of outbox.errors, and which of them leave a unit in doubt."""

from __future__ import annotations

import asyncio

import asyncpg

from outbox.errors import DatabaseFault

# InternalClientError is what asyncpg says of a connection whose server took its leave between two
# statements: the new one was never sent.
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
STALE = (asyncpg.InvalidCachedStatementError, asyncpg.OutdatedSchemaCacheError)
"""A statement was prepared before the schema changed; asyncpg has dropped it by now."""
_RACE = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)


def fault_of(error: BaseException) -> DatabaseFault | None:
    """The name of an engine trouble, None for a fault of the statement itself."""
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
    # asyncpg's complaint about an argument's type is an InterfaceError too, and a bug of ours.
    if isinstance(error, (*LOST, *GOING)) and not isinstance(error, ValueError):
        return "connection"
    return None


def breaks_off(error: BaseException) -> bool:
    """Whether the connection ended with `error`, so that a COMMIT may have taken place."""
    severity = getattr(error, "severity_en", None) or getattr(error, "severity", None)
    gone = isinstance(error, (*LOST, *GOING)) and not isinstance(error, ValueError)
    return gone or severity in ("FATAL", "PANIC")
