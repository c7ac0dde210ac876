"""The lease of one worker: its row among the nodes, renewed independently of the drain.

A drain that waits for the database must not lose its lease, so the lease has its own connection and
task. It also runs a worker's work for other nodes, first of all the rescue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog

from outbox.clock import Clock
from outbox.database.transaction import Database
from outbox.durations import SECOND
from outbox.ids import Ids
from outbox.observer import Rescue
from outbox.queue.drain.rescue import Rescued, Waits
from outbox.queue.state import creation_snapshots
from outbox.worker import live_nodes, skew
from outbox.worker.journal import Journal, report_rescued

LEASE_SECONDS = live_nodes.LEASE / SECOND
RENEW_SECONDS = LEASE_SECONDS / 3
# Interval of checks for nodes whose lease has ended: rescue follows within 5 s.
LOOK_SECONDS = 3.0
BACKOFF_SECONDS = 0.25
ALONE_SECONDS = 60.0
"""Interval of rounds of a node that shares its database with no other, and so has nothing to do."""
OVER = "this node's lease has expired"
ASTRAY = "this node's clock differs from the database server's by more than a minute"

log = structlog.get_logger("outbox")


class Lease:
    """Joins and renews; after a loss it joins under a new name. Calls `joined` and `lost`."""

    def __init__(
        self,
        db: Database,
        *,
        clock: Clock,
        ids: Ids,
        journal: Journal,
        waits: Waits,
        joined: Callable[[], None],
        lost: Callable[[], None],
    ) -> None:
        self.node_id = ids.new(clock.wall())
        self.skew = 0.0
        self._compared = clock.wall() - clock.boot()
        self._shared = db.shared
        """Otherwise nobody can take deliveries from this node, and a lease never ends."""
        self._db = db.apart("lease")
        self._clock = clock
        self._ids = ids
        self._observer = db.observer
        self._journal = journal
        self.waits = waits
        self._tell_joined = joined
        self._tell_lost = lost
        self._joined = False
        self._replaced = False
        self._renewed = 0
        self._looked = 0
        self._end: asyncio.TimerHandle | None = None

    def was_replaced(self) -> bool:
        """Return whether a backup has replaced the database since this was asked last."""
        was, self._replaced = self._replaced, False
        return was

    def objection(self) -> str | None:
        """Return why nothing may be sent now; None while the lease and the clock are valid."""
        if not self._joined:
            return OVER
        if not self._shared:
            return None
        if self._is_over():
            return OVER
        if abs(self._ahead()) > skew.MOST_SECONDS:
            return ASTRAY
        return None

    def _ahead(self) -> float:
        """Return the last measured difference, moved by the jumps of the wall clock since then."""
        if not self._shared:
            return 0.0
        return self.skew + (self._wall_at_boot() - self._compared) / SECOND

    def _wall_at_boot(self) -> int:
        return self._clock.wall() - self._clock.boot()

    async def run(self) -> None:
        """Keep the lease until cancelled."""
        try:
            while True:  # noqa: ASYNC110 - a wait for time, not for an event
                await asyncio.sleep(await self._round())
        finally:
            self._stop_timer()

    async def leave(self) -> None:
        """Release the deliveries of this node, and remove its row."""
        if self._joined:
            self._journal.rescued(await self._db.write(live_nodes.leave, self.node_id, self.waits))
            self._joined = False

    async def take_over(self, node_id: str) -> None:
        """Take back the deliveries of a node whose process has ended for certain."""
        self._note_rescued("lease", await self._db.write(live_nodes.take_over, node_id, self.waits))

    async def _round(self) -> float:
        """Do what is due now; return seconds until the next round."""
        if not self._joined:
            if not await self._tried("lease_not_joined", self._join):
                return BACKOFF_SECONDS
        elif self._must_renew() and not await self._tried("lease_not_renewed", self._renew):
            return BACKOFF_SECONDS
        if self._shared and self._age(self._looked) >= LOOK_SECONDS:
            self._looked = self._clock.boot()
            await self._tried("rescue_put_off", self._look)
        if not self._shared:
            return ALONE_SECONDS
        # As far as the next of both.
        look, renew = (
            LOOK_SECONDS - self._age(self._looked),
            RENEW_SECONDS - self._age(self._renewed),
        )
        return max(min(look, renew), BACKOFF_SECONDS)

    def _must_renew(self) -> bool:
        return self._shared and self._age(self._renewed) >= RENEW_SECONDS

    async def _tried(self, name: str, step: Callable[[], Awaitable[None]]) -> bool:
        try:
            await step()
        except Exception as error:  # noqa: BLE001 - an unrenewed lease would stop the node
            log.warning(name, error=repr(error), node=self.node_id)
            if self._joined and self._is_over():
                self._lose()
            return False
        return True

    async def _join(self) -> None:
        before = self._clock.boot()
        if self._shared:
            rescued = await self._db.write(live_nodes.join, self.node_id)
        else:
            rescued = await self._db.write(live_nodes.join_alone, self.node_id, self.waits)
        self._joined = True
        self._hold_from(before)
        self._note_rescued("startup", rescued)
        await self._compare()
        self._tell_joined()

    async def _renew(self) -> None:
        before = self._clock.boot()
        if not await self._db.write(live_nodes.renew, self.node_id):
            if self._is_over() or not await self._db.write(live_nodes.replaced, self.node_id):
                self._lose()
                return
            log.warning("database_replaced", node=self.node_id)
            self._replaced = True
            self._tell_joined()
        self._hold_from(before)
        await self._compare()

    async def _look(self) -> None:
        """Take back the deliveries of dead nodes, and clear data that no longer matters."""
        self._note_rescued(
            "lease", await self._db.write(live_nodes.rescue_lost, self.waits, self.node_id)
        )
        await self._db.write(creation_snapshots.forget_since)

    async def _compare(self) -> None:
        if not self._shared:
            return
        self.skew = await skew.measure(self._db, self._clock)
        self._compared = self._wall_at_boot()
        self._observer.clock_skew(self.skew)
        if abs(self.skew) > skew.WARN_SECONDS:
            log.warning("clock_off", seconds=round(self.skew, 3), node=self.node_id)

    def _note_rescued(self, reason: Rescue, deliveries: Sequence[Rescued]) -> None:
        count = len(deliveries)
        if count:
            log.warning("rescued", reason=reason, count=count, node=self.node_id)
            report_rescued(self._observer, self._journal, reason, deliveries)

    def _hold_from(self, boot: int) -> None:
        """Extend the lease from `boot`, the time of the request; the reply may have taken long."""
        self._renewed = boot
        self._stop_timer()
        if self._shared:
            rest = LEASE_SECONDS - self._age(boot)
            self._end = asyncio.get_running_loop().call_later(max(rest, 0.0), self._run_out)

    def _run_out(self) -> None:
        # Its renewal may be stuck in a dead connection at this moment.
        if self._joined:
            self._lose()

    def _lose(self) -> None:
        """Join again under a new name, because other nodes may own this node's deliveries."""
        log.error("lease_lost", node=self.node_id)
        self._stop_timer()
        self._joined = False
        self.node_id = self._ids.new(self._clock.wall())
        self._tell_lost()

    def _is_over(self) -> bool:
        """Return whether other nodes may have this node's deliveries."""
        return self._shared and self._age(self._renewed) > LEASE_SECONDS

    def _age(self, boot: int) -> float:
        return (self._clock.boot() - boot) / SECOND

    def _stop_timer(self) -> None:
        if self._end is not None:
            self._end.cancel()
            self._end = None
