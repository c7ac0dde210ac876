"""Running units on one pool: begin, COMMIT, and again after a lost race or connection."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple

import asyncpg

from outbox.clock import Clock
from outbox.database.places import Places
from outbox.database.postgres.fate import Fates, Mark, commit, let_go, mark, marking
from outbox.database.postgres.faults import LOST, STALE, breaks_off, fault_of
from outbox.database.postgres.hosts import CONNECT_SECONDS, Connection, is_gone
from outbox.database.postgres.limits import SCAN_SECONDS, Limits, Times
from outbox.database.postgres.server import Server
from outbox.database.postgres.tx import PostgresTx
from outbox.database.transaction import T, patience
from outbox.errors import DatabaseUnavailable
from outbox.ids import Ids
from outbox.observer import DatabaseObserver

# Losing a race this often in a row means something else is wrong.
RACES = 20
# A restart of the server is survived by the next request, not by waiting inside this one.
RECONNECTS = 2
ROLLBACK_SECONDS = 1.0

Op = Literal["read", "write"]
Unit = Callable[..., Awaitable[T]]


class _CommitLost(Exception):
    """The connection went while COMMIT was on its way, and the transaction never took place."""


@dataclass(frozen=True, slots=True)
class Written(Generic[T]):
    """A unit's result, whether it made work for a drain, and the webhooks that it changed."""

    result: T
    made_work: bool
    changed: frozenset[str]


class Turn(NamedTuple):
    """Where a scan waits until it may have a connection, and for whom."""

    places: Places
    owner: str


class Units:
    """Runs units on up to `size` connections with the same limits, opened when first wanted."""

    def __init__(
        self, server: Server, clock: Clock, ids: Ids, limits: Limits, size: int,
        observer: Callable[[], DatabaseObserver],
    ) -> None:  # fmt: skip
        self._server = server
        self._fates = Fates(server)
        self._clock = clock
        self._ids = ids
        self._limits = limits
        self._size = size
        self._observer = observer
        self._pool: asyncpg.Pool | None = None
        self._opening = asyncio.Lock()

    async def open(self) -> asyncpg.Pool:
        """The pool; nothing is connected yet."""
        async with self._opening:
            if self._pool is None:
                self._pool = await self._server.pool(self._limits, self._size)
            return self._pool

    async def close(self) -> None:
        if self._pool is None:
            return
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await self._pool.close()
        except TimeoutError:
            self._pool.terminate()

    async def read(self, unit: Unit[T], args: Any, kwargs: Any, turn: Turn | None = None) -> T:
        """Run `unit` on a snapshot; with a `turn` it is a scan, with a limit of its own."""
        longest = None if turn is None else SCAN_SECONDS

        async def attempt(connection: Connection, times: Times) -> T:
            async with asyncio.timeout_at(times.body):
                await connection.execute(self._server.begin("read", self._limits, longest))
                tx = PostgresTx(connection, self._ids, self._clock.wall())
                result = await unit(tx, *args, **kwargs)
                await connection.execute("commit")
                return result

        return await self._tried("read", attempt, turn)

    async def write(self, unit: Unit[T], args: Any, kwargs: Any) -> Written[T]:
        """Run `unit` in a transaction."""

        async def attempt(connection: Connection, times: Times) -> Written[T]:
            async with asyncio.timeout_at(times.body):
                await connection.execute(self._server.begin("write", self._limits))
                tx = PostgresTx(connection, self._ids, self._clock.wall())
                result = await unit(tx, *args, **kwargs)
                marked: Mark | None = None
                for insert, put_off in tx.put_off.items():
                    if marked is None:
                        found = await tx.many(marking(insert), put_off)
                        marked = await mark(connection, found[0], (insert, put_off[0][0]))
                    else:
                        await tx.many(insert.statement, put_off)
                if marked is None:
                    marked = await mark(connection)
            await self._commit(connection, marked, times)
            return Written(result, tx.wake, frozenset(tx.changed))

        return await self._tried("write", attempt, None)

    async def _commit(self, connection: Connection, marked: Mark, times: Times) -> None:
        """Returns when the transaction is where COMMITs must be. Raises _CommitLost."""
        lost: BaseException | None = None
        try:
            async with asyncio.timeout_at(times.commit):
                if await commit(connection):
                    return
        except Exception as error:
            if not breaks_off(error):
                raise
            lost = error
            await let_go(connection)
        if marked.xid is None:
            # It has written nothing, so nothing is in doubt.
            return
        deadline = times.fate_from(asyncio.get_running_loop().time())
        if not await self._fates.committed(marked, deadline):
            raise _CommitLost from lost

    async def _tried(
        self,
        op: Op,
        attempt: Callable[[Connection, Times], Awaitable[T]],
        turn: Turn | None,
    ) -> T:
        """Run `attempt` on a connection until it succeeds, fails by itself, or luck runs out."""
        began = self._clock.monotonic()
        loop = asyncio.get_running_loop()
        waits = patience.get()
        # As if it had been called when the first unit of its request was, but for what lay between.
        times = self._limits.times(loop.time() - (waits.spent if waits else 0.0))
        races = lost = stale = 0
        try:
            while True:
                try:
                    return await self._once(attempt, times, turn)
                except _CommitLost as gone:
                    # The server says that it never took place, so it may run again.
                    error: BaseException = gone
                    lost += 1
                except STALE as outdated:
                    if stale:
                        raise
                    error = outdated
                    stale += 1
                except DatabaseUnavailable as refused:
                    self._observer().fault(refused.kind)
                    raise
                except Exception as problem:
                    kind = fault_of(problem)
                    forbidden = isinstance(problem, asyncpg.ReadOnlySQLTransactionError)
                    if kind is None or (forbidden and op == "read"):
                        raise
                    self._observer().fault(kind)
                    error = problem
                    races += kind == "serialization"
                    lost += kind in ("connection", "read_only")
                    if kind == "read_only" and self._pool is not None:
                        # The primary has become a standby: look for the new one.
                        await self._pool.expire_connections()
                    if kind not in ("serialization", "connection", "read_only"):
                        raise DatabaseUnavailable(kind, f"PostgreSQL: {problem}") from problem
                if races > RACES:
                    raise DatabaseUnavailable("serialization", "PostgreSQL: too many lost races")
                late = times.body is not None and loop.time() >= times.body
                if lost > RECONNECTS or late:
                    raise _unavailable(error) from error
        finally:
            seconds = self._clock.monotonic() - began
            if waits is not None:
                waits.spent += seconds
            self._observer().transaction(op, seconds)

    async def _once(
        self,
        attempt: Callable[[Connection, Times], Awaitable[T]],
        times: Times,
        turn: Turn | None,
    ) -> T:
        if turn is None:
            return await self._on_a_connection(attempt, times)
        try:
            async with asyncio.timeout(times.acquire(asyncio.get_running_loop().time())):
                await turn.places.take(turn.owner)
        except TimeoutError:
            raise DatabaseUnavailable("busy", "PostgreSQL: too many long reads at once") from None
        try:
            return await self._on_a_connection(attempt, times)
        finally:
            turn.places.leave(turn.owner)

    async def _on_a_connection(
        self, attempt: Callable[[Connection, Times], Awaitable[T]], times: Times
    ) -> T:
        pool = self._pool or await self.open()
        connection = await self._acquire(pool, times)
        try:
            return await attempt(connection, times)
        except BaseException as error:
            await _undo(connection, error)
            raise
        finally:
            # One that was lost after its answer: the pool may have let it go by itself, and what
            # was answered stands.
            with suppress(*LOST):
                await asyncio.shield(pool.release(connection))

    async def _acquire(self, pool: asyncpg.Pool, times: Times) -> Connection:
        try:
            return await pool.acquire(timeout=times.acquire(asyncio.get_running_loop().time()))
        except TimeoutError:
            if pool.get_idle_size() == 0 and pool.get_size() == self._size:
                raise DatabaseUnavailable("busy", "PostgreSQL: no connection is free") from None
            raise


async def _undo(connection: Connection, error: BaseException) -> None:
    """End the open transaction, so that the connection does not go back to the pool with it."""
    if is_gone(connection):
        return
    if isinstance(error, TimeoutError | asyncpg.ReadOnlySQLTransactionError) or breaks_off(error):
        # Asking it for a rollback would wait as long again.
        connection.terminate()
        return
    try:
        await asyncio.shield(connection.execute("rollback", timeout=ROLLBACK_SECONDS))
    except (*LOST, asyncpg.PostgresError, asyncio.CancelledError):
        connection.terminate()


def _unavailable(error: BaseException) -> DatabaseUnavailable:
    kind = fault_of(error) or "connection"
    if isinstance(error, TimeoutError):
        return DatabaseUnavailable("busy", "PostgreSQL: no answer in time")
    name = type(error).__name__
    text = {"read_only": "the server takes no writes", "serialization": "a race was lost"}
    return DatabaseUnavailable(kind, f"PostgreSQL: {text.get(kind, 'connection lost')} ({name})")
