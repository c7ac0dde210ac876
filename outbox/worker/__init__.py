"""The drain: the loop that turns committed events into finished deliveries.

Each turn records results and takes due deliveries, both in one commit; sends run beside it as
tasks. No transaction is open during network access. After an internal error the loop is logged and
continues with all its work: it neither claims nor rescues anything again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from outbox.clock import Clock, sleep_until_set
from outbox.database.pacing import working
from outbox.database.transaction import Database
from outbox.ids import Ids
from outbox.queue.drain.rescue import Waits
from outbox.queue.state.claimed_deliveries import Result
from outbox.sending.send import Sender
from outbox.webhooks.secrets import KeyRing
from outbox.worker.joint_claimer import JointClaimer
from outbox.worker.journal import Journal, Log
from outbox.worker.lease import Lease
from outbox.worker.sends import Sends, WorkerSettings
from outbox.worker.separate_claimer import SeparateClaimer
from outbox.worker.settling import Settling
from outbox.worker.wakeups import COLLECT_SECONDS, Arrivals
from outbox.worker.windows import SLOW_SECONDS

__all__ = ["Worker", "WorkerSettings"]

BACKOFF_SECONDS = 0.25
LONGEST_BACKOFF_SECONDS = 5.0
CUT_SECONDS = 2.0

log = structlog.get_logger("outbox")


class Worker:
    """One node's drain. `run` ends after `drain`; call every method on the event loop's thread."""

    def __init__(
        self,
        db: Database,
        ring: KeyRing,
        sender: Sender,
        *,
        clock: Clock,
        ids: Ids,
        settings: WorkerSettings,
        journal: Journal | None = None,
        settling: Callable[[Database, Clock], Settling] = Settling,
    ) -> None:
        self._db = db
        self._clock = clock
        self._observer = db.observer
        self._journal = journal = journal or Log()
        self._wake = asyncio.Event()
        waits = Waits(settings.schedule, ids.dice)
        self._lease = Lease(
            db, clock=clock, ids=ids, journal=journal,
            waits=waits, joined=self._wake.set, lost=self._lose,
        )  # fmt: skip
        self._sends = Sends(
            sender, ring, clock=clock, ids=ids, settings=settings, observer=db.observer,
            objection=self._lease.objection, put=self._put,
        )  # fmt: skip
        own = db.apart("drain")
        self._settling = settling(own, clock)
        claimer = JointClaimer if db.one_writer else SeparateClaimer
        self._claimer = claimer(
            own, clock=clock, sends=self._sends, lease=self._lease, journal=journal
        )
        self._ended = asyncio.Event()
        self._stopping = False
        self._arrivals = Arrivals()
        self._turn_at = float("-inf")
        self._timer: asyncio.TimerHandle | None = None
        self._waits = False
        """Whether it waits for a reason to run its next turn."""

    @property
    def node_id(self) -> str:
        """The name under which this worker claims; it changes after the loss of a lease."""
        return self._lease.node_id

    async def run(self) -> None:
        """Deliver until stopped and until the results of all sends are recorded."""
        # A job's deliveries are its own work, so what the drain writes is not what others wait for.
        working.set(True)
        let_go = (
            self._db.listen(self._hear, lambda: self.node_id, self._idle),
            self._db.on_change(self._sends.changed),
        )
        keeper = asyncio.create_task(self._lease.run(), name="lease")
        faults = 0
        try:
            while not self._over():
                try:
                    await self._turn()
                    faults = 0
                except Exception:
                    log.exception("turn_failed", node=self.node_id)
                    self._observer.restarted()
                    faults = min(faults + 1, 10)
                    await asyncio.sleep(min(0.05 * 2**faults, LONGEST_BACKOFF_SECONDS))
            await _ended(keeper)
            await self._lease.leave()
        finally:
            self._stop_timer()
            await _ended(keeper)
            await self._sends.close()
            for end in let_go:
                end()
            self._observer.drain_ended()
            self._ended.set()

    async def take_over(self, node_id: str) -> None:
        """Take over at once from a worker whose process has ended for certain."""
        await self._lease.take_over(node_id)

    async def drain(self, grace: float) -> None:
        """Take no more work, allow sends `grace` seconds, abort the rest, and record all results.

        Return when the loop has ended, or a little after `grace` if the database is unavailable;
        the next start then rescues deliveries without a recorded result.
        """
        self._stopping = True
        self._claimer.stop()
        self._wake.set()
        if await sleep_until_set(self._ended, grace):
            return
        self._sends.end_all()
        await sleep_until_set(self._ended, CUT_SECONDS)

    async def _turn(self) -> None:
        """Run one turn: settle and take, then wait for a reason to run again."""
        if not (self._db.one_writer or self._stopping):
            # Each turn is a round trip.
            now = self._clock.monotonic()
            rest = max(self._arrivals.rest(self._turn_at, now), 0.0)
            if rest:
                await asyncio.sleep(rest)
            self._turn_at = now + rest
        self._wake.clear()
        self._stop_timer()
        slow = self._sends.take_slots_back()
        unwritten = self._settling.unwritten
        wait = await self._settle_and_take(unwritten)
        windows = self._sends.windows
        self._observer.slots(windows.slots, windows.busy)
        pause = BACKOFF_SECONDS if wait is None else wait
        if windows.busy:
            pause = min(pause, slow or SLOW_SECONDS)
        if wait is None:
            await asyncio.sleep(pause)
        elif not self._over():
            # Cheaper than a timeout, which each event would pay.
            timer = asyncio.get_running_loop().call_later(pause, self._wake.set)
            self._waits = True
            try:
                await self._wake.wait()
            finally:
                self._waits = False
                timer.cancel()

    async def _settle_and_take(self, unwritten: int) -> float | None:
        """Record results, then take work unless the first has done that too.

        Take even when the first fails. Return the shorter wait, None when the database is
        unavailable.
        """
        fault: Exception | None = None
        settled: float | None = None
        try:
            settled = await self._settling.write(self._claimer.combined_write(unwritten))
        except Exception as caught:  # noqa: BLE001 - raised below
            fault = caught
        took = await self._claimer.take(unwritten, self._settling.held, self._settling.unstored)
        if fault is not None:
            raise fault
        return None if settled is None or took is None else min(settled, took)

    def _over(self) -> bool:
        return self._stopping and not (self._sends or self._settling or self._claimer.owes)

    def _hear(self) -> None:
        self._arrivals.hear(self._clock.monotonic())
        self._claimer.hear()
        self._wake.set()

    def _idle(self) -> bool:
        """Return whether a wake-up begins a turn at once."""
        return self._waits and not self._wake.is_set()

    def _put(self, result: Result) -> None:
        self._settling.put(result)
        if not self._may_collect(result):
            self._wake.set()
        elif self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(COLLECT_SECONDS, self._wake.set)
        if not result.unreadable:
            # The log line of the webhook reports it once, not one line for each delivery and try.
            self._journal.attempted(result)

    def _may_collect(self, result: Result) -> bool:
        """Return whether this result may wait for the next event, whose transaction records it.

        Or for the end of the other sends, where each transaction is a round trip. Not when anything
        waits for its record: another delivery of its lane or record, or a webhook whose health it
        changes.
        """
        delivery = result.delivery
        return (
            (
                self._arrivals.expect(self._clock.monotonic())
                or (self._sends.windows.busy > 0 and not self._db.one_writer)
            )
            and result.decision.state == "delivered"
            and delivery.attempt.tries == 0
            and not (delivery.attempt.probe or delivery.ordered)
            and not (self._claimer.behind or self._stopping)
        )

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _lose(self) -> None:
        self._sends.end_all()
        self._wake.set()


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
