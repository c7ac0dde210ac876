"""The lease of one worker: its row among the nodes, renewed beside the drain, not inside it.

A drain that waits for the database must not lose its lease for that, so this has a connection and
a task of its own. Here too: what a worker does for others, rescue first of all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from outbox.clock import Clock
from outbox.database.transaction import Database
from outbox.ids import Ids
from outbox.observer import Observer
from outbox.queue import fanout
from outbox.worker import nodes, skew

LEASE_SECONDS = nodes.LEASE / 1_000_000
RENEW_SECONDS = LEASE_SECONDS / 3
# Between looks for nodes whose lease has ended: rescue comes within 5 s of that.
LOOK_SECONDS = 3.0
BACKOFF_SECONDS = 0.25
OVER = "this node's lease had ended"
ASTRAY = "this node's clock is more than a minute from the database server's"

log = structlog.get_logger("outbox")


class Lease:
    """Joins and renews; a lost one is joined again under a new name. Tells `joined` and `lost`."""

    def __init__(
        self,
        db: Database,
        *,
        clock: Clock,
        ids: Ids,
        observer: Observer,
        joined: Callable[[], None],
        lost: Callable[[], None],
    ) -> None:
        self.node_id = ids.new(clock.wall())
        self.skew = 0.0
        self._engine = db.engine
        self._db = db.apart("lease")
        self._clock = clock
        self._ids = ids
        self._observer = observer
        self._tell_joined = joined
        self._tell_lost = lost
        self._joined = False
        self._renewed = 0
        self._looked = 0
        self._end: asyncio.TimerHandle | None = None

    @property
    def joined(self) -> bool:
        """Whether the row is there, whatever its age."""
        return self._joined

    def objection(self) -> str | None:
        """Why nothing may be sent now; None while the lease holds and the clock can be trusted."""
        if not self._joined or self._is_over():
            return OVER
        if abs(self.skew) > skew.MOST_SECONDS:
            return ASTRAY
        return None

    async def run(self) -> None:
        """Keep it until cancelled."""
        try:
            while True:  # noqa: ASYNC110 - it waits for time to pass, not for an event
                await asyncio.sleep(await self._round())
        finally:
            self._stop_timer()

    async def leave(self) -> None:
        """Give back what stands under this name, and remove it."""
        if self._joined:
            await self._db.write(nodes.leave, self.node_id)
            self._joined = False

    async def _round(self) -> float:
        """What is due now; seconds until the next round."""
        if not self._joined:
            if not await self._tried("lease_not_joined", self._join):
                return BACKOFF_SECONDS
        elif self._must_renew() and not await self._tried("lease_not_renewed", self._renew):
            return BACKOFF_SECONDS
        if self._engine == "postgres" and self._age(self._looked) >= LOOK_SECONDS:
            self._looked = self._clock.boot()
            await self._tried("rescue_put_off", self._look)
        return LOOK_SECONDS / 3

    def _must_renew(self) -> bool:
        return self._engine == "postgres" and self._age(self._renewed) >= RENEW_SECONDS

    async def _tried(self, name: str, step: Callable[[], Awaitable[None]]) -> bool:
        try:
            await step()
        except Exception as error:  # noqa: BLE001 - a lease that is not kept would stop the node
            log.warning(name, error=repr(error), node=self.node_id)
            if self._joined and self._is_over():
                self._lose()
            return False
        return True

    async def _join(self) -> None:
        before = self._clock.boot()
        rescued = await self._db.write(nodes.join, self.node_id)
        self._joined = True
        self._hold_from(before)
        self._note_rescued("startup", rescued)
        await self._compare()
        self._tell_joined()

    async def _renew(self) -> None:
        before = self._clock.boot()
        if not await self._db.write(nodes.renew, self.node_id):
            self._lose()
            return
        self._hold_from(before)
        await self._compare()

    async def _look(self) -> None:
        """Take back what dead nodes had, and let go of what makes no difference any more."""
        self._note_rescued("lease", await self._db.write(nodes.rescue_lost))
        await self._db.write(fanout.forget_since)

    async def _compare(self) -> None:
        if self._engine == "sqlite":
            return
        self.skew = await skew.measure(self._db, self._clock)
        self._observer.clock_skew(self.skew)
        if abs(self.skew) > skew.WARN_SECONDS:
            log.warning("clock_off", seconds=round(self.skew, 3), node=self.node_id)

    def _note_rescued(self, reason: str, count: int) -> None:
        if count:
            log.warning("rescued", reason=reason, count=count, node=self.node_id)
            self._observer.rescued("startup" if reason == "startup" else "lease", count)

    def _hold_from(self, boot: int) -> None:
        """It holds from `boot` on, when it was asked for; the answer may have taken long."""
        self._renewed = boot
        self._stop_timer()
        if self._engine == "postgres":
            left = LEASE_SECONDS - self._age(boot)
            self._end = asyncio.get_running_loop().call_later(max(left, 0.0), self._run_out)

    def _run_out(self) -> None:
        # Its renewal may hang in a dead connection at this very moment.
        if self._joined:
            self._lose()

    def _lose(self) -> None:
        """Others own what was ours: come back under a new name."""
        log.error("lease_lost", node=self.node_id)
        self._stop_timer()
        self._joined = False
        self.node_id = self._ids.new(self._clock.wall())
        self._tell_lost()

    def _is_over(self) -> bool:
        """Whether others may have taken what is ours. On SQLite there are no others."""
        return self._engine == "postgres" and self._age(self._renewed) > LEASE_SECONDS

    def _age(self, boot: int) -> float:
        return (self._clock.boot() - boot) / 1_000_000

    def _stop_timer(self) -> None:
        if self._end is not None:
            self._end.cancel()
            self._end = None
