"""Write results of sends to the database: none is lost, none blocks the others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import structlog

from outbox.clock import Clock
from outbox.database.transaction import Batch, Database
from outbox.durations import SECOND
from outbox.errors import DatabaseUnavailable, OutcomeUnknown, OwnerElsewhere
from outbox.queue.drain.settle import Settlement, settle
from outbox.queue.state.claimed_deliveries import Result
from outbox.sending.outcome import unanswered
from outbox.worker.journal import report_attempt

# Delay before a result in a locked lane is tried again.
DEFERRED_SECONDS = 0.1

Write = Callable[[Sequence[Result]], Awaitable[Settlement]]

log = structlog.get_logger("outbox")


class Settling:
    """Collects results and writes them in batches."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._observer = db.observer
        self._new: list[Result] = []
        self._batch: list[Result] = []
        self._deferred: list[Result] = []
        self._deferred_until = 0.0
        self._perhaps: set[str] = set()
        """Ids of the deliveries whose results were written with an unknown outcome."""
        self.unstored: set[str] = set()
        """Deliveries in flight whose results could not be stored."""

    def __len__(self) -> int:
        return len(self._new) + len(self._batch) + len(self._deferred)

    @property
    def unwritten(self) -> int:
        """Results behind a write that has failed; they keep their slots until they are written."""
        return len(self._batch) + len(self._new) if self._batch else 0

    def held(self) -> set[str]:
        """Ids of the deliveries whose results are not written yet."""
        return {s.delivery.id for s in (*self._new, *self._batch, *self._deferred)}

    def put(self, result: Result) -> None:
        """Add one result."""
        self._new.append(result)

    async def write(self, first: Write | None = None) -> float | None:
        """Write collected results; a batch stays here until it is written.

        `first` writes the whole batch, in a transaction that does more; if it fails for another
        reason than an unavailable database, the results are written one by one. Return seconds
        until the next useful turn; None when the database is unavailable.
        """
        now = self._clock.monotonic()
        if self._deferred and now >= self._deferred_until:
            self._new = self._deferred + self._new
            self._deferred = []
        # The batch is an attribute, so that no error can lose its contents.
        room = _room(self._batch, self._new, self._db.batch)
        self._batch += self._new[:room]
        del self._new[:room]
        waits = [await self._write(self._batch, first)] if self._batch else [float("inf")]
        if waits[0] is not None:
            self._batch = []
        if self._deferred:
            waits.append(max(self._deferred_until - self._clock.monotonic(), 0.0))
        if self._new:
            waits.append(0.0)
        return None if waits[0] is None else min(wait for wait in waits if wait is not None)

    async def _write(
        self, batch: list[Result], first: Write | None = None, reported: bool = False
    ) -> float | None:
        try:
            settlement = await (self._db.write(settle, batch) if first is None else first(batch))
        except OwnerElsewhere as error:
            # Only the results of an owner who moves are refused, and his claims are taken away.
            log.warning("settle_refused", error=str(error), waiting=len(batch))
            if first is not None:
                return await self._write(batch)
            if len(batch) > 1:
                return await self._each(batch)
            settlement = Settlement(frozenset(), [], None)
        except DatabaseUnavailable as error:
            if isinstance(error, OutcomeUnknown):
                self._perhaps |= {result.delivery.id for result in batch}
            log.warning("settle_failed", error=str(error), waiting=len(batch))
            return None
        except Exception as error:
            log.error("settle_failed", error=repr(error), waiting=len(batch), exc_info=not reported)
            if first is not None:
                # The rest of that transaction may have failed.
                return await self._write(batch, reported=True)
            return await self._each(batch)
        later = {s.delivery.id for s in settlement.deferred}
        if later:
            if not self._deferred:
                # Later results do not postpone earlier ones, which would otherwise wait for ever.
                self._deferred_until = self._clock.monotonic() + DEFERRED_SECONDS
            self._deferred += settlement.deferred
            self._observer.deferred(len(later))
        for result in batch:
            if result.delivery.id in settlement.held:
                recorded = settlement.ended.get(result.delivery.id, result)
                report_attempt(self._observer, recorded, self._clock.wall())
            elif result.delivery.id in later:
                continue
            elif result.delivery.id in self._perhaps:
                # The write whose outcome was unknown has taken place.
                log.info("settle_was_made", delivery_id=result.delivery.id, node=result.node_id)
            else:
                self._observer.fenced()
                log.warning(
                    "settle_fenced",
                    request_id=result.delivery.event.request_id,
                    delivery_id=result.delivery.id,
                    node=result.node_id,
                )
        self._perhaps -= {result.delivery.id for result in batch}
        for webhook_id, reason in settlement.unreadable:
            log.error("webhook_unreadable", webhook_id=webhook_id, reason=reason)
        for transition in settlement.transitions:
            self._observer.transition(transition.to, transition.reason)
            log.info(
                "webhook_changed",
                webhook_id=transition.webhook_id,
                to=transition.to,
                reason=transition.reason,
            )
        if settlement.wait_us is None or first is not None or self._db.one_writer:
            # A claim in or after this transaction has seen what is due.
            return float("inf")
        return settlement.wait_us / SECOND

    async def _each(self, batch: list[Result]) -> float | None:
        """Write results one by one, with less data where needed: one bad row blocks no other."""
        if len(batch) > 1:
            for number, result in enumerate(batch):
                if await self._write([result], reported=True) is None:
                    # The database is unavailable: drop the written results from the batch.
                    self._batch = batch[number:]
                    return None
            return 0.0
        [result] = batch
        outcome = result.outcome
        if outcome is None:
            # Nothing is left to omit. It stays in flight for this node until the next comparison
            # with the claimed deliveries; that rescue counts.
            self.unstored.add(result.delivery.id)
            log.error(
                "settle_given_up",
                request_id=result.delivery.event.request_id,
                delivery_id=result.delivery.id,
            )
            return 0.0
        bare = unanswered(outcome.outcome, "the response could not be stored", 0.0)
        # First without the response, then without the row of the attempt.
        less = replace(bare, status=outcome.status, total_us=outcome.total_us)
        again = replace(result, outcome=None if outcome == less else less)
        return await self._write([again], reported=True)


def _room(batch: Sequence[Result], new: Sequence[Result], limit: Batch) -> int:
    """Return how many of the new results the batch may take; its first one has any size."""
    size = sum(map(_bytes, batch))
    count = len(batch)
    for result in new:
        size += _bytes(result)
        if count >= limit.rows or (count and size > limit.size):
            break
        count += 1
    return count - len(batch)


def _bytes(result: Result) -> int:
    return len(result.outcome.response_body or b"") if result.outcome is not None else 0
