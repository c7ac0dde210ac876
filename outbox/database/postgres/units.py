"""Run units on one pool: begin, COMMIT, and retry after a lost race or connection.

It is one module because what becomes of a unit depends on how it was begun.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Literal

import asyncpg

from outbox.clock import Clock
from outbox.database.claims import Reserve
from outbox.database.deferred import Deferred
from outbox.database.fair_limit import Crowded
from outbox.database.postgres.commit_outcome import (
    CommitOutcomes,
    Mark,
    Session,
    commit,
    commit_rows,
    let_go,
    mark,
    unknown,
)
from outbox.database.postgres.deferred_rows import Statement, together
from outbox.database.postgres.faults import STALE, breaks_off, fault_of, is_moving, unavailable
from outbox.database.postgres.groups import Groups
from outbox.database.postgres.hosts import CONNECT_SECONDS, Connection
from outbox.database.postgres.limits import GROUP, Limits, Times
from outbox.database.postgres.pooled import Pooled, Turn
from outbox.database.postgres.server import READ, Server
from outbox.database.postgres.tx import NotAlone, PostgresTx
from outbox.database.transaction import Row, T, patience
from outbox.errors import CannotStart, DatabaseUnavailable, OutcomeUnknown, OwnerElsewhere
from outbox.ids import Ids
from outbox.observer import Observer

# This many lost races in a row indicate another problem.
RACES = 20
# The next request survives a restart of the server; this one does not wait for it.
RECONNECTS = 2
FORBIDDEN = (
    asyncpg.InsufficientPrivilegeError,
    asyncpg.InvalidSchemaNameError,
    asyncpg.ReadOnlySQLTransactionError,
)
"""Errors of a change of the schema that only the operator can mend."""

Op = Literal["read", "write"]
Unit = Callable[..., Awaitable[T]]


class _CommitLost(Exception):
    """The connection closed during COMMIT, and the transaction is not committed."""


@dataclass(frozen=True, slots=True)
class Written(Generic[T]):
    """The result of a unit, whether the unit made work for a drain, and the webhooks it changed."""

    result: T
    made_work: bool
    changed: frozenset[str]


class Units:
    """Runs units on up to `size` connections with the same limits, opened on demand."""

    def __init__(
        self, server: Server, clock: Clock, ids: Ids, limits: Limits, size: int,
        observer: Callable[[], Observer],
    ) -> None:  # fmt: skip
        self._server = server
        self._fates = CommitOutcomes(server)
        self._clock = clock
        self._ids = ids
        self._limits = limits
        self._size = size
        self._observer = observer
        self._pool: asyncpg.Pool | None = None
        self._room = server.house.room(waits=limits is not GROUP)
        self._opening = asyncio.Lock()
        self._several: set[object] = set()
        """The code of units that send more than one query."""

    async def open(self) -> asyncpg.Pool:
        """Create the pool; nothing is connected yet."""
        if self._pool is not None:
            return self._pool
        async with self._opening:
            if self._pool is None:
                self._pool = await self._server.pool(self._limits, self._size)
            return self._pool

    def census(self) -> Mapping[str, int]:
        """Return the number of connections by state; they open on demand."""
        pool = self._pool
        opened, idle = (0, 0) if pool is None else (pool.get_size(), pool.get_idle_size())
        return {"busy": opened - idle, "idle": idle, "unopened": self._size - opened}

    async def close(self) -> None:
        if self._pool is None:
            return
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await self._pool.close()
        except TimeoutError:
            self._pool.terminate()

    async def read(
        self, unit: Unit[T], args: Any, kwargs: Any, turn: Turn | None, longest: float | None = None
    ) -> T:
        """Run `unit` on a snapshot; with `longest` it is a scan, which has its own limit.

        A unit that sends one query needs no transaction: the query has a snapshot of its own. The
        driver expects it of each unit until the unit sends a second one, and then starts again.
        """
        begin = self._server.begin("read", self._limits, longest)
        code = getattr(unit, "__code__", None)

        async def attempt(pooled: Pooled, times: Times) -> T:
            connection = await pooled.acquire()
            async with asyncio.timeout_at(times.body):
                alone = begin == READ and code not in self._several
                now = self._clock.wall()
                tx = PostgresTx(self._ids, now, connection, begin=begin, alone=alone)
                try:
                    result = await unit(tx, *args, **kwargs)
                except NotAlone:
                    self._several.add(code)
                    tx = PostgresTx(self._ids, now, connection, begin=begin)
                    result = await unit(tx, *args, **kwargs)
                if tx.begun:
                    await connection.execute("commit")
                return result

        return await self._tried("read", attempt, turn)

    async def write(
        self,
        unit: Unit[T],
        args: Any,
        kwargs: Any,
        groups: Groups | None = None,
        turn: Turn | None = None,
        reserve: Reserve | None = None,
    ) -> Written[T]:
        """Run `unit` in a transaction, or with others in a group when it only puts rows off.

        A group needs no turn. `reserve` gets what the unit claims, if it claims something.
        """

        stands_alone = getattr(unit, "alone", False) and not self._server.pooled

        async def attempt(pooled: Pooled, times: Times) -> Written[T]:
            if stands_alone:
                statement = partial(self._run_alone, await pooled.acquire(), times)
                tx = PostgresTx(self._ids, self._clock.wall(), statement=statement)
                return Written(await unit(tx, *args, **kwargs), tx.wake, frozenset(tx.changed))
            tx = self._writing(pooled)
            async with asyncio.timeout_at(times.body):
                result = await unit(tx, *args, **kwargs)
                if tx.claims and reserve is not None:
                    await reserve(tx.claims)
            try:
                grouped = (
                    groups is not None
                    and not tx.begun
                    and bool(tx.put_off)
                    and await groups.write(tx.put_off, times)
                )
                if not grouped:
                    await self._end(pooled, tx, times)
            except OutcomeUnknown as unknown:
                unknown.made_work, unknown.changed = tx.wake, frozenset(tx.changed)
                raise
            return Written(result, tx.wake, frozenset(tx.changed))

        try:
            return await self._tried("write", attempt, turn)
        except Crowded:
            raise DatabaseUnavailable("busy", "PostgreSQL: too many writes wait") from None

    async def write_at_once(self, rows: Deferred, times: Times) -> None:
        """Write the rows of a group. Raise OutcomeUnknown, or an error if nothing is written."""
        async with Pooled(self.open, self._size, self._room, times) as pooled:
            tx = self._writing(pooled)
            tx.put_off = rows
            await self._end(pooled, tx, times)

    async def _run_alone(
        self, connection: Connection, times: Times, text: str, *values: Any
    ) -> list[Row]:
        """Run a statement that commits by itself; return its rows. Raise OutcomeUnknown."""
        session = Session(connection.get_server_pid(), connection.started, None)
        try:
            async with asyncio.timeout_at(times.commit):
                rows, confirmed = await commit_rows(connection, text, *values)
        except Exception as error:
            if not breaks_off(error):
                raise
            await let_go(connection)
            # Until its session has ended, it may still take place.
            deadline = times.outcome_from(asyncio.get_running_loop().time())
            await self._fates.committed(session, deadline)
            raise unknown() from error
        if not confirmed:
            raise unknown()
        return rows

    def _writing(self, pooled: Pooled) -> PostgresTx:
        begin = self._server.begin("write", self._limits)
        return PostgresTx(self._ids, self._clock.wall(), acquire=pooled.acquire, begin=begin)

    async def _end(self, pooled: Pooled, tx: PostgresTx, times: Times) -> None:
        """Write what the unit has put off and commit, with one statement where that is possible."""
        if not tx.begun and not tx.put_off:
            return
        connection = await pooled.acquire()
        marked: Mark | Session | None = None
        async with asyncio.timeout_at(times.body):
            last = await together(connection, tx.put_off) if tx.put_off else None
            if last is not None and not tx.begun:
                marked = _session(connection, last)
            if marked is None:
                if last is not None:
                    await tx.write(last)
                marked = await mark(connection, tx.marked, tx.witness)
        if isinstance(marked, Session) and last is not None:
            await self._commit(connection, marked, times, last.text, *last.values)
        else:
            await self._commit(connection, marked, times)

    async def _commit(
        self, connection: Connection, marked: Mark | Session, times: Times, *statement: Any
    ) -> None:
        """Return when the transaction is on every required server. Raise _CommitLost.

        `statement`: one that commits by itself, and its values, in place of COMMIT.
        """
        lost: BaseException | None = None
        try:
            async with asyncio.timeout_at(times.commit):
                if await commit(connection, *statement):
                    return
        except Exception as error:
            if not breaks_off(error):
                raise
            lost = error
            await let_go(connection)
        if isinstance(marked, Mark) and marked.xid is None:
            # The transaction has written nothing, so nothing is in doubt.
            return
        deadline = times.outcome_from(asyncio.get_running_loop().time())
        if not await self._fates.committed(marked, deadline):
            raise _CommitLost from lost

    async def _tried(
        self,
        op: Op,
        attempt: Callable[[Pooled, Times], Awaitable[T]],
        turn: Turn | None,
    ) -> T:
        """Run `attempt` until it succeeds, fails by itself or runs out of retries."""
        began = self._clock.monotonic()
        loop = asyncio.get_running_loop()
        waits = patience.get()
        # The deadline starts with the first unit of the request, without the time between units.
        times = self._limits.times(loop.time() - (waits.waited if waits else 0.0))
        races = lost = stale = 0
        try:
            while True:
                try:
                    return await self._once(attempt, times, turn)
                except _CommitLost as gone:
                    # The server reports that it is not committed, so it may run again.
                    error: BaseException = gone
                    lost += 1
                except STALE as outdated:
                    if stale:
                        raise
                    error = outdated
                    stale += 1
                except DatabaseUnavailable as refused:
                    for kind in refused.kinds:
                        self._observer().fault(kind)
                    raise
                except Exception as problem:
                    if is_moving(problem):
                        raise OwnerElsewhere from problem
                    fault = fault_of(problem)
                    forbidden = isinstance(problem, asyncpg.ReadOnlySQLTransactionError)
                    if not self._limits.bounded and isinstance(problem, FORBIDDEN):
                        raise CannotStart(not_migrated(problem)) from problem
                    if fault is None or (forbidden and op == "read"):
                        raise
                    self._observer().fault(fault)
                    error = problem
                    races += fault == "serialization"
                    lost += fault in ("connection", "read_only")
                    if fault == "read_only" and self._pool is not None:
                        # The primary has become a standby: look for the new primary.
                        await self._pool.expire_connections()
                    if fault not in ("serialization", "connection", "read_only"):
                        raise DatabaseUnavailable(fault, f"PostgreSQL: {problem}") from problem
                if races > RACES:
                    raise DatabaseUnavailable("serialization", "PostgreSQL: too many lost races")
                late = times.body is not None and loop.time() >= times.body
                if lost > RECONNECTS or late:
                    raise unavailable(error) from error
        finally:
            seconds = self._clock.monotonic() - began
            if waits is not None:
                waits.waited += seconds
            self._observer().transaction(op, seconds)

    async def _once(
        self,
        attempt: Callable[[Pooled, Times], Awaitable[T]],
        times: Times,
        turn: Turn | None,
    ) -> T:
        async with Pooled(self.open, self._size, self._room, times, turn) as pooled:
            return await attempt(pooled, times)


def _session(connection: Connection, last: Statement) -> Session | None:
    """Return what tells the outcome of `last`, when it may stand alone."""
    if last.witness is None or connection.started is None:
        return None
    return Session(connection.get_server_pid(), connection.started, last.witness)


def not_migrated(error: BaseException) -> str:
    """Return why the schema cannot be brought up to date."""
    said = " ".join(str(error).split())
    return (
        f"the schema needs a change that this role may not make ({said}); run `carteiro migrate` "
        "once with the role that owns the tables, or let that owner or an administrator give "
        "them to this role: alter table … owner to ROLE"
    )
