"""The drain: the loop that turns committed events into settled deliveries.

One turn writes what has been sent and takes what is due (both in one commit on SQLite); sends run
beside it as tasks. No transaction is open while the network is used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import structlog

from outbox import deliveries, lanes, nodes
from outbox.clock import Clock, sleep_until_set
from outbox.database import Database, Tx
from outbox.deliveries import Claimed, Room, Settled, Target
from outbox.envelope import Shipment, compose, masked
from outbox.errors import DatabaseUnavailable
from outbox.fanout import EVENTS_AT_ONCE, FannedOut, fan_out
from outbox.ids import Ids
from outbox.observer import Observer, Unwatched
from outbox.outcome import Name, Outcome, unanswered
from outbox.policy import Decision, Schedule, dead, decide
from outbox.reports import Reports, kind_of
from outbox.sealing import KeyRing
from outbox.send import Sender
from outbox.shipping import Dock, Unsendable
from outbox.windows import SLOW_SECONDS, Sending, Windows

POLL_SECONDS = 1.0
RENEW_SECONDS = nodes.LEASE / 1_000_000 / 3
# Between looks for nodes whose lease has ended: with the poll, rescue comes within 5 s of that.
LOOK_SECONDS = 3.0
BACKOFF_SECONDS = 0.25
CUT_OFF = "cut off by our own shutdown"

log = structlog.get_logger("outbox")


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """How this worker sends. `service` names us in User-Agent; `timeout` is seconds."""

    slots: int = 256
    timeout: float = 15.0
    schedule: Schedule = field(default_factory=Schedule)
    service: str = "Carteiro"


@dataclass(frozen=True, slots=True)
class _Taken:
    fanned: FannedOut
    claimed: list[Claimed]
    targets: Mapping[str, Target]
    more: bool
    wait_us: int | None


async def take(tx: Tx, room: Room) -> _Taken:
    """Fan out what is new, claim what is due."""
    fanned = await fan_out(tx, room)
    claimed, more = await deliveries.claim(tx, fanned.room)
    claimed = fanned.claimed + claimed
    wanted = sorted({delivery.webhook_id for delivery in claimed})
    targets = await deliveries.targets(tx, wanted)
    more = more or sum(fanned.events.values()) == EVENTS_AT_ONCE
    return _Taken(fanned, claimed, targets, more, await lanes.soonest(tx))


class Worker:
    """One node's drain. `run` until `drain`; every method is for the event loop's thread."""

    def __init__(
        self,
        db: Database,
        ring: KeyRing,
        sender: Sender,
        *,
        clock: Clock,
        ids: Ids,
        settings: WorkerSettings,
        observer: Observer | None = None,
    ) -> None:
        self.node_id = ids.new(clock.wall())
        self._db = db
        self._sender = sender
        self._clock = clock
        self._ids = ids
        self._settings = settings
        self._observer = observer or Unwatched()
        self._dock = Dock(ring, settings.timeout, settings.schedule)
        self._windows = Windows(settings.slots)
        self._wake = asyncio.Event()
        self._ended = asyncio.Event()
        self._sends: dict[asyncio.Task[None], tuple[Claimed, Shipment, Sending]] = {}
        self._results: list[Settled] = []
        self._orphans: list[str] = []
        self._stopping = False
        self._behind = False
        self._joined = False
        self._renewed = 0.0
        self._looked = 0.0
        self._claims = 0
        self._reports = Reports(self._observer, clock)

    async def run(self) -> None:
        """Drain until told to stop and everything under way is settled."""
        self._db.listen(self._wake.set)
        self._reports.bind(self.node_id)
        try:
            while not self._over():
                await self._turn()
            if self._joined:
                await self._db.write(nodes.leave, self.node_id)
        finally:
            self._ended.set()

    async def drain(self, grace: float) -> None:
        """Take nothing more, give what is under way `grace` seconds, cut the rest, settle all.

        Returns when the loop has ended, or a little after `grace` if the database is away; what
        could not be written then is rescued by whoever starts next.
        """
        self._stopping = True
        self._wake.set()
        if await sleep_until_set(self._ended, grace):
            return
        for task in self._sends:
            task.cancel()
        await sleep_until_set(self._ended, 2.0)

    async def _turn(self) -> None:
        """One round: lease, settle and take, then wait for a reason to go round again."""
        if not await self._keep_lease():
            await sleep_until_set(self._wake, BACKOFF_SECONDS)
            return
        await self._rescue_lost()
        results, self._results = self._results, []
        self._wake.clear()
        slow = self._windows.take_slots_back(self._clock.monotonic())
        # Once a batch could not be written, it keeps its slots until it is.
        room = self._room(len(results) if self._behind else 0)
        settled, taken = await asyncio.gather(self._settle(results), self._take(room))
        self._behind = not settled
        if taken is not None and self._lease_is_over():
            # This process stood still after its claim: somebody else sends these.
            self._orphans.append(room.claim)
        elif taken is not None:
            # Whatever became of the settling beside it: what is claimed must be sent.
            self._observer.tick()
            self._start(taken)
        if not settled or (taken is None and not self._stopping):
            await asyncio.sleep(BACKOFF_SECONDS)
            return
        wait = POLL_SECONDS
        if taken is not None:
            if taken.more:
                wait = 0.0
            elif taken.wait_us is not None and room.slots:
                wait = min(wait, max(taken.wait_us / 1_000_000, 0.001))
        if results and self._db.engine == "postgres":
            # There the two ran side by side, so what was settled now has not been seen as due.
            wait = 0.0
        self._observer.slots(self._settings.slots, self._windows.busy)
        if self._windows.busy:
            wait = min(wait, slow or SLOW_SECONDS)
        if not self._over():
            await sleep_until_set(self._wake, wait)

    def _over(self) -> bool:
        return self._stopping and not self._sends and not self._results

    async def _keep_lease(self) -> bool:
        """Join or renew when it is time; False while this node may not send."""
        now = self._clock.monotonic()
        if self._joined and now - self._renewed < RENEW_SECONDS:
            return True
        try:
            if not self._joined:
                # What was sent under the old name is written first, or it would be sent again.
                results, self._results = self._results, []
                if not await self._settle(results):
                    return False
                rescued = await self._db.write(nodes.join, self.node_id)
                self._note_rescued("startup", rescued)
                self._joined = True
            elif not await self._db.write(nodes.renew, self.node_id):
                self._lose_lease()
                return False
            self._renewed = now
        except Exception as error:  # noqa: BLE001 - a drain that ended would abandon its sends
            log.warning("lease_not_renewed", error=repr(error), node=self.node_id)
            if self._joined and self._lease_is_over():
                self._lose_lease()
            return self._joined
        return True

    def _lease_is_over(self) -> bool:
        """Whether others may have taken what is ours. On SQLite there are no others."""
        age = self._clock.monotonic() - self._renewed
        return self._db.engine == "postgres" and age > nodes.LEASE / 1_000_000

    async def _rescue_lost(self) -> None:
        """Take back what other nodes had in flight when they died. On SQLite there are none."""
        now = self._clock.monotonic()
        if self._db.engine == "sqlite" or now - self._looked < LOOK_SECONDS:
            return
        self._looked = now
        try:
            self._note_rescued("lease", await self._db.write(nodes.rescue_lost))
        except Exception as error:  # noqa: BLE001 - as above
            log.warning("rescue_put_off", error=repr(error), node=self.node_id)

    def _lose_lease(self) -> None:
        """Others own what was ours: stop sending it, and come back under a new name."""
        log.error("lease_lost", node=self.node_id, in_flight=len(self._sends))
        for task in self._sends:
            task.cancel()
        self.node_id = self._ids.new(self._clock.wall())
        self._joined = False

    def _note_rescued(self, reason: str, count: int) -> None:
        if count:
            log.warning("rescued", reason=reason, count=count, node=self.node_id)
            self._observer.rescued("startup" if reason == "startup" else "lease", count)

    def _room(self, unsettled: int) -> Room:
        self._claims += 1
        return self._windows.room(self.node_id, f"{self.node_id}-{self._claims}", unsettled)

    async def _take(self, room: Room) -> _Taken | None:
        """None when nothing was taken: stopping, or the database is away."""
        if self._stopping:
            return None
        began = self._clock.monotonic()
        try:
            while self._orphans:
                await self._db.write(deliveries.release, self._orphans[-1])
                self._orphans.pop()
            taken = await self._db.write(take, room)
        except Exception as error:
            # A claim that may have been committed although we were told otherwise is given back.
            self._orphans.append(room.claim)
            self._observer.claimed("error", self._clock.monotonic() - began)
            if isinstance(error, DatabaseUnavailable):
                log.warning("take_failed", error=str(error), node=self.node_id)
            else:
                log.exception("take_failed", node=self.node_id)
            return None
        self._observer.claimed(
            "rows" if taken.claimed else "empty", self._clock.monotonic() - began
        )
        if taken.fanned.events:
            self._observer.fanned_out(taken.fanned.events, taken.fanned.created)
        return taken

    def _start(self, taken: _Taken) -> None:
        loop = asyncio.get_running_loop()
        now = self._clock.monotonic()
        for delivery in taken.claimed:
            target = taken.targets.get(delivery.webhook_id)
            try:
                if target is None:
                    raise Unsendable("webhook deleted")
                shipment, schedule = self._dock.load(delivery, target, self._clock.wall())
            except Unsendable as reason:
                self._put(self._unsent(delivery, target, dead(str(reason))))
                continue
            sending = self._windows.start(delivery, target.failures > 0, now)
            task = loop.create_task(self._send(delivery, shipment, schedule, sending))
            self._sends[task] = (delivery, shipment, sending)
            task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        delivery, shipment, sending = self._sends.pop(task)
        if not task.cancelled():
            fault = task.exception()
            if fault is None:
                return
            log.error("send_failed", node=self.node_id, exc_info=fault)
        # Cut off before its first step, or ended by a fault of ours: it could not say so itself.
        self._windows.finish(sending, "keep")
        outcome = unanswered("aborted", CUT_OFF, 0.0)
        decision = decide(outcome, tries=0, schedule=Schedule(()), dice=0.0, now_wall_s=0.0)
        self._put(
            Settled(
                delivery, decision, outcome, self._clock.wall(), (), shipment.url, self.node_id,
                delivery.origin,
            )
        )  # fmt: skip

    def _unsent(self, delivery: Claimed, target: Target | None, decision: Decision) -> Settled:
        return Settled(
            delivery, decision, None, self._clock.wall(), (), target.url if target else "",
            self.node_id, delivery.origin,
        )  # fmt: skip

    def _put(self, result: Settled) -> None:
        self._results.append(result)
        self._wake.set()

    async def _send(
        self, delivery: Claimed, shipment: Shipment, schedule: Schedule, sending: Sending
    ) -> None:
        """One attempt, from signing to the decision; never raises."""
        wall = self._clock.wall()
        lag = max(delivery.lag_us / 1_000_000, 0.0) + self._clock.monotonic() - sending.started
        self._observer.started(kind_of(delivery), lag)
        headers = compose(
            shipment,
            service=self._settings.service,
            now_wall=wall,
            span_id=self._ids.token(8).hex(),
        )
        # After an attempt that took no try, such as one on a connection that had been closed.
        fresh = delivery.attempt > delivery.tries + 1
        outcome = await self._attempt(shipment, headers, fresh)
        decision = decide(
            outcome,
            tries=delivery.tries,
            schedule=schedule,
            dice=self._ids.dice(),
            now_wall_s=self._clock.wall() / 1_000_000,
        )
        width = self._windows.finish(sending, decision.window)
        if decision.window != "keep":
            self._observer.window(delivery.webhook_id, width)
        self._put(
            Settled(
                delivery, decision, outcome, wall, masked(headers), shipment.url, self.node_id,
                delivery.origin,
            )
        )  # fmt: skip

    async def _attempt(
        self, shipment: Shipment, headers: list[tuple[str, str]], fresh: bool
    ) -> Outcome:
        began = self._clock.monotonic()
        try:
            return await self._sender.send(
                shipment.url, headers, shipment.body, shipment.timeout_s, fresh=fresh
            )
        except asyncio.CancelledError:
            outcome: Name = "aborted"
            error = CUT_OFF
        except Exception as fault:
            # A fault of ours must not lose the delivery: it is retried like any other failure.
            log.exception("send_failed", node=self.node_id)
            outcome, error = "protocol_error", f"internal error ({type(fault).__name__})"
        return unanswered(outcome, error, self._clock.monotonic() - began)

    async def _settle(self, batch: list[Settled]) -> bool:
        """Write a batch; False when the database is away (the batch is kept for the next turn)."""
        if not batch:
            return True
        try:
            held = set(await self._db.write(deliveries.settle, batch))
        except DatabaseUnavailable as error:
            log.warning("settle_failed", error=str(error), waiting=len(batch), node=self.node_id)
            self._results = batch + self._results
            return False
        except Exception:
            log.exception("settle_failed", waiting=len(batch), node=self.node_id)
            return await self._settle_each(batch)
        for settled in batch:
            if settled.delivery.id in held:
                self._reports.settled(settled)
            else:
                self._observer.fenced()
                log.warning("settle_fenced", delivery_id=settled.delivery.id, node=self.node_id)
        return True

    async def _settle_each(self, batch: list[Settled]) -> bool:
        """One row that cannot be written must not hold up the others: it is written with less."""
        if len(batch) > 1:
            return all([await self._settle([settled]) for settled in batch])
        [settled] = batch
        outcome = settled.outcome
        if outcome is None:
            # Nothing is left to leave out; kept, or it would stay in flight as long as we live.
            self._results = [settled, *self._results]
            return False
        bare = unanswered(outcome.outcome, "its answer could not be recorded", 0.0)
        # First without what the receiver said, then without the attempt's row.
        less = replace(bare, status=outcome.status, total_us=outcome.total_us)
        return await self._settle([replace(settled, outcome=None if outcome == less else less)])
