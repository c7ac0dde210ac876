"""The PostgreSQL driver: units run on pooled connections, each in its own transaction or a group.

It handles what differs from SQLite: limits, retries after a lost race or connection, the outcome of
a COMMIT without a reply, and the NOTIFY that wakes other nodes.
"""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Concatenate, Literal

import asyncpg
import structlog

from outbox.clock import Clock
from outbox.database.claims import Reserve
from outbox.database.fair_limit import Crowded
from outbox.database.leadership import Leadership, Pace
from outbox.database.moving_owners import asking, must_be_here
from outbox.database.pacing import Meter, working
from outbox.database.postgres.faults import LOST
from outbox.database.postgres.groups import CONNECTIONS, Groups, Turns
from outbox.database.postgres.leadership import PostgresLeadership
from outbox.database.postgres.limits import (
    DRAIN,
    GROUP,
    LEASE,
    MIGRATION,
    REQUESTS,
    SCAN_SECONDS,
    Limits,
)
from outbox.database.postgres.pooled import Turn
from outbox.database.postgres.server import Server
from outbox.database.postgres.signals import Signals
from outbox.database.postgres.streams import Streams
from outbox.database.postgres.units import Unit, Units
from outbox.database.transaction import (
    PACE,
    Batch,
    Home,
    Idle,
    Name,
    P,
    Purpose,
    Scrubbed,
    SynchronousCommit,
    T,
    Tx,
    Unsubscribe,
    Values,
    Wake,
    asker,
    note_commit,
    patience,
)
from outbox.database.unit_limits import read_places, scan_places, write_places
from outbox.errors import CannotStart, DatabaseUnavailable, OutcomeUnknown
from outbox.ids import Ids
from outbox.observer import Observer

VACUUM_REST_MILLISECONDS = 2
log = structlog.get_logger("outbox")
APART: dict[Purpose, tuple[Limits, int]] = {
    "drain": (DRAIN, 2),
    "lease": (LEASE, 1),
    "migration": (MIGRATION, 1),
}
"""Number of connections per purpose that has its own pool."""


class PostgresDatabase:
    """`Database` on a PostgreSQL server."""

    engine: Literal["sqlite", "postgres"] = "postgres"
    shared = True
    one_writer = False
    batch = Batch(10_000, 8 * 1024 * 1024)

    def __init__(
        self,
        server: Server,
        clock: Clock,
        ids: Ids,
        limits: Limits,
        size: int,
        home: PostgresDatabase | None = None,
    ) -> None:
        """Use `home`, if given, for signals: this object is that database on other connections."""
        self.clock = clock
        self.ids = ids
        self.closed_owners: Mapping[str, Home | None] = {}
        self.unreadable_owners: Mapping[str, Home | None] = {}
        self.moves_seen: int | None = None
        self.reserve: Reserve | None = None
        self._server = server
        self._home = home or self
        self._observer = Observer()
        self.meter: Meter = home.meter if home is not None else Meter(clock)
        self._signals: Signals = (
            home._signals if home is not None else Signals(server, clock, self.meter)
        )
        self._units = Units(server, clock, ids, limits, size, lambda: self.observer)
        self._group_units = Units(server, clock, ids, GROUP, CONNECTIONS, lambda: self.observer)
        self._turns: Turns = home._turns if home is not None else Turns()
        self._turn: AbstractContextManager[None] = self._turns if limits is DRAIN else nullcontext()
        self._groups = (
            Groups(self._group_units.write_at_once, self._turns) if home is None else None
        )
        self._streams: Streams = home._streams if home is not None else Streams(server, clock)
        # Scans and writes leave connections free for short reads, which wait for nobody's locks.
        scans = max(1, size // 3)
        self._places = scan_places(scans)
        self._writes = write_places(max(1, size - scans - 1)) if home is None else None
        self._reads = read_places(size)
        self._apart: dict[Purpose, PostgresDatabase] = {}

    async def open(self) -> None:
        """Connect once. Raise CannotStart or an error of asyncpg."""
        pool = await self._units.open()
        await pool.release(await pool.acquire())
        await self._server.check(pool, self.ids)

    @property
    def observer(self) -> Observer:
        return self._home._observer

    @observer.setter
    def observer(self, observer: Observer) -> None:
        self._home._observer = observer

    def apart(self, purpose: Purpose) -> PostgresDatabase:
        handles = self._home._apart
        if purpose not in handles:
            limits, size = APART[purpose]
            handles[purpose] = PostgresDatabase(
                self._server, self.clock, self.ids, limits, size, self._home
            )
        return handles[purpose]

    def leadership(self, pace: Pace = PACE) -> Leadership:
        return PostgresLeadership(self._server, self.clock, pace)

    def listen(
        self, callback: Wake, node: Name | None = None, idle: Idle | None = None
    ) -> Unsubscribe:
        return self._signals.listen(callback, node, idle)

    def announce(self) -> None:
        self._signals.announce()

    def on_change(self, callback: Callable[[Collection[str]], None]) -> Unsubscribe:
        return self._signals.on_change(callback)

    def on_move(self, callback: Callable[[], None]) -> Unsubscribe:
        return self._signals.on_move(callback)

    @property
    def moves_epoch(self) -> int:
        return self._signals.moves_epoch

    async def scrub(self, tables: Iterable[Scrubbed]) -> bool:
        try:
            connection = await self._server.connect()
            try:
                await connection.execute(f"set vacuum_cost_delay = '{VACUUM_REST_MILLISECONDS}ms'")
                for table in tables:
                    more = ", index_cleanup on" if table.indexed else ""
                    # The statistics of a column hold some of its values.
                    await connection.execute(f"vacuum (analyze{more}) {table.table}")
            finally:
                await connection.close()
        except (*LOST, asyncpg.PostgresError) as error:
            log.warning("scrub_failed", error=str(error))
            return False
        return True

    def census(self) -> Mapping[str, int]:
        return self._units.census()

    async def close(self) -> None:
        if self._home is self:
            await self._streams.close()
            await self._signals.close()
        for other in self._apart.values():
            await other.close()
        await self._units.close()
        await self._group_units.close()

    async def read(
        self, unit: Callable[Concatenate[Tx, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        must_be_here(self.unreadable_owners)
        current = patience.get()
        turn = None
        if current is not None:
            turn = Turn(self._reads, current.owner, "PostgreSQL: too many reads at once")
        try:
            return await self._units.read(self._sure(unit), args, kwargs, turn)
        except Crowded:
            raise DatabaseUnavailable("busy", "PostgreSQL: too many reads wait") from None

    async def scan(
        self,
        owner: str,
        unit: Callable[Concatenate[Tx, P], Awaitable[T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        must_be_here(self.unreadable_owners)
        turn = Turn(self._places, owner, "PostgreSQL: too many long reads at once")
        return await self._units.read(self._sure(unit), args, kwargs, turn, SCAN_SECONDS)

    def stream(self, owner: str, sql: str, *args: Any) -> AsyncGenerator[Sequence[Values], None]:
        return self._streams.rows(owner, sql, args)

    async def write(
        self, unit: Callable[Concatenate[Tx, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        must_be_here(self.closed_owners)
        meter = self.meter
        began = self.clock.monotonic() if meter.jobs else None
        try:
            with self._turn:
                written = await self._units.write(
                    self._sure(unit), args, kwargs, self._groups, self._queue(), self._home.reserve
                )
        except OutcomeUnknown as unknown:
            self._signals.committed(unknown.made_work, unknown.changed)
            raise
        note_commit()
        if began is not None and not working.get():
            meter.note(began, self.clock.monotonic())
        if written.made_work or written.changed:
            self._signals.committed(written.made_work, written.changed)
        return written.result

    def _sure(self, unit: Unit[T]) -> Unit[T]:
        """Return the unit, which first asks where the owner is while this process hears nothing."""
        is_fresh = self.moves_seen is None or 0 < self.moves_epoch == self.moves_seen
        return unit if is_fresh else asking(unit)

    def _queue(self) -> Turn | None:
        """Return the queue of writes, and whose write this is; the engine's own pools have none."""
        if self._writes is None:
            return None
        return Turn(self._writes, asker(), "PostgreSQL: too many writes at once")


def unopened(url: str, clock: Clock, ids: Ids, size: int) -> PostgresDatabase:
    """Return a database that connects when it is used."""
    return PostgresDatabase(Server(url, "", "on", looks=False), clock, ids, REQUESTS, size)


async def open(
    url: str,
    *,
    clock: Clock,
    ids: Ids,
    pool_size: int,
    synchronous: Literal["full", "normal"],
    direct_url: str = "",
    synchronous_commit: SynchronousCommit = "on",
) -> PostgresDatabase:
    """Connect to the server at `url`. Raise CannotStart with a one-line error."""
    server = Server(url, direct_url, synchronous_commit if synchronous == "full" else "off")
    db = PostgresDatabase(server, clock, ids, REQUESTS, pool_size)
    try:
        await db.open()
    except (*LOST, asyncpg.PostgresError, ValueError) as error:
        await db.close()
        raise server.refusal(error) from error
    except CannotStart:
        await db.close()
        raise
    return db
