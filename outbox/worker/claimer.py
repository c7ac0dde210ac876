"""Take work for one worker: fan-out, claims and the release of unused claims.

It is one module because one loop decides which of the three comes next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import structlog

from outbox.clock import Clock
from outbox.database.transaction import Database
from outbox.durations import SECOND
from outbox.errors import DatabaseUnavailable, OutcomeUnknown
from outbox.queue.drain import cycle, rescue
from outbox.queue.drain.claim import Taken
from outbox.queue.drain.fanout import FannedOut
from outbox.queue.state.claimed_deliveries import Capacity, Claimed, Endpoint
from outbox.worker.journal import Journal, report_rescued
from outbox.worker.lease import Lease
from outbox.worker.sends import Sends
from outbox.worker.settling import Write
from outbox.worker.wakeups import POLL_SECONDS, Wakeups

# Delay after a claim found only deliveries that it could not take or that others had locked; it
# doubles while this continues.
EMPTY_SECONDS = 0.005
LONGEST_EMPTY_SECONDS = 0.32
SHORTEST_SECONDS = 0.001
# Interval of comparisons between the claims in the database and in memory.
CHECK_SECONDS = 60.0
RECHECK_SECONDS = 1.0
DOUBT_SECONDS = 60.0
"""So long after a claim of unknown outcome its statement may still take place: a network that was
cut off, or a server that stood still, goes on with what it had received."""

Held = Callable[[], set[str]]

log = structlog.get_logger("outbox")


class Claimer:
    """Fans out and claims for one worker; claimed deliveries start at once."""

    def __init__(
        self, db: Database, *, clock: Clock, sends: Sends, lease: Lease, journal: Journal
    ) -> None:
        self._db = db
        self._clock = clock
        self._sends = sends
        self._lease = lease
        self._observer = db.observer
        self._journal = journal
        self._orphans: list[str] = []
        self._stopped = False
        self._checked_at = clock.monotonic()
        self._doubt_until = float("-inf")
        self._empty = 0
        self._give_back_at = 0.0
        self._claims = 0
        self._wakeups = Wakeups(clock.monotonic, self._share_places)

    @property
    def owes(self) -> bool:
        """Whether claims wait for their release."""
        return bool(self._orphans)

    @property
    def behind(self) -> bool:
        """Whether the last look found deliveries that waited, or left some."""
        return self._wakeups.behind

    def hear(self) -> None:
        """Note that there may be events to fan out."""
        self._wakeups.news = True

    def stop(self) -> None:
        """Take nothing more; claims of a running transaction are released."""
        self._stopped = True

    async def take(self, unwritten: int, held: Held, unstored: set[str]) -> float | None:
        """Take as much as there is room for, less `unwritten` slots.

        Return seconds until the next useful call, None when the database is unavailable. `held` and
        `unstored` name the deliveries whose results are not written yet, or could not be.
        """
        try:
            if self._orphans:
                await self._give_back()
            if self._stopped or self._lease.objection() is not None:
                self._wakeups.look_soon()
                return POLL_SECONDS
            now = self._clock.monotonic()
            interval = RECHECK_SECONDS if now < self._doubt_until else CHECK_SECONDS
            if now - self._checked_at >= interval or self._lease.was_replaced():
                await self._check(now, held, unstored)
            idle = self._wakeups.may_poll() and await self._poll()
        except DatabaseUnavailable as error:
            # The next turn's look is due, whatever this turn has seen.
            self._wakeups.looked = False
            log.warning("take_failed", error=str(error), node=self._lease.node_id)
            return None
        if idle:
            return max(self._wakeups.next() - self._clock.monotonic(), SHORTEST_SECONDS)
        self._sends.watch_changes()
        return await self._take(unwritten)

    async def _poll(self) -> bool:
        """Return whether there is nothing to take, and note when to look again."""
        began = self._clock.monotonic()
        # With one writer not as a read: it would wait behind the reads of everybody else, and
        # events and results would wait with it.
        run = self._db.write if self._db.one_writer else self._db.read
        work, wait_us = await run(cycle.look)
        if work:
            self._wakeups.news = True
        if self._wakeups.news:
            return False
        self._observer.tick()
        self._sends.took()
        wait = POLL_SECONDS if wait_us is None else min(wait_us / SECOND, POLL_SECONDS)
        self._wakeups.found_nothing(began, wait)
        return True

    def combined_write(self, unwritten: int) -> Write | None:
        """Return a function that records results and claims, in one transaction.

        Return None where a claim has its own transaction.
        """
        return None

    async def _take(self, unwritten: int) -> float | None:
        """Fan out and claim; return what `take` returns."""
        raise NotImplementedError

    def _share_places(self) -> bool:
        """Return whether sends use places of slow or of failing webhooks.

        Others may wait for these places, also when the last such send has just ended.
        """
        windows = self._sends.windows
        return bool(windows.failing or windows.slow)

    def _capacity(self, unwritten: int) -> Capacity:
        self._claims += 1
        node_id = self._lease.node_id
        return self._sends.windows.capacity(node_id, f"{node_id}-{self._claims}", unwritten)

    def _failed(self, error: Exception, capacity: Capacity, began: float) -> None:
        # A claim that may be committed in spite of its error is released before the next claim, so
        # there is never more than this one.
        self._orphans.append(capacity.claim)
        self._wakeups.look_soon()
        now = self._clock.monotonic()
        if isinstance(error, OutcomeUnknown):
            self._doubt_until = now + DOUBT_SECONDS
        self._observer.claimed("error", now - began)
        if isinstance(error, DatabaseUnavailable):
            log.warning("take_failed", error=str(error), node=capacity.node_id)
        else:
            log.error("take_failed", node=capacity.node_id, exc_info=error)

    def _note(self, fanned: FannedOut, capacity: Capacity) -> None:
        """Report a fan-out, and send the deliveries it claimed."""
        if fanned.events or fanned.created or fanned.announced:
            self._observer.fanned_out(fanned.events, fanned.created)
            self._journal.fanned_out(fanned.announced)
        if fanned.left_out:
            self._observer.left_out(fanned.left_out)
        for webhook_id in fanned.dead:
            self._observer.delivery_finished(webhook_id, "dead", None)
        self._begin(fanned.claimed, fanned.endpoints, capacity)

    def _start(self, claim: Taken, capacity: Capacity, began: float) -> None:
        self._observer.tick()
        self._observer.claimed(
            "rows" if claim.claimed else "empty", self._clock.monotonic() - began
        )
        self._begin(claim.claimed, claim.endpoints, capacity)

    def _begin(
        self, claimed: Sequence[Claimed], endpoints: Mapping[str, Endpoint], capacity: Capacity
    ) -> None:
        self._sends.took()
        if not claimed:
            return
        if self._stopped or self._lease.node_id != capacity.node_id or self._lease.objection():
            # Stopped, or suspended for too long: another worker sends these.
            self._orphans.append(capacity.claim)
            return
        self._sends.start(claimed, endpoints, capacity.node_id)

    def _wait(self, claim: Taken) -> float:
        """Return seconds until a claim may find something, longer after each one that does not."""
        if claim.claimed or claim.wait_us is None or claim.wait_us > 0:
            self._empty = 0
        if claim.more:
            return 0.0
        if claim.wait_us is None:
            return POLL_SECONDS
        if claim.wait_us > 0 or claim.claimed:
            return min(max(claim.wait_us / SECOND, SHORTEST_SECONDS), POLL_SECONDS)
        self._empty += 1
        return pause(self._empty)

    async def _give_back(self) -> None:
        """Release claims that nobody serves; those in locked lanes a little later."""
        now = self._clock.monotonic()
        if now < self._give_back_at:
            return
        for claim_token in reversed(tuple(self._orphans)):
            all_released, over = await self._db.write(rescue.release, claim_token)
            for webhook_id in over:
                self._observer.delivery_finished(webhook_id, "cancelled", None)
            if all_released:
                self._orphans.remove(claim_token)
                self._wakeups.look_soon()
            else:
                self._give_back_at = now + LONGEST_EMPTY_SECONDS

    async def _check(self, now: float, held: Held, unstored: set[str]) -> None:
        """Rescue deliveries claimed for this node but not in memory, as after a failover."""
        node_id = self._lease.node_id
        take_back = partial(rescue.rescue, but=held() | self._sends.held(), unstored=unstored)
        rescued = await self._db.write(take_back, node_id, self._lease.waits)
        unheld = await self._db.read(rescue.unheld, node_id, held() | self._sends.held())
        # Deliveries that others have locked are checked again soon.
        self._checked_at = now - (CHECK_SECONDS - RECHECK_SECONDS if unheld else 0.0)
        unstored.difference_update(delivery.delivery_id for delivery in rescued)
        if rescued:
            self._wakeups.look_soon()
            log.warning("rescued", reason="unheld", count=len(rescued), node=node_id)
            report_rescued(self._observer, self._journal, "unheld", rescued)


def pause(times: int) -> float:
    """Return the pause after this many fruitless tries."""
    return min(EMPTY_SECONDS * (1 << min(times, 10)), LONGEST_EMPTY_SECONDS)
