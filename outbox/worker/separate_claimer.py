"""Take work on PostgreSQL, where units wait for locks and each statement is a round trip.

SQLite has a claimer of its own. There all is one transaction of the one writer, of ten statements
without a round trip, which shares the COMMIT of the events that it fans out. Here the usual turn is
one statement, two for an event alone; in parts it takes 17 round trips, and may find lanes locked.
One claimer for both would have both ways in it and choose at each step; what they share is in
`claimer`.

It is one module because the usual turn and the one in parts leave work to each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import structlog

from outbox.clock import Clock
from outbox.database.transaction import Database
from outbox.durations import SECOND
from outbox.errors import DatabaseUnavailable, OwnerElsewhere
from outbox.queue.drain import at_once
from outbox.queue.drain.at_once import Turn
from outbox.queue.drain.claim import Taken
from outbox.queue.drain.cycle import claim_due, fan_out_and_look, settle_and_look
from outbox.queue.drain.fanout import FannedOut
from outbox.queue.drain.settle import Settlement
from outbox.queue.state import lanes
from outbox.queue.state.claimed_deliveries import Capacity, Claimed, Endpoint, Result
from outbox.worker.claimer import (
    LONGEST_EMPTY_SECONDS,
    SHORTEST_SECONDS,
    Claimer,
    pause,
)
from outbox.worker.journal import Journal
from outbox.worker.lease import Lease
from outbox.worker.sends import Sends
from outbox.worker.settling import Write
from outbox.worker.wakeups import POLL_SECONDS, Wakeups

BESIDE_FAN_OUT = 16
"""The most results that are recorded in the transaction of a fan-out in parts."""
IN_PARTS = 16
"""So often something is done in parts, after the usual statement has left it."""
FAULT_SECONDS = 1.0
"""So long everything is done in parts, after the usual statement has failed."""

log = structlog.get_logger("outbox")


class SeparateClaimer(Claimer):
    """Does the usual turn with one statement, and any other one in parts.

    In parts, fan-out is apart from claims, so that its locks are free at once, and few results are
    recorded in its transaction, which they do not delay. It looks for due deliveries only when
    there may be some.
    """

    def __init__(
        self, db: Database, *, clock: Clock, sends: Sends, lease: Lease, journal: Journal
    ) -> None:
        super().__init__(db, clock=clock, sends=sends, lease=lease, journal=journal)
        self._wakeups = Wakeups.apart(clock.monotonic, self._share_places)
        self._turned_away = 0
        self._held = 0
        self._recent: dict[str, None] = {}
        """The webhooks of the latest claims, the last one at the end."""
        self._fan_in_parts = 0
        self._claim_in_parts = 0
        """How often the next are done in parts."""
        self._fault_until = 0.0

    def combined_write(self, unwritten: int) -> Write | None:
        if self._stopped or self._orphans or self._lease.objection() is not None:
            # Something else comes before the next claim.
            return None
        return partial(self._settle_and_look, unwritten)

    def _note(self, fanned: FannedOut, capacity: Capacity) -> None:
        if fanned.noted:
            self._held, self._wakeups.notes_at = 0, 0.0
        self._wakeups.behind = bool(fanned.ready)
        super()._note(fanned, capacity)

    def _begin(
        self, claimed: Sequence[Claimed], endpoints: Mapping[str, Endpoint], capacity: Capacity
    ) -> None:
        for delivery in claimed:
            self._recent.pop(delivery.webhook_id, None)
            self._recent[delivery.webhook_id] = None
        while len(self._recent) > at_once.RECENT:
            del self._recent[next(iter(self._recent))]
        super()._begin(claimed, endpoints, capacity)

    async def _settle_and_look(self, unwritten: int, batch: Sequence[Result]) -> Settlement:
        self._sends.watch_changes()
        if at_once.is_usual(batch):
            recorded = await self._turn(unwritten, batch)
            if recorded is not None:
                return recorded
        capacity = self._capacity(unwritten)
        began = self._clock.monotonic()
        fan = len(batch) <= BESIDE_FAN_OUT and self._wakeups.may_fan_out(began)
        if fan:
            self._begin_fan_out(began)
        try:
            settlement, fanned, claim, due = await self._db.write(
                settle_and_look, batch, capacity, self._wakeups.may_find(began), fan
            )
        except Exception as error:
            self._wakeups.news = self._wakeups.news or fan
            self._failed(error, capacity, began)
            raise
        self._wakeups.looked, self._wakeups.due = True, due
        if fanned is not None:
            self._note(fanned, capacity)
            self._wakeups.fanned_for = self._wait_for_fan_out(fanned)
        if claim is not None:
            self._claimed(claim, capacity, began)
        elif not due and settlement.wait_us is not None:
            self._wakeups.due_in(settlement.wait_us / SECOND)
        return settlement

    async def _turn(self, unwritten: int, batch: Sequence[Result]) -> Settlement | None:
        """Record results, claim and fan out with one statement, as far as they are usual.

        Return None when nothing is done, so that it has to be done in parts. That needs no round
        trip when many webhooks have sends in flight and no results wait.
        """
        began = self._clock.monotonic()
        if began < self._fault_until:
            return None
        capacity = self._capacity(unwritten)
        windows = self._sends.windows.rests(self._recent)
        if windows is None and not batch:
            return None
        fan = windows is not None and not self._fan_in_parts and self._wakeups.may_fan_out(began)
        if fan:
            self._begin_fan_out(began)
        try:
            turn = await self._db.write(at_once.turn, batch, capacity, windows, fan)
        except DatabaseUnavailable as error:
            if fan:
                # A failing fan-out must not block deliveries that are ready already.
                self._wakeups.news, self._wakeups.fan_out_at = True, began + LONGEST_EMPTY_SECONDS
            self._failed(error, capacity, began)
            raise
        except Exception as error:  # noqa: BLE001 - the units in parts tell what is wrong, and where
            log.warning("turn_left", error=repr(error), node=capacity.node_id)
            self._fault_until = began + FAULT_SECONDS
            turn = Turn()
        if turn.fan_apart:
            self._fan_in_parts = IN_PARTS
        if turn.fan_apart or turn.settlement is None:
            self._wakeups.news = self._wakeups.news or fan
        if turn.settlement is None:
            return None
        await self._took(turn, capacity, began, fan and not turn.fan_apart)
        return turn.settlement

    async def _took(self, turn: Turn, capacity: Capacity, began: float, fanned: bool) -> None:
        """Start what was claimed, and determine when to look again."""
        claimed = list(turn.claimed)
        if turn.large:
            hooks = [*turn.endpoints]
            try:
                claimed += await self._db.write(at_once.load_large, turn.large, capacity, hooks)
            except Exception as error:  # noqa: BLE001 - reported; the claim is released as a whole
                self._failed(error, capacity, began)
                claimed = []
        self._wakeups.looked = True
        self._observer.tick()
        self._observer.claimed("rows" if claimed else "empty", self._clock.monotonic() - began)
        self._wakeups.behind = False
        if turn.fanned is not None and fanned:
            self._note(turn.fanned, capacity)
            self._wakeups.fanned_for = self._wait_for_fan_out(turn.fanned)
            self._wakeups.crowded = bool(turn.fanned.ready) and not turn.has_rest
        self._begin(claimed, turn.endpoints, capacity)
        self._wakeups.behind = self._wakeups.behind or turn.waited
        self._wakeups.crowded = self._wakeups.crowded or self._share_places()
        self._wakeups.due = turn.claim_apart or turn.has_rest
        if turn.claim_apart:
            self._claim_in_parts = IN_PARTS
        self._wakeups.claim_at = self._clock.monotonic() + self._wait(
            Taken(claimed, wait_us=turn.wait_us)
        )

    def _begin_fan_out(self, now: float) -> None:
        self._wakeups.news = False
        self._wakeups.fanned_at = now

    async def _take(self, unwritten: int) -> float | None:
        now = self._clock.monotonic()
        look = self._wakeups.due or (not self._wakeups.looked and self._wakeups.may_find(now))
        self._wakeups.looked = self._wakeups.due = False
        fan = self._wakeups.fanned_for is None and self._wakeups.may_fan_out(now)
        if (fan and not self._fan_in_parts) or (look and not self._claim_in_parts):
            try:
                done = await self._turn(unwritten, ())
            except DatabaseUnavailable as error:
                if not fan or error.kind == "connection":
                    return None
                look, done = True, None
                self._wakeups.fanned_for = LONGEST_EMPTY_SECONDS
            if done is not None:
                look, self._wakeups.looked, self._wakeups.due = self._wakeups.due, False, False
        fanned_for, self._wakeups.fanned_for = self._wakeups.fanned_for, None
        wait = POLL_SECONDS if fanned_for is None else fanned_for
        if fanned_for is None and self._wakeups.may_fan_out(now):
            self._begin_fan_out(now)
            self._fan_in_parts = max(self._fan_in_parts - 1, 0)
            capacity = self._capacity(unwritten)
            try:
                fanned, due = await self._db.write(fan_out_and_look, capacity)
            except Exception as error:  # noqa: BLE001 - as above
                self._wakeups.news = True
                self._failed(error, capacity, now)
                if isinstance(error, DatabaseUnavailable) and error.kind == "connection":
                    return None
                # A failing fan-out must not block deliveries that are ready already.
                self._wakeups.fan_out_at, wait = now + LONGEST_EMPTY_SECONDS, LONGEST_EMPTY_SECONDS
                look = True
            else:
                look = look or due
                self._note(fanned, capacity)
                wait = self._wait_for_fan_out(fanned)
        began = self._clock.monotonic()
        if look or began >= self._wakeups.notes_at:
            capacity = self._capacity(unwritten)
            try:
                if began >= self._wakeups.notes_at:
                    await self._wake_noted(began)
                self._claim_in_parts = max(self._claim_in_parts - 1, 0)
                self._claimed(await self._db.write(claim_due, capacity), capacity, began)
            except Exception as error:  # noqa: BLE001 - as above
                self._failed(error, capacity, began)
                return None
        return min(wait, self._until(self._wakeups.notes_at), self._until(self._wakeups.claim_at))

    async def _wake_noted(self, now: float) -> None:
        """Take the notes of all nodes, because the node that left a note may be dead."""
        try:
            held = await self._db.write(lanes.wake_noted)
        except OwnerElsewhere as error:
            # One of an owner who moves; his command deletes it with the rest of his rows.
            log.warning("notes_refused", error=str(error))
            held = True
        self._wakeups.notes_at = now + (pause(self._held) if held else POLL_SECONDS)
        self._held = self._held + 1 if held else 0

    def _claimed(self, claim: Taken, capacity: Capacity, began: float) -> None:
        """Start what was claimed, and determine when to claim again."""
        self._start(claim, capacity, began)
        self._wakeups.behind = bool(claim.claimed)
        self._wakeups.claim_at = self._clock.monotonic() + self._wait(claim)
        # A slow send frees its slot without a result, so that nothing else starts the next claim.
        self._wakeups.crowded = claim.crowded or self._share_places()
        if claim.crowded:
            self._db.announce()

    def _until(self, moment: float) -> float:
        return max(moment - self._clock.monotonic(), SHORTEST_SECONDS)

    def _wait_for_fan_out(self, fanned: FannedOut) -> float:
        """Return seconds until the next fan-out may find something."""
        if not fanned.turned_away:
            self._turned_away = 0
            self._wakeups.news = self._wakeups.news or fanned.more
            return 0.0 if fanned.more else POLL_SECONDS
        # The node that fans out may have started before the event of this wake-up was committed.
        self._wakeups.news = True
        self._turned_away += 1
        return pause(self._turned_away - 1)
