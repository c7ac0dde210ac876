"""Locks are taken in one order everywhere: no deadlock in ordinary running (A7).

The server's count of deadlocks is the measure; and no delivery may be lost.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import asyncpg

from outbox import webhooks
from outbox.database.transaction import Database
from outbox.errors import DatabaseUnavailable, OutcomeUnknown
from outbox.queue.replays import replay
from outbox.queue.replays.replay import NotReplayable
from outbox.queue.upkeep import parking
from outbox.webhooks import Draft
from outbox.webhooks.secrets import KeyRing
from tests.benchmarks.children import child
from tests.benchmarks.idle_commit import arrivals
from tests.support.drain import Counted, add_webhook, make, ring, rows, worker_for
from tests.support.faults import sizes
from tests.support.waiting import until
from tests.system.staging import address, several

WORKERS = 3
WEBHOOKS = 60
SLOTS = 64
WRITE_SECONDS = 0.05
MOST_WAITING = 3_000
"""Writers pause while this many deliveries wait: the run measures locks, not a backlog."""
DRAIN_SECONDS = 90.0
USER = "e" * 24

DEADLOCKS = "select deadlocks from pg_stat_database where datname = current_database()"
CONNECTED = """
select count(*) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
"""
WAITING = "select count(*) as waiting from deliveries where state in ('ready', 'in_flight')"
UNFINISHED = """
select (select count(*) from events where seq is null)
  + (select count(*) from deliveries where finished_at is null) as unfinished
"""
FINISHED = """
select id from deliveries where webhook_id = $1 and state in ('delivered', 'exhausted')
order by id desc limit 20
"""
ENDS = """
select state, coalesce(reason, '') as reason, count(*) as count from deliveries group by 1, 2
"""
MADE = """
select count(*) as made from deliveries where webhook_id = $1 and origin = 'event'
"""
DELIVERED = "select event_id from deliveries where webhook_id = $1 and state = 'delivered'"
ALLOWED = {"", "parked", "webhook deleted", "success", "http_5xx"}


@dataclass
class _Town:
    """The webhooks and the actions on them."""

    databases: list[Database]
    key: KeyRing
    url: str
    dice: random.Random
    ids: list[str] = field(default_factory=list)
    """By position; a recreated webhook takes the position of the old one."""
    first: set[str] = field(default_factory=set)
    """Webhooks that existed from the start and were never removed."""
    busy: set[int] = field(default_factory=set)
    done: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    arrived: set[tuple[str, str]] = field(default_factory=set)

    @property
    def db(self) -> Database:
        return self.dice.choice(self.databases)

    async def add(self, place: int) -> str:
        webhook_id, _ = await add_webhook(self.db, self.key, f"{self.url}/half/{place}")
        return webhook_id

    async def write(self) -> None:
        [row] = await self.db.read(rows, WAITING)
        if row["waiting"] < MOST_WAITING:
            await self.db.write(make, "record")
            self.done["write"] += 1

    async def edit(self, place: int) -> None:
        webhook = await self.db.read(webhooks.one, self.ids[place])
        assert webhook is not None
        draft = Draft(webhook.url, webhook.events, f"edited {self.done['edit']}")
        await self.db.write(webhooks.change, webhook.id, webhook.version, draft, self.key)

    async def pause(self, place: int) -> None:
        await self.db.write(parking.pause, self.ids[place])
        await asyncio.sleep(self.dice.uniform(0, 0.5))
        await parking.activate(self.db, self.ids[place], self.dice.choice(parking.CHOICES))

    async def remove(self, place: int) -> None:
        self.first.discard(self.ids[place])
        await parking.remove(self.db, self.ids[place])
        self.ids[place] = await self.add(place)

    async def replay(self, place: int) -> None:
        found = await self.db.read(rows, FINISHED, self.ids[place])
        if found:
            await self.db.write(replay.one, self.dice.choice(found)["id"], USER)

    async def act(self, what: Callable[[int], Awaitable[None]]) -> None:
        """Run one action on a webhook that no other task uses."""
        place = self.dice.choice([n for n in range(WEBHOOKS) if n not in self.busy])
        self.busy.add(place)
        try:
            await self.attempt(what.__name__, what(place))
        finally:
            self.busy.discard(place)

    async def attempt(self, name: str, work: Awaitable[None]) -> None:
        try:
            await work
            self.done[name] += name != "write"
        except (NotReplayable, DatabaseUnavailable, OutcomeUnknown) as error:
            self.done[f"{name} refused: {error}"[:80]] += 1
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what we look for
            self.findings.append(f"{name}: {type(error).__name__}: {error}")

    async def collect(self) -> None:
        """Record the requests of the receiver."""
        port = int(self.url.rpartition(":")[2])
        for path, event, _ in await asyncio.to_thread(arrivals, port):
            self.arrived.add((path, event))

    async def ask(self, what: str) -> None:
        await asyncio.to_thread(_ask, f"{self.url}/{what}")

    async def flip(self) -> None:
        await self.ask("flip")
        await self.collect()


def _ask(url: str) -> None:
    with urlopen(url, timeout=30) as answer:
        answer.read()


async def run_collisions(seconds: float, seed: int) -> dict[str, Any]:
    """Run everything at once for `seconds`; return the server's counts and the losses."""
    with tempfile.TemporaryDirectory(prefix="carteiro-collisions-") as name:
        log = Path(name) / "receiver.log"
        with child("tests.benchmarks.receiver", "record", log=log) as receiver:
            url = f"http://127.0.0.1:{receiver.json()['port']}"
            async with address("postgres") as database_url:
                async with several(database_url, WORKERS) as databases:
                    town = _Town(databases, ring(), url, random.Random(seed))
                    town.ids = [await town.add(place) for place in range(WEBHOOKS)]
                    town.first = set(town.ids)
                    async with _workers(town) as watches:
                        await _busy(town, seconds)
                        left = await _drained(town)
                        ends = await _lost(town)
                deadlocks = await _deadlocks(database_url)
    if deadlocks:
        town.findings.append(f"{deadlocks} deadlocks")
    if left:
        town.findings.append(f"{left} deliveries came to no end")
    serialization = sum(watch.counts.get("fault serialization", 0) for watch in watches)
    sent = sum(watch.counts.get("attempt", 0) for watch in watches)
    told = {
        "seed": seed, "seconds": seconds, "deadlocks": deadlocks, "unfinished": left,
        "attempts": sent, "reruns": serialization, "done": dict(town.done), "ends": ends,
    }  # fmt: skip
    return {"pass": not town.findings, **told, "findings": town.findings[:20]}


@asynccontextmanager
async def _workers(town: _Town) -> AsyncIterator[list[Counted]]:
    watches = []
    running = []
    for db in town.databases:
        db.observer = watch = Counted()
        worker, sender = worker_for(db, town.key, slots=SLOTS)
        watches.append(watch)
        running.append((worker, sender, asyncio.create_task(worker.run())))
    try:
        yield watches
    finally:
        for worker, sender, task in running:
            await worker.drain(1.0)
            await sender.close()
            task.cancel()
        await asyncio.gather(*(task for _, _, task in running), return_exceptions=True)


async def _busy(town: _Town, seconds: float) -> None:
    """Run writers and owners, each at its own pace, until the time is over."""
    dice = town.dice
    end = asyncio.get_running_loop().time() + seconds

    async def again(one: Callable[[], Awaitable[None]], longest: float) -> None:
        while asyncio.get_running_loop().time() < end:
            await one()
            await asyncio.sleep(dice.uniform(0, longest))

    async with asyncio.TaskGroup() as group:
        group.create_task(again(lambda: town.attempt("write", town.write()), 2 * WRITE_SECONDS))
        group.create_task(again(town.flip, 2.0))
        for what, longest in (
            (town.edit, 0.1), (town.pause, 0.1), (town.remove, 0.5), (town.replay, 0.1),
        ):  # fmt: skip
            group.create_task(again(partial(town.act, what), longest))
        group.create_task(again(partial(town.act, town.pause), 0.1))


async def _drained(town: _Town) -> int:
    """Let all receivers respond and all webhooks send; return how many deliveries never end."""
    await town.ask("heal")
    for webhook_id in town.ids:
        await parking.activate(town.db, webhook_id, "all")

    async def done() -> bool:
        [row] = await town.db.read(rows, UNFINISHED)
        return not row["unfinished"]

    try:
        await until(done, DRAIN_SECONDS)
    except TimeoutError:
        [row] = await town.db.read(rows, UNFINISHED)
        return int(row["unfinished"])
    return 0


async def _lost(town: _Town) -> dict[str, int]:
    """Find lost deliveries; count final states."""
    await town.collect()
    ends = await town.db.read(rows, ENDS)
    strange = {f"{row['state']} ({row['reason']})" for row in ends if row["reason"] not in ALLOWED}
    if strange:
        town.findings.append(f"ends of no known reason: {sorted(strange)}")
    for place, webhook_id in enumerate(town.ids):
        if webhook_id in town.first:
            [row] = await town.db.read(rows, MADE, webhook_id)
            if row["made"] != town.done["write"]:
                town.findings.append(f"{row['made']} deliveries of {town.done['write']} events")
        got = await town.db.read(rows, DELIVERED, webhook_id)
        never = sum((f"/half/{place}", row["event_id"]) not in town.arrived for row in got)
        if never:
            town.findings.append(f"{never} deliveries that never arrived")
    told: Counter[str] = Counter()
    for row in ends:
        told[row["state"]] += row["count"]
    return dict(told)


async def _deadlocks(url: str) -> int:
    """Return the server's counts; its backends report theirs at the latest when they end."""
    connection = await asyncpg.connect(url)
    try:
        await until(lambda: _alone(connection))
        await connection.execute("select pg_stat_clear_snapshot()")
        return int(await connection.fetchval(DEADLOCKS))
    finally:
        await connection.close()


async def _alone(connection: Any) -> bool:
    return not await connection.fetchval(CONNECTED)


@sizes("seconds", large=300.0)
async def test_workers_and_owners_never_deadlock(seconds: float) -> None:
    told = await run_collisions(seconds, seed=1)
    assert told["pass"], told
