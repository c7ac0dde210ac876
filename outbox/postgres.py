"""The PostgreSQL driver: each unit is its own transaction on a pooled connection.

What differs from SQLite is here: retries after a lost race or connection, the fate of a COMMIT
whose answer never came, and the NOTIFY that wakes other nodes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Concatenate, Literal, TypeAlias

import asyncpg
from tenacity import AsyncRetrying, retry_if_exception_type, wait_exponential

from outbox.clock import Clock
from outbox.database import PACE, P, Row, T, Tx
from outbox.dialect import translate
from outbox.errors import CannotStart, DatabaseFault, DatabaseUnavailable, OutcomeUnknown
from outbox.events import INSERT
from outbox.ids import Ids
from outbox.leadership import Leadership, Pace
from outbox.observer import DatabaseObserver, Unwatched
from outbox.postgres_leadership import PostgresLeadership

CHANNEL = "carteiro_outbox"
# Losing a race this often in a row means something else is wrong.
RACES = 20
# A restart of the server is survived by the next request, not by waiting inside this one.
RECONNECTS = 2
CONNECT_SECONDS = 4.0
COMMAND_SECONDS = 30.0
NOTIFY_SECONDS = 0.005

# InternalClientError is what asyncpg says of a connection whose server took its leave between two
# statements: the new one was never sent.
_LOST = (
    OSError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncio.TimeoutError,
)
_RACE = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)
_GOING = (
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
    asyncpg.ReadOnlySQLTransactionError,
)
_EVENTS = INSERT + " returning cast(pg_current_xact_id() as text) as xid, now() as began"
_XID = "select cast(pg_current_xact_id_if_assigned() as text) as xid, now() as began"
# After a crash PostgreSQL may give an id that had left no trace on disk to another transaction,
# so `committed` is believed only where the server has run on since (its checkpointer tells), or
# where the transaction's first event is there.
_FATE = """
select pg_xact_status(cast(cast($1 as text) as xid8)) as status,
  coalesce((select max(backend_start) < $2 from pg_stat_activity
    where backend_type = 'checkpointer'), false) as ran_on,
  exists (select 1 from events where id = $3) as event_is_there
"""

# asyncpg's pool hands out proxies that its type information does not describe.
_Connection: TypeAlias = Any


def _kind(error: BaseException) -> DatabaseFault | None:
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
    # asyncpg's complaint about an argument's type is an InterfaceError too, and a bug of ours.
    if isinstance(error, (*_LOST, *_GOING)) and not isinstance(error, ValueError):
        return "connection"
    return None


class _CommitLost(Exception):
    """The connection went while COMMIT was on its way."""

    def __init__(self, xid: str | None) -> None:
        super().__init__()
        self.xid = xid


class PostgresTx:
    """`Tx` on one connection inside one transaction."""

    __slots__ = ("_connection", "_ids", "now", "outgoing", "wake")
    engine: Literal["sqlite", "postgres"] = "postgres"

    def __init__(self, connection: _Connection, ids: Ids, now: int) -> None:
        self._connection = connection
        self._ids = ids
        self.now = now
        self.outgoing: list[tuple[Any, ...]] = []
        self.wake = False

    def new_id(self) -> str:
        return self._ids.new(self.now)

    async def one(self, sql: str, *args: Any) -> Row | None:
        row: Row | None = await self._connection.fetchrow(translate(sql, "postgres"), *args)
        return row

    async def all(self, sql: str, *args: Any) -> list[Row]:
        rows: list[Row] = await self._connection.fetch(translate(sql, "postgres"), *args)
        return rows

    async def run(self, sql: str, *args: Any) -> int:
        status: str = await self._connection.execute(translate(sql, "postgres"), *args)
        count = status.rpartition(" ")[2]
        return int(count) if count.isdigit() else 0

    async def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> list[Row]:
        if not rows:
            return []
        text = translate(sql, "postgres")
        if "returning" not in text:
            await self._connection.executemany(text, rows)
            return []
        found: list[Row] = await self._connection.fetchmany(text, rows)
        return found


class PostgresDatabase:
    """`Database` on a PostgreSQL server."""

    engine: Literal["sqlite", "postgres"] = "postgres"

    def __init__(self, pool: asyncpg.Pool, url: str, clock: Clock, ids: Ids) -> None:
        self.clock = clock
        self.ids = ids
        self.observer: DatabaseObserver = Unwatched()
        self._pool = pool
        self._url = url
        self._listeners: list[Callable[[], None]] = []
        self._made_work = asyncio.Event()
        self._signals: asyncio.Task[None] | None = None

    def listen(self, callback: Callable[[], None]) -> None:
        self._listeners.append(callback)
        self._start_signals()

    def leadership(self, pace: Pace = PACE) -> Leadership:
        return PostgresLeadership(self._url, self.clock, pace)

    def _start_signals(self) -> None:
        """A node that only takes writes tells the others of them, too."""
        if self._signals is None:
            self._signals = asyncio.create_task(self._signal(), name="postgres-signals")

    async def close(self) -> None:
        if self._signals is not None:
            self._signals.cancel()
            await asyncio.gather(self._signals, return_exceptions=True)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await self._pool.close()
        except TimeoutError:
            self._pool.terminate()

    async def read(
        self, unit: Callable[Concatenate[Tx, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        async def attempt(connection: _Connection) -> T:
            await connection.execute("begin isolation level repeatable read read only")
            tx = PostgresTx(connection, self.ids, self.clock.wall())
            result = await unit(tx, *args, **kwargs)
            await connection.execute("commit")
            return result

        return await self._tried("read", attempt)

    scan = read

    async def write(
        self, unit: Callable[Concatenate[Tx, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        async def attempt(connection: _Connection) -> tuple[T, bool]:
            await connection.execute("begin")
            tx = PostgresTx(connection, self.ids, self.clock.wall())
            result = await unit(tx, *args, **kwargs)
            event_id: str | None = None
            if tx.outgoing:
                event_id = tx.outgoing[0][0]
                mark = (await tx.many(_EVENTS, tx.outgoing))[0]
            else:
                mark = await connection.fetchrow(_XID)
            made_work = tx.wake or bool(tx.outgoing)
            try:
                await connection.execute("commit")
            except (*_LOST, *_GOING) as error:
                # A transaction without an id has written nothing, so nothing is in doubt.
                xid = mark["xid"]
                if xid is not None and not await self._committed(xid, mark["began"], event_id):
                    raise _CommitLost(xid) from error
            return result, made_work

        result, made_work = await self._tried("write", attempt)
        if made_work:
            self._made_work.set()
            self._start_signals()
            for callback in self._listeners:
                callback()
        return result

    async def _tried(
        self, op: Literal["read", "write"], attempt: Callable[[_Connection], Awaitable[T]]
    ) -> T:
        """Run `attempt` on a connection until it succeeds, fails by itself, or luck runs out."""
        began = self.clock.monotonic()
        races = lost = 0
        while True:
            try:
                return await self._once(attempt)
            except _CommitLost as gone:
                # The server says that it never took place, so it may run again.
                error: BaseException = gone
                lost += 1
            except OutcomeUnknown:
                self.observer.fault("connection")
                raise
            except Exception as problem:
                kind = _kind(problem)
                if kind is None:
                    raise
                self.observer.fault(kind)
                error = problem
                races += kind == "serialization"
                lost += kind == "connection"
                if kind not in ("serialization", "connection"):
                    raise DatabaseUnavailable(kind, f"PostgreSQL: {problem}") from problem
            finally:
                self.observer.transaction(op, self.clock.monotonic() - began)
            if races > RACES:
                raise DatabaseUnavailable("serialization", "PostgreSQL: too many lost races")
            if lost > RECONNECTS or self.clock.monotonic() - began > CONNECT_SECONDS:
                raise DatabaseUnavailable(
                    "connection", f"PostgreSQL: connection lost ({type(error).__name__})"
                ) from error

    async def _once(self, attempt: Callable[[_Connection], Awaitable[T]]) -> T:
        connection = await self._pool.acquire(timeout=CONNECT_SECONDS)
        try:
            return await attempt(connection)
        except BaseException:
            # Cancelled or failed inside the transaction: it must not go back open.
            if not connection.is_closed():
                try:
                    await asyncio.shield(connection.execute("rollback", timeout=CONNECT_SECONDS))
                except (*_LOST, asyncpg.PostgresError, asyncio.CancelledError):
                    connection.terminate()
            raise
        finally:
            # One that was lost after its answer: the pool may have let it go by itself, and what
            # was answered stands.
            with suppress(*_LOST):
                await asyncio.shield(self._pool.release(connection))

    async def _committed(self, xid: str, began: datetime, event_id: str | None) -> bool:
        """Whether the transaction `xid`, whose COMMIT got no answer, took place.

        `began` is its start by the server's clock, `event_id` one of its events. Raises
        OutcomeUnknown when nobody can say.
        """
        deadline = self.clock.monotonic() + CONNECT_SECONDS
        while self.clock.monotonic() < deadline:
            try:
                fate = await self._fate(xid, began, event_id)
            except Exception as error:  # noqa: BLE001 - an answer is an answer, all else is none
                if _kind(error) is None:
                    break
                # The server is on its way up; the deadline above bounds this.
                await asyncio.sleep(0.05)
                continue
            if event_id is not None and fate["event_is_there"]:
                return True
            if fate["status"] == "in progress":
                await asyncio.sleep(0.05)
                continue
            if fate["status"] == "aborted":
                return False
            if fate["status"] == "committed" and (event_id is not None or fate["ran_on"]):
                # With an event of its own that is not there, the id is another transaction's.
                return event_id is None
            break
        raise OutcomeUnknown(
            "connection", "PostgreSQL: the connection was lost during COMMIT; its fate is unknown"
        )

    async def _fate(self, xid: str, began: datetime, event_id: str | None) -> Row:
        connection = await asyncpg.connect(self._url, timeout=CONNECT_SECONDS)
        try:
            fate: Row = await connection.fetchrow(
                _FATE, xid, began, event_id, timeout=CONNECT_SECONDS
            )
            return fate
        finally:
            connection.terminate()

    async def _signal(self) -> None:
        """Keep one connection that hears other nodes' NOTIFY and sends ours, after commit.

        Inside the transaction NOTIFY takes a lock of the whole cluster and halves the write rate.
        """
        forever = AsyncRetrying(
            retry=retry_if_exception_type((*_LOST, asyncpg.PostgresError)),
            wait=wait_exponential(multiplier=0.1, max=2),
        )
        async for attempt in forever:
            with attempt:
                connection = await asyncpg.connect(self._url, timeout=CONNECT_SECONDS)
                try:
                    await connection.add_listener(CHANNEL, self._heard)
                    # What was announced while nobody listened is found by looking once.
                    self._heard()
                    while True:
                        await self._made_work.wait()
                        self._made_work.clear()
                        await connection.execute(f"notify {CHANNEL}", timeout=CONNECT_SECONDS)
                        await asyncio.sleep(NOTIFY_SECONDS)
                finally:
                    connection.terminate()

    def _heard(self, *_: object) -> None:
        for callback in self._listeners:
            callback()


async def _keep(_: object) -> None:
    """Connections come back clean (units set nothing), so the pool's reset query is left out."""


async def open(
    url: str,
    *,
    clock: Clock,
    ids: Ids,
    pool_size: int,
    synchronous: Literal["full", "normal"],
) -> PostgresDatabase:
    """Connect to the server at `url`. Raises CannotStart with one clear line."""
    try:
        pool = await asyncpg.create_pool(
            url,
            min_size=min(2, pool_size),
            max_size=pool_size,
            timeout=CONNECT_SECONDS,
            command_timeout=COMMAND_SECONDS,
            statement_cache_size=512,
            max_inactive_connection_lifetime=300,
            reset=_keep,
            server_settings={
                "application_name": "carteiro",
                "synchronous_commit": "on" if synchronous == "full" else "off",
                # A node frozen in mid-transaction must not keep its locks past its lease: the
                # others could not rescue what it held.
                "idle_in_transaction_session_timeout": "10s",
                "jit": "off",
            },
        )
    except (*_LOST, asyncpg.PostgresError, ValueError) as error:
        raise CannotStart(
            f"cannot reach PostgreSQL: {error or type(error).__name__}; "
            "check database.url and that the server runs"
        ) from error
    return PostgresDatabase(pool, url, clock, ids)
