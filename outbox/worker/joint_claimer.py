"""Take work with one writer: fan-out, claims and results share a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from outbox.durations import SECOND
from outbox.queue.drain.claim import Taken
from outbox.queue.drain.cycle import settle_and_take, take
from outbox.queue.drain.fanout import FannedOut
from outbox.queue.drain.settle import Settlement
from outbox.queue.state.claimed_deliveries import Capacity, Result
from outbox.worker.claimer import Claimer
from outbox.worker.settling import Write


class JointClaimer(Claimer):
    """Fans out and claims in one transaction, where units share one COMMIT, also with results.

    It looks for events and due deliveries only when there may be some.
    """

    def combined_write(self, unwritten: int) -> Write | None:
        if self._stopped or self._orphans or self._lease.objection() is not None:
            # Something else comes before the next claim.
            return None
        return partial(self._settle_and_take, unwritten)

    async def _settle_and_take(self, unwritten: int, batch: Sequence[Result]) -> Settlement:
        self._sends.watch_changes()
        capacity = self._capacity(unwritten)
        began = self._clock.monotonic()
        look = self._wakeups.news or self._wakeups.may_find(began)
        self._wakeups.news = False
        try:
            settlement, fanned, claims = await self._db.write(
                settle_and_take, batch, capacity, look
            )
        except Exception as error:
            self._wakeups.news = True
            self._failed(error, capacity, began)
            raise
        self._wakeups.looked = True
        if fanned is not None:
            self._took(fanned, claims, capacity, began)
        elif settlement.wait_us is not None:
            self._wakeups.due_in(settlement.wait_us / SECOND)
        return settlement

    async def _take(self, unwritten: int) -> float | None:
        looked, self._wakeups.looked = self._wakeups.looked, False
        began = self._clock.monotonic()
        if not looked and (self._wakeups.news or self._wakeups.may_find(began)):
            self._wakeups.news = False
            capacity = self._capacity(unwritten)
            try:
                fanned, claims = await self._db.write(take, capacity)
            except Exception as error:  # noqa: BLE001 - reported to the observer, and tried again
                self._wakeups.news = True
                self._failed(error, capacity, began)
                return None
            self._took(fanned, claims, capacity, began)
        return max(self._wakeups.claim_at - self._clock.monotonic(), 0.0)

    def _took(
        self, fanned: FannedOut, claims: Sequence[Taken], capacity: Capacity, began: float
    ) -> None:
        """Start what was claimed, and determine when to look again."""
        self._note(fanned, capacity)
        for claim in claims:
            self._start(claim, capacity, began)
        self._wakeups.crowded = any(claim.crowded for claim in claims) or self._share_places()
        self._wakeups.behind = bool(fanned.ready) or any(claim.claimed for claim in claims)
        wait = 0.0 if fanned.more else self._wait(claims[-1])
        self._wakeups.claim_at = self._clock.monotonic() + wait
