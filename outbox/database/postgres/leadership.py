"""Leader election on PostgreSQL: a session advisory lock on a connection of its own.

The server ends a silent session itself (`idle_session_timeout`, PostgreSQL 14), which releases the
lock. So a killed, frozen or disconnected node cannot keep the lock, and no clocks are compared.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import asyncpg
import structlog

from outbox.clock import Clock, sleep_until_set
from outbox.database import locks
from outbox.database.leadership import Pace
from outbox.database.postgres.faults import LOST
from outbox.database.postgres.hosts import CONNECT_SECONDS
from outbox.database.postgres.server import Server
from outbox.database.sql import translate
from outbox.durations import SECOND

LIMIT = "select set_config('idle_session_timeout', $1, false)"
TRY = translate(f"select pg_try_advisory_lock(own_lock({locks.LEADER}))", "postgres")

log = structlog.get_logger("outbox")


class PostgresLeadership:
    """A candidate for leader on its own session, which bypasses any pooler."""

    def __init__(self, server: Server, clock: Clock, pace: Pace) -> None:
        self._server = server
        self._clock = clock
        self._pace = pace
        self._since = 0
        self._until = 0
        self._announced = False
        self._callbacks: list[Callable[[], None]] = []
        self._task: asyncio.Task[None] | None = None

    @property
    def leads(self) -> bool:
        # Boot time also passes while the machine sleeps.
        return self._clock.boot() < self._until

    @property
    def settled(self) -> bool:
        return self.leads and self._clock.boot() - self._since >= self._pace.beat * SECOND

    def on_loss(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._stand(), name="leadership")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _stand(self) -> None:
        while True:
            try:
                await self._hold()
            except (*LOST, asyncpg.PostgresError) as error:
                log.warning("leadership_connection_lost", error=repr(error))
            except Exception:
                log.exception("leadership_failed")
            finally:
                self._lose()
            await asyncio.sleep(self._pace.beat)

    async def _hold(self) -> None:
        """Run one session: request the lock until it is granted, then keep it with heartbeats."""
        gone = asyncio.Event()
        connection = await self._server.connect()
        connection.add_termination_listener(lambda _: gone.set())
        try:
            limit = f"{round(self._pace.silence * 1000)}ms"
            await connection.execute(LIMIT, limit, timeout=CONNECT_SECONDS)
            while not gone.is_set():
                # Measured before the statement: the server counts silence from after it.
                requested_at = self._clock.boot()
                if not await connection.fetchval(TRY, timeout=self._pace.beat):
                    await sleep_until_set(gone, self._pace.beat)
                    continue
                self._lead(requested_at)
                while not await sleep_until_set(gone, self._pace.beat):
                    requested_at = self._clock.boot()
                    await connection.execute("select 1", timeout=self._pace.beat)
                    self._lead(requested_at)
        finally:
            connection.terminate()

    def _lead(self, requested_at: int) -> None:
        if not self._announced:
            log.info("leading")
            self._announced = True
            self._since = self._clock.boot()
        self._until = requested_at + round(self._pace.silence * SECOND)

    def _lose(self) -> None:
        self._until = 0
        if self._announced:
            self._announced = False
            log.info("no_longer_leading")
            for callback in self._callbacks:
                callback()
