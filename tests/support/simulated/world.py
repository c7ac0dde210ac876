"""The whole engine in one simulated world, and the invariants that hold in it at all times.

Each method is a step: what clients, owners, receivers, the store or the machine may do. The world
keeps what it has asked for, and compares it with the rows of the database and with the receivers.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Literal, TypeVar

from outbox import webhooks
from outbox.database.transaction import Database, Row, Tx
from outbox.errors import DatabaseUnavailable, OutboxError, OutcomeUnknown
from outbox.events import enqueue
from outbox.ids import Ids
from outbox.queue.order import ordering, record_lines
from outbox.queue.proof.verification import verify
from outbox.queue.replays import delivery_steering, jobs, replay
from outbox.queue.replays.jobs import Draft as JobDraft
from outbox.queue.replays.jobs import TooMany
from outbox.queue.state.policy import Schedule
from outbox.queue.upkeep import parking
from outbox.webhooks import Draft
from outbox.webhooks.secrets import KeyRing, new_key_line, parse_keys
from outbox.worker import Worker, WorkerSettings
from outbox.worker.recovering import Recovering
from outbox.worker.settling import Settling
from tests.support.simulated.loop import VirtualLoop, VirtualTime
from tests.support.simulated.network import Connection, Mode, Network
from tests.support.simulated.store import Store

T = TypeVar("T")
OWNER = "0" * 24
NAMES = ("thing.made", "thing.changed")
WAITS = (1.0, 4.0, 15.0)
PATIENCE = 900
"""Virtual seconds within which everything is delivered, once nothing fails any more."""
ANSWERED: dict[bool, Literal["refused", "unknown"]] = {False: "refused", True: "unknown"}

EVENTS = """
select id, name, 'r' || (record_version - 1), body, body_digest, seq from events order by pos
"""
DELIVERIES = """
select d.id, d.event_id, d.webhook_id, d.origin, d.state, d.tries, d.reason, d.finished_at
from deliveries d order by d.id
"""
IN_FLIGHT = "select event_id, webhook_id from deliveries where state = 'in_flight'"
TORN = """
select w.url from webhooks w join lanes l on l.webhook_id = w.id
where (w.circuit = 'open') <> (l.probe_at is not null) or (w.circuit = 'open' and not l.failing)
  or ((w.state = 'active') <> l.active and not l.turning)
"""
PROBES = "select count(*) from attempts where kind = 'probe'"
UNFINISHED = """
select (select count(*) from events where seq is null)
  + (select count(*) from deliveries where finished_at is null) as left
"""
# Of each webhook that was not removed: its last number, and how many numbers its deliveries have.
HOLES = """
select q.webhook_id, q.last, (
  select count(*) from deliveries d
  where d.webhook_id = q.webhook_id and d.sequence between 1 and q.last) as numbered
from sequences q where q.last <> numbered or exists (
  select 1 from deliveries d where d.webhook_id = q.webhook_id and d.origin <> 'test'
    and (d.sequence is null) = (d.repeats is null))
"""
SENT = "select id from deliveries where origin <> 'test' order by id"
RECORDS = 3
"""Records that all writes of a world are about."""
YEAR = 365 * 86_400_000_000
WAITING = """
select id, webhook_id from deliveries where state in ('ready', 'held', 'in_flight') order by id
"""
HEADLESS = """
select distinct w.url, h.record_id from deliveries h
join webhooks w on w.id = h.webhook_id join lanes l on l.webhook_id = w.id
where h.state = 'held' and not l.turning and not exists (
  select 1 from deliveries d where d.webhook_id = h.webhook_id and d.record_id = h.record_id
    and d.ordered and d.state in ('ready', 'in_flight'))
"""
# Of each event, its record and its place, and the webhooks that got it again.
ORDER = "select id, record_id, seq from events where seq is not null"
AGAIN = """
select d.event_id, w.url from deliveries d join webhooks w on w.id = d.webhook_id
where d.origin <> 'event'
"""
RUNNING = "select * from jobs where state = 'running'"
TWICE = """
select replayed_by, event_id, webhook_id from deliveries where replayed_by like 'job-%'
group by replayed_by, event_id, webhook_id having count(*) > 1
"""


class Broken(AssertionError):
    """An invariant does not hold."""


@dataclass
class Hook:
    """A webhook as its owner knows it."""

    id: str
    url: str
    names: tuple[str, ...]
    since: int
    """The number of writes before its creation."""
    ordered: bool = False
    turned: bool = False
    """Whether the owner has ever changed the order."""
    removed: bool = False
    may_cancel: bool = False
    """Whether the owner may have dropped waiting deliveries."""
    quiet_from: int | None = None
    """The number of requests written when the webhook stopped; None while it may send."""


@dataclass
class Written:
    """One write of a client: its record, and what the client was told."""

    record: str
    name: str
    told: Literal["stored", "refused", "unknown"]


class Rows:
    """A snapshot for `verify`: nothing else runs meanwhile."""

    notes: Sequence[str] = ()

    def __init__(self, store: Store) -> None:
        self._store = store

    async def query(self, sql: str, *args: Any) -> Sequence[Row]:
        return await self._store.read(_all, sql, args)

    async def by_index(self) -> None:
        """Do nothing: the tables are small."""

    async def stream(self, sql: str, size: int, *args: Any) -> AsyncGenerator[Sequence[Row], None]:
        found = await self.query(sql, *args)
        for start in range(0, len(found), size):
            yield found[start : start + size]


@dataclass
class World:
    """One simulated installation; `seed` decides every random value."""

    folder: Path
    template: Path
    seed: int
    hooks: list[Hook] = field(default_factory=list)
    writes: list[Written] = field(default_factory=list)
    kills: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often a kill met a delivery of (event, webhook) in flight."""
    asked: int = 0
    """How many jobs owners have asked for."""
    settling: ClassVar[type[Settling]] = Settling
    """The part of the worker that writes results."""

    def __post_init__(self) -> None:
        self.path = self.folder / "world.db"
        self.path.write_bytes(self.template.read_bytes())
        self.time = VirtualTime()
        self.loop = VirtualLoop(self.time)
        self.dice = Random(self.seed)
        self.ids = Ids(Random(self.seed + 1).randbytes)
        self.ring: KeyRing = parse_keys(
            new_key_line(self.ids, self.time.wall()), self.ids, "the world's ring"
        )
        self.network = Network(self.dice)
        self.faults = 0.0
        self._start()
        self._look = sqlite3.connect(self.path)

    def close(self) -> None:
        """End the world and free its files."""
        self._end_process()
        self._look.close()
        self.loop.close()

    @property
    def db(self) -> Database:
        return self.store  # type: ignore[return-value] # its methods are those of a database

    # What clients and owners do.

    def add_webhook(self, names: tuple[str, ...], ordered: bool = False) -> None:
        """Create a webhook; only a webhook whose creation was confirmed is used."""
        url = f"http://receiver-{len(self.hooks)}.example/"
        draft = Draft(url=url, events=names, ordered=ordered, sequenced=True)
        done = self._try(
            self.store.write(
                webhooks.create, owner_id=OWNER, draft=draft,
                secret="whsec_c2VjcmV0", ring=self.ring,
            )
        )  # fmt: skip
        found = self.rows(f"select id from webhooks where url = '{url}'")
        if found:
            self.hooks.append(Hook(found[0][0], url, names, len(self.writes), ordered))
        elif done is not None:
            raise Broken(f"{url} was confirmed and is not there")

    def write(self, name: str, count: int) -> None:
        """Write some events in one transaction each, at once."""

        async def one(number: int) -> Written:
            record = f"r{number}"
            try:
                await self.store.write(_make, f"record-{number % RECORDS}", number + 1, name)
            except DatabaseUnavailable as error:
                return Written(record, name, ANSWERED[isinstance(error, OutcomeUnknown)])
            return Written(record, name, "stored")

        async def all_of() -> list[Written]:
            first = len(self.writes)
            return await asyncio.gather(*(one(first + n) for n in range(count)))

        self.writes += self._run(all_of())

    def pause(self, hook: Hook) -> None:
        if not hook.removed and self._try(self.store.write(parking.pause, hook.id)):
            hook.quiet_from = len(self.network.started)

    def activate(self, hook: Hook, parked: parking.Parked) -> None:
        if hook.removed:
            return
        hook.quiet_from = None
        hook.may_cancel = hook.may_cancel or parked != "all"
        self._try(parking.activate(self.db, hook.id, parked))

    def remove(self, hook: Hook) -> None:
        if hook.removed or len(self.hooks) == 1:
            return
        hook.removed = hook.may_cancel = True
        hook.quiet_from = None
        if self._try(parking.remove(self.db, hook.id)):
            hook.quiet_from = len(self.network.started)

    def replay(self, place: int) -> None:
        """Replay one of the deliveries."""
        found = self.rows(SENT)
        if found:
            unit = self.store.write(replay.one, found[place % len(found)][0], OWNER)
            try:
                self._try(unit)
            except replay.NotReplayable:
                return

    def turn(self, hook: Hook, ordered: bool) -> None:
        """Turn the order of a webhook on or off; faults may leave the end of it to the duty."""
        if not hook.removed:
            hook.turned, hook.ordered = True, ordered
            hook.quiet_from = None
            self._try(ordering.turn(self.db, hook.id, ordered))

    def steer(self, place: int, how: str) -> None:
        """Try a waiting delivery now, cancel it, or skip it as the head of its line."""
        found = self.rows(WAITING)
        if not found:
            return
        one, webhook_id = found[place % len(found)]
        hook = next(hook for hook in self.hooks if hook.id == webhook_id)
        if how == "try":
            self._steered(self.store.write(delivery_steering.try_now, one))
            return
        hook.may_cancel = True
        if how == "cancel":
            self._steered(self.store.write(delivery_steering.cancel, [one]))
        else:
            self._steered(self.store.write(record_lines.skip, one))

    def recover(self, hook: Hook) -> None:
        """Start a job that replays what was cancelled or given up."""
        if hook.removed:
            return
        self.asked += 1
        draft = JobDraft(("cancelled", "exhausted"), None, 0, self.time.wall() + YEAR, 1_000)
        self._steered(
            self.store.write(
                jobs.create, owner_id=OWNER, webhook_id=hook.id, user_id=f"job-{self.asked}",
                draft=draft, total=0,
            )
        )  # fmt: skip

    # What happens to the installation.

    def advance(self, seconds: float) -> None:
        self._run(asyncio.sleep(seconds))

    def receiver(self, hook: Hook, mode: Mode) -> None:
        self.network.modes[hook.url] = mode

    def fail_store(self, share: float) -> None:
        """Let this share of all transactions fail from now on."""
        self.faults = self.store.faults = share

    def jump(self, seconds: int) -> None:
        """Set the wall clock forward or back."""
        self.time.jump += seconds * 1_000_000

    def kill(self) -> None:
        """Kill the process and start it again; what was in flight may arrive twice."""
        self._end_process()
        for event_id, webhook_id in self.rows(IN_FLIGHT):
            self.kills[event_id, webhook_id] += 1
        self._start()

    def heal(self) -> None:
        """End all faults, activate all webhooks, and wait until nothing is left to deliver."""
        self.fail_store(0.0)
        self.network.modes.clear()
        for hook in self.hooks:
            if hook.removed:
                # Its removal may have been refused.
                self._try(parking.remove(self.db, hook.id))
            else:
                hook.quiet_from = None
                self._try(parking.activate(self.db, hook.id, "all"))
        for _ in range(PATIENCE):
            self.work_off()
            if not self.rows(RUNNING) and not self.rows(UNFINISHED)[0][0]:
                return
            self.advance(1.0)
        raise Broken(f"unfinished after {PATIENCE} s: {self.rows(DELIVERIES)}")

    def work_off(self) -> None:
        """Do what the duties do: a step of each job, and the end of each change of order."""
        for job in self._try(self.store.read(jobs.running)) or ():
            self._try(Recovering(self.db).step(job))
        self._try(ordering.finish_all(self.db))
        self._try(ordering.repair(self.db))

    # What must hold.

    def check(self) -> None:
        """Compare the rows and the receivers with what was asked for. Raise Broken."""
        events = {row[0]: row for row in self.rows(EVENTS)}
        self._writes_have_events([row[2] for row in events.values()])
        self._bodies_are_frozen(events)
        deliveries = self.rows(DELIVERIES)
        self._one_delivery_each(events, deliveries)
        self._ends(deliveries)
        self._arrivals(deliveries)
        if torn := self.rows(TORN):
            raise Broken(f"webhook and lane differ: {torn}")
        if holes := self.rows(HOLES):
            raise Broken(f"not each delivery has one number: {holes}")
        turned = {hook.url for hook in self.hooks if hook.turned}
        if headless := [row for row in self.rows(HEADLESS) if row[0] not in turned]:
            raise Broken(f"lines without a head: {headless}")
        if twice := self.rows(TWICE):
            raise Broken(f"replayed twice by one job: {twice}")
        self._in_order()
        for hook in self.hooks:
            if hook.quiet_from is not None and any(
                url == hook.url for _, url in self.network.started[hook.quiet_from :]
            ):
                raise Broken(f"{hook.url} was sent to after it was stopped")

    def check_complete(self) -> None:
        """After `heal`: each event has its deliveries, and each of them has ended."""
        self.check()
        owed = Counter[tuple[str, str]]()
        by_record = {row[2]: row[0] for row in self.rows(EVENTS)}
        for number, written in enumerate(self.writes):
            event_id = by_record.get(written.record)
            for hook in self.hooks:
                if event_id and number >= hook.since and written.name in hook.names:
                    owed[event_id, hook.id] += not hook.removed
        had = Counter((row[1], row[2]) for row in self.rows(DELIVERIES) if row[3] == "event")
        if missing := [pair for pair, count in owed.items() if count and not had[pair]]:
            raise Broken(f"never made: {missing}")
        if extra := [pair for pair in had if pair not in owed]:
            raise Broken(f"not owed: {extra}")
        source: Any = Rows(self.store)
        if faults := self._run(verify(source, self.ring)).faults:
            raise Broken(f"chains are broken: {faults}")

    def probes(self) -> int:
        """Return the number of recorded probes."""
        return int(self.rows(PROBES)[0][0])

    def digest(self) -> str:
        """Return a digest over all rows and requests, to compare two runs of one seed."""
        state = [self.rows(EVENTS), self.rows(DELIVERIES), self.network.got, self.network.started]
        return hashlib.sha256(json.dumps(state, default=str).encode()).hexdigest()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Read rows beside the process."""
        return self._look.execute(sql).fetchall()

    def _writes_have_events(self, records: list[str]) -> None:
        had = Counter(records)
        for written in self.writes:
            count = had.pop(written.record, 0)
            if count > 1 or (count == 1) is (written.told == "refused"):
                raise Broken(f"{written} has {count} events")
            if not count and written.told == "stored":
                raise Broken(f"{written} has no event")
        if had:
            raise Broken(f"events without a write: {had}")

    def _bodies_are_frozen(self, events: dict[str, tuple[Any, ...]]) -> None:
        for receipt in self.network.got:
            event = events.get(receipt.event_id)
            if event is None or event[3] != receipt.body:
                raise Broken(f"{receipt} has other bytes than its event")

    def _one_delivery_each(
        self, events: dict[str, tuple[Any, ...]], deliveries: list[tuple[Any, ...]]
    ) -> None:
        had = Counter((row[1], row[2]) for row in deliveries if row[3] == "event")
        if doubled := [pair for pair, count in had.items() if count > 1]:
            raise Broken(f"two deliveries of one event: {doubled}")

    def _ends(self, deliveries: list[tuple[Any, ...]]) -> None:
        succeeded = {(r.event_id, r.url) for r in self.network.got if r.success}
        by_id = {hook.id: hook for hook in self.hooks}
        for delivery_id, event_id, webhook_id, _, state, tries, reason, _ in deliveries:
            hook = by_id[webhook_id]
            told = f"{delivery_id} is {state} ({reason})"
            if state == "delivered" and (event_id, hook.url) not in succeeded:
                raise Broken(f"{told}, and no receiver has it")
            if state == "cancelled" and not hook.may_cancel:
                raise Broken(f"{told}, and nobody has cancelled it")
            if state == "exhausted" and tries != len(WAITS) + 1:
                raise Broken(f"{told} after {tries} tries")
            if state in ("dead", "gone"):
                raise Broken(told)

    def _arrivals(self, deliveries: list[tuple[Any, ...]]) -> None:
        """Each delivery succeeds once, and is sent once at a time, but for kills."""
        urls = {hook.id: hook.url for hook in self.hooks}
        allowed = Counter((row[1], urls[row[2]]) for row in deliveries)
        most_open = Counter(allowed)
        for (event_id, webhook_id), count in self.kills.items():
            allowed[event_id, urls[webhook_id]] += count
        succeeded = Counter((r.event_id, r.url) for r in self.network.got if r.success)
        if doubled := [pair for pair, count in succeeded.items() if count > allowed[pair]]:
            raise Broken(f"arrived again without a kill: {doubled}")
        for (url, event_id), count in self.network.most_open.items():
            if count > most_open[event_id, url]:
                raise Broken(f"{event_id} was sent to {url} {count} times at once")

    def _in_order(self) -> None:
        """The events of each record arrive in their order, but for those that were replayed."""
        places = {row[0]: (row[1], row[2]) for row in self.rows(ORDER)}
        again = set(self.rows(AGAIN))
        ordered = {hook.url for hook in self.hooks if hook.ordered and not hook.turned}
        last: dict[tuple[str, str], int] = {}
        for receipt in self.network.got:
            if receipt.url not in ordered or (receipt.event_id, receipt.url) in again:
                continue
            record, seq = places[receipt.event_id]
            if seq < last.get((receipt.url, record), 0):
                raise Broken(f"{receipt} arrived after a later event of {record}")
            last[receipt.url, record] = seq

    def _start(self) -> None:
        self.store = Store(self.path, self.time, self.ids, self.dice)
        self.store.faults = self.faults
        self.worker = Worker(
            self.db, self.ring, Connection(self.network, self.time), clock=self.time, ids=self.ids,
            settings=WorkerSettings(slots=8, timeout=5.0, schedule=Schedule(WAITS)),
            settling=self.settling,
        )  # fmt: skip
        self.process = self.loop.create_task(self.worker.run())

    def _end_process(self) -> None:
        self.store.cut()
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self.store.end()

    def _try(self, action: Awaitable[T]) -> T | None:
        """Run an action; return None when the database did not confirm it."""

        async def tried() -> T | None:
            try:
                return await action
            except DatabaseUnavailable:
                return None

        return self._run(tried())

    def _steered(self, action: Awaitable[object]) -> None:
        try:
            self._try(action)
        except (OutboxError, TooMany):
            return

    def _run(self, action: Coroutine[Any, Any, T]) -> T:
        asyncio.set_event_loop(self.loop)
        try:
            result = self.loop.run_until_complete(action)
        finally:
            asyncio.set_event_loop(None)
        if self.process.done():
            raise Broken("the worker has ended") from self.process.exception()
        return result


async def _make(tx: Tx, record: str, version: int, name: str) -> str:
    return enqueue(
        tx, owner_id=OWNER, name=name, record_id=record, record_version=version,
        data={"id": record},
    )  # fmt: skip


async def _all(tx: Tx, sql: str, args: Sequence[Any]) -> Sequence[Row]:
    return await tx.all(sql, *args)
