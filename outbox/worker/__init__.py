"""The drain: the loop that turns committed events into finished deliveries.

Each turn records results and takes due deliveries, both in one commit; sends run beside it as
tasks. No transaction is open during network access. After an internal error the loop is logged and
continues with all its work: it neither claims nor rescues anything again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from outbox.clock import Clock, sleep_until_set
from outbox.database.transaction import Database
from outbox.ids import Ids
from outbox.queue.drain.rescue import Waits
from outbox.queue.state.deliveries import Result
from outbox.sending.send import Sender
from outbox.webhooks.secrets import KeyRing
from outbox.worker.claimer import JointClaimer, SeparateClaimer
from outbox.worker.journal import Journal, Log
from outbox.worker.lease import Lease
from outbox.worker.sends import Sends, WorkerSettings
from outbox.worker.settling import Settling
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

    @property
    def node_id(self) -> str:
        """The name under which this worker claims; it changes after the loss of a lease."""
        return self._lease.node_id

    async def run(self) -> None:
        """Deliver until stopped and until the results of all sends are recorded."""
        let_go = (
            self._db.listen(self._hear, lambda: self.node_id),
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
            await _ended(keeper)
            for end in let_go:
                end()
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
        self._wake.clear()
        slow = self._sends.take_slots_back()
        unwritten = self._settling.unwritten
        wait = await self._both(
            self._settling.write(self._claimer.along(unwritten)),
            self._claimer.take(unwritten, self._settling.held, self._settling.unstored),
        )
        windows = self._sends.windows
        self._observer.slots(windows.slots, windows.busy)
        pause = BACKOFF_SECONDS if wait is None else wait
        if windows.busy:
            pause = min(pause, slow or SLOW_SECONDS)
        if wait is None:
            await asyncio.sleep(pause)
        elif not self._over():
            await sleep_until_set(self._wake, pause)

    async def _both(
        self, settle: Awaitable[float | None], take: Awaitable[float | None]
    ) -> float | None:
        """Await both to their ends, even when one fails: two turns must not overlap.

        With one writer both share a COMMIT; otherwise both may claim, so one follows the other.
        Return the shorter wait, None when the database is unavailable.
        """
        waits: list[float | BaseException | None] = []
        for steps in [[settle, take]] if self._db.one_writer else [[settle], [take]]:
            waits += await asyncio.gather(*steps, return_exceptions=True)
        seconds: list[float] = []
        for wait in waits:
            if isinstance(wait, BaseException):
                raise wait
            if wait is not None:
                seconds.append(wait)
        return min(seconds) if len(seconds) == len(waits) else None

    def _over(self) -> bool:
        return self._stopping and not (self._sends or self._settling or self._claimer.owes)

    def _hear(self) -> None:
        self._claimer.hear()
        self._wake.set()

    def _put(self, result: Result) -> None:
        self._settling.put(result)
        self._wake.set()
        if not result.unreadable:
            # The log line of the webhook reports it once, not one line for each delivery and try.
            self._journal.attempted(result)

    def _lose(self) -> None:
        self._sends.end_all()
        self._wake.set()


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
