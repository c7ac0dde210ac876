"""Jobs that replay many events: which ones, in which order, how fast, and each of them once."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest

from outbox.database.fair_limit import Crowded
from outbox.database.transaction import DUTIES, Database, Tx
from outbox.database.unit_limits import SCANS_EACH, SCANS_WAITING
from outbox.observer import Observer
from outbox.queue.drain.fanout import fan_out
from outbox.queue.replays import job_selection, job_steps, jobs
from outbox.queue.replays.job_selection import EventPage
from outbox.queue.replays.jobs import Draft, Job, TooMany
from outbox.queue.state.claimed_deliveries import Capacity
from outbox.states import End, JobKind, JobState
from outbox.webhooks.conditions import Condition
from outbox.worker.recovering import Recovering
from outbox.worker.windows import MOST_BYTES
from tests.support.counted import CountedTx
from tests.support.drain import OWNER, add_webhook, make, ring, rows, run
from tests.support.lines import fanned
from tests.support.waiting import next_millisecond

HOUR = 3_600_000_000
SECOND = 1_000_000
DAY = 24 * HOUR
NONE = Capacity("node", "none", 0, 0, 0, {}, MOST_BYTES)

FAILED: tuple[End, ...] = ("exhausted", "gone", "dead")
URL = "http://127.0.0.1:9/"


async def events(tx: Tx, count: int, name: str) -> list[str]:
    return [await make(tx, f"record-{n}", name) for n in range(count)]


@dataclass
class Shop:
    """A webhook, and events with deliveries to it."""

    db: Database
    webhook_id: str

    async def ended(self, *states: str, name: str = "thing.made", hours: int = 0) -> list[str]:
        """Make an event with a delivery for each of these ends, some hours ago; their ids."""
        ids = await self.db.write(events, len(states), name)
        await self.db.write(
            run, "update events set occurred_at = occurred_at - $1 where seq is null", hours * HOUR
        )
        await self.db.write(fan_out, NONE)
        ordered = [
            row["id"]
            for row in await self.db.read(
                rows, "select id from events order by seq desc limit $1", len(ids)
            )
        ]
        ordered.reverse()
        for event_id, state in zip(ordered, states, strict=True):
            await self.db.write(
                run, "update deliveries set state = $2 where event_id = $1", event_id, state
            )
        return ordered

    async def job(
        self, *ends: End, names: tuple[str, ...] | None = None, hours: int = 5, until: int = 0,
        rate: int = 1000, total: int = 0,
    ) -> str:  # fmt: skip
        now = self.db.clock.wall()
        draft = Draft(ends, names, now - hours * HOUR, now - until * HOUR + 1, rate)
        return await self.db.write(
            jobs.create, owner_id=OWNER, webhook_id=self.webhook_id, user_id="maria", draft=draft,
            total=total,
        )  # fmt: skip

    def draft(self, days: int) -> Draft:
        """A backfill of some days."""
        now = self.db.clock.wall()
        return Draft((), None, now - days * DAY, now, 5)

    async def of(self, job_id: str) -> Job:
        job = await self.db.read(jobs.one, job_id)
        assert job is not None
        return job

    async def step(self, job_id: str) -> None:
        """Let a second pass for the job's rate, and take a step."""
        # Of two deliveries of an event the one with the greater id is the last.
        await next_millisecond()
        await self.db.write(run, "update jobs set paced_at = paced_at - $1", SECOND)
        await Recovering(self.db).step(await self.of(job_id))

    async def finish(self, job_id: str) -> Job:
        while (job := await self.of(job_id)).state == "running":
            await self.step(job_id)
        return job

    async def age(self, days: int) -> None:
        """Let these days pass for all events and deliveries; all deliveries have ended."""
        for row in await self.db.read(rows, "select id, created_at from deliveries"):
            then = int(row["created_at"]) - days * DAY
            await self.db.write(
                run, "update deliveries set id = $2, created_at = $3, finished_at = $3"
                " where id = $1", row["id"], self.db.ids.new(then), then,
            )  # fmt: skip
        for row in await self.db.read(rows, "select id, occurred_at from events"):
            then = int(row["occurred_at"]) - days * DAY
            new = self.db.ids.new(then)
            await self.db.write(
                run, "update events set id = $2, occurred_at = $3 where id = $1",
                row["id"], new, then,
            )  # fmt: skip
            await self.db.write(
                run, "update deliveries set event_id = $2 where event_id = $1", row["id"], new
            )

    async def replayed(self) -> list[str]:
        """The events of the replays, in the order in which they go out."""
        deliveries = await self.db.read(
            rows, "select event_id from deliveries where origin = 'replay' order by next_at"
        )
        return [row["event_id"] for row in deliveries]


@pytest.fixture
async def shop(db: Database) -> Shop:
    webhook_id, _ = await add_webhook(db, ring(), URL)
    return Shop(db, webhook_id)


async def test_a_job_replays_what_ended_as_chosen_in_order(shop: Shop) -> None:
    ids = await shop.ended("exhausted", "delivered", "gone", "cancelled", "dead", "ready", "held")
    job = await shop.finish(await shop.job(*FAILED))
    assert await shop.replayed() == [ids[0], ids[2], ids[4]]
    assert (job.state, job.made, job.refused) == ("done", 3, 0)
    [row] = await shop.db.read(
        rows, "select count(*) as n from deliveries where replayed_by = 'maria' and state = 'ready'"
    )
    assert row["n"] == 3
    [lane] = await shop.db.read(rows, "select due_at <= due_now() as due from lanes")
    assert lane["due"]


async def test_a_repeated_job_sends_nothing_twice(shop: Shop) -> None:
    ids = await shop.ended("dead", "dead", "dead")
    await shop.finish(await shop.job("dead"))
    assert (await shop.finish(await shop.job("dead"))).made == 0
    # A replay that was delivered settles its event; one that failed as well is recovered.
    for event_id, state in zip(ids, ("delivered", "dead", "cancelled"), strict=True):
        await shop.db.write(
            run, "update deliveries set state = $2 where event_id = $1 and origin = 'replay'",
            event_id, state,
        )  # fmt: skip
    job = await shop.finish(await shop.job("dead"))
    assert job.made == 2
    assert sorted(await shop.replayed()) == sorted([*ids, *ids[1:]])


async def test_a_search_reads_no_more_than_its_page(shop: Shop) -> None:
    await shop.ended(*["delivered"] * 6)
    job = await shop.db.read(jobs.one, await shop.job("dead"))
    assert job is not None
    for size, place, more in ((2, 2, True), (4, 4, True), (9, 6, False)):
        page = await shop.db.read(job_selection.look, job.selection, 0, 1, size)
        assert (page.events, page.place, page.more) == ([], place, more)


async def test_a_count_has_a_bound(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_selection, "PAGE", 2)
    monkeypatch.setattr(jobs, "COUNTED", 2)
    await shop.ended(*["dead"] * 5)
    now = shop.db.clock.wall()
    draft = Draft(("dead",), None, now - HOUR, now + 1, 5)
    chosen = await shop.db.read(jobs.choose, OWNER, shop.webhook_id, draft)
    assert await shop.db.read(jobs.count, chosen) == (4, False)


async def test_a_backfill_sends_what_the_webhook_never_got(shop: Shop) -> None:
    before = await shop.ended("delivered", "delivered", hours=2)
    await shop.ended("delivered", name="thing.changed", hours=2)
    new, _ = await add_webhook(shop.db, ring(), URL)
    after = await shop.ended("delivered")
    late = Shop(shop.db, new)
    job_id = await late.job(names=("thing.made", "thing.changed"))
    job = await late.finish(job_id)
    assert (job.kind, job.made) == ("backfill", 2)
    assert await shop.replayed() == before
    deliveries = await shop.db.read(
        rows, "select event_id, origin from deliveries where webhook_id = $1 order by seq", new
    )
    assert [(row["event_id"], row["origin"]) for row in deliveries] == [
        *((one, "replay") for one in before), *((one, "event") for one in after),
    ]  # fmt: skip
    assert (await late.finish(await late.job())).made == 0


async def test_a_backfill_keeps_to_the_subscription_and_the_conditions(shop: Shop) -> None:
    """Both as they are when an event is reached."""
    one, _ = await shop.ended("delivered", "delivered")
    await shop.ended("delivered", name="thing.changed")
    new, _ = await add_webhook(shop.db, ring(), URL, conditions=(Condition("id", "record-0"),))
    late = Shop(shop.db, new)
    now = shop.db.clock.wall()
    draft = Draft((), None, now - HOUR, now, 5)
    chosen = await shop.db.read(jobs.choose, OWNER, new, draft)
    assert await shop.db.read(jobs.count, chosen) == (1, True)
    job_id = await late.job(names=("thing.made", "thing.changed"))
    await shop.db.write(run, "update webhooks set events = '[]' where id = $1", new)
    assert (await late.finish(job_id)).made == 0
    await shop.db.write(run, "update webhooks set events = $2 where id = $1", new, '["thing.made"]')
    assert (await late.finish(await late.job())).made == 1
    [row] = await shop.db.read(rows, "select event_id from deliveries where webhook_id = $1", new)
    assert row["event_id"] == one
    await shop.db.write(run, "update webhooks set conditions = 'x' where id = $1", new)
    assert await shop.db.read(jobs.count, chosen) == (0, True)


async def test_a_backfill_makes_a_delivery_of_a_damaged_event(shop: Shop) -> None:
    one, other = await shop.ended("delivered", "delivered")
    await shop.db.write(
        run, "update events set body = $2 where id = $1", other, b'{"data":{"id":"record-\xb1"}}'
    )
    new, _ = await add_webhook(shop.db, ring(), URL, conditions=(Condition("id", "record-0"),))
    late = Shop(shop.db, new)
    assert (await late.finish(await late.job())).made == 2
    made = await shop.db.read(rows, "select event_id from deliveries where webhook_id = $1", new)
    assert {row["event_id"] for row in made} == {one, other}


class Weighed(CountedTx):
    """A transaction that notes how many bytes of bodies each statement reads."""

    def __init__(self, tx: Any, weights: list[int]) -> None:
        super().__init__(tx, [])
        object.__setattr__(self, "_weights", weights)

    async def all(self, sql: str, *args: Any) -> Any:
        result = await super().all(sql, *args)
        if "body" in sql:
            self._weights.append(
                sum(len(row["body"] or b"") for row in result if "body" in row.keys())  # noqa: SIM118
            )
        return result


@pytest.mark.slow
@pytest.mark.parametrize("size", [200_000, 3_000_000])
async def test_a_backfill_reads_few_bytes_of_bodies_at_a_time(shop: Shop, size: int) -> None:
    count = 60 if size < 1_000_000 else 5
    await shop.db.write(events, count, "thing.made")
    body = b'{"data":{"id":1,"notes":"' + b"x" * size + b'"}}'
    digest = hashlib.sha256(body).hexdigest()
    await shop.db.write(run, "update events set body = $1, body_digest = $2", body, digest)
    await fanned(shop.db)
    new, _ = await add_webhook(shop.db, ring(), URL, conditions=(Condition("id", "1"),))
    late = Shop(shop.db, new)
    job_id = await late.job(rate=1000)
    weights: list[int] = []
    once, steps = max(job_selection.BODIES_BYTES, size + 100), 0
    while (job := await late.of(job_id)).state == "running":
        job = replace(job, paced_at=job.paced_at - SECOND)

        async def find(tx: Tx, job: Job = job) -> EventPage | None:
            looked = len(weights)
            page = await job_steps.find(cast("Tx", Weighed(tx, weights)), job)
            assert sum(weights[looked:]) <= job_selection.JUDGED_BYTES + once
            return page

        page = await shop.db.scan("duties", find)
        assert page is not None
        await shop.db.write(job_steps.advance, job, page)
        steps += 1
    assert job.made == count
    assert max(weights) <= once
    assert steps > 1


async def test_two_jobs_at_once_send_each_event_once(shop: Shop) -> None:
    ids = await shop.ended(*["dead"] * 40)
    both = [await shop.job("dead"), await shop.job("dead")]
    done = await asyncio.gather(*[shop.finish(one) for one in both])
    assert sum(job.made for job in done) == 40
    assert sorted(await shop.replayed()) == sorted(ids)


@pytest.mark.slow
async def test_two_runners_of_a_job_send_each_event_once(shop: Shop) -> None:
    ids = await shop.ended(*["dead"] * 40)
    job_id = await shop.job("dead", rate=7)
    await asyncio.gather(*[shop.finish(job_id) for _ in range(3)])
    assert await shop.replayed() == ids
    assert (await shop.of(job_id)).made == 40


async def test_a_cancelled_job_makes_nothing_more(shop: Shop) -> None:
    await shop.ended("dead", "dead")
    job_id = await shop.job("dead", rate=1)
    await shop.step(job_id)
    job = await shop.of(job_id)
    page = await shop.db.read(job_steps.find, job)
    assert await shop.db.write(jobs.cancel, job_id)
    assert not await shop.db.write(jobs.cancel, job_id)
    assert page is None or await shop.db.write(job_steps.advance, job, page) is None
    job = await shop.of(job_id)
    assert (job.state, job.made, job.finished_at is not None) == ("cancelled", 1, True)
    assert await shop.db.read(jobs.running) == []
    # Another job takes up the rest.
    assert (await shop.finish(await shop.job("dead"))).made == 1


DAMAGES = {
    "half a name": "names = '[\"cont'", "names that are no list": "names = '{}'",
    "names that are no texts": "names = '[1]'", "half an end": "ends = '[\"de'",
    "no ends": "ends = '[]'",
}  # fmt: skip


@pytest.mark.parametrize("what", DAMAGES)
async def test_a_damaged_job_ends_alone_with_its_reason(shop: Shop, what: str) -> None:
    ids = await shop.ended("dead", "dead")
    damaged = await shop.job("dead", names=("thing.made",))
    await shop.db.write(run, f"update jobs set {DAMAGES[what]}")
    other = await shop.job("dead")
    shop.db.observer = watch = Jobs()
    await Recovering(shop.db).run_once()
    assert await shop.replayed() == ids
    assert (await shop.of(other)).state == "done"
    job = await shop.of(damaged)
    assert (job.state, job.made, job.reason) == ("cancelled", 0, jobs.DAMAGED)
    assert job.finished_at is not None
    assert sorted(watch.ended) == [("recover", "cancelled"), ("recover", "done")]
    assert {j.id for j in await shop.db.read(jobs.listed, shop.webhook_id)} == {damaged, other}


@pytest.mark.slow
async def test_a_job_with_an_error_ends_alone(shop: Shop) -> None:
    ids = await shop.ended("dead", "dead")
    damaged = await shop.job("dead")
    # A text instead of a number; PostgreSQL has none, but its numbers have an end.
    await shop.db.write(
        run, "update jobs set /*sqlite place = 'x'*/ /*postgres made = 9223372036854775807*/"
    )
    other = await shop.job("dead")
    await Recovering(shop.db).run_once()
    assert await shop.replayed() == ids
    [row] = await shop.db.read(rows, "select state, reason from jobs where id = $1", damaged)
    assert (row["state"], row["reason"]) == ("cancelled", jobs.FAILED)
    assert (await shop.of(other)).state == "done"


async def test_a_job_that_finds_no_place_for_its_search_goes_on(shop: Shop) -> None:
    ids = await shop.ended("dead", "dead")
    job_id = await shop.job("dead")
    await shop.db.write(run, "update jobs set paced_at = paced_at - $1", SECOND)
    job = await shop.of(job_id)
    others = [
        asyncio.create_task(shop.db.scan(DUTIES, jobs.one, job_id))
        for _ in range(SCANS_EACH + SCANS_WAITING + 1)
    ]
    # Until each of them runs, waits or was refused.
    await asyncio.sleep(0)
    await Recovering(shop.db).step(job)
    results = await asyncio.gather(*others, return_exceptions=True)
    assert any(isinstance(result, Crowded) for result in results)
    assert not await shop.replayed()
    assert (await shop.of(job_id)).state == "running"
    assert (await shop.finish(job_id)).state == "done"
    assert await shop.replayed() == ids


class Jobs(Observer):
    """An observer that records the ends of jobs."""

    def __init__(self) -> None:
        self.ended: list[tuple[str, str]] = []

    def job_ended(self, kind: JobKind, state: JobState) -> None:
        self.ended.append((kind, state))


async def test_a_job_goes_on_when_the_wall_clock_was_set_back(shop: Shop) -> None:
    await shop.ended("dead", "dead")
    job_id = await shop.job("dead", rate=1)
    month = 30 * 24 * HOUR
    await shop.db.write(run, "update jobs set paced_at = paced_at + $1", month)
    await Recovering(shop.db).step(await shop.of(job_id))
    job = await shop.of(job_id)
    assert job.made == 1
    assert job.paced_at <= shop.db.clock.wall()
    assert job_steps.allowance(job, job.paced_at, 500) == 0, "the rate is a cap from then on"


async def test_the_rate_is_a_cap(shop: Shop) -> None:
    await shop.ended(*["dead"] * 30)
    job_id = await shop.job("dead", rate=10)
    job = await shop.of(job_id)
    start = job.paced_at
    for micros, allowed in ((0, 0), (99_999, 0), (100_000, 1), (SECOND, 10), (9 * SECOND, 10)):
        assert job_steps.allowance(job, start + micros, 500) == allowed
    # A clock that is set back by more than a second makes nobody wait for it.
    assert job_steps.allowance(job, start - SECOND, 500) == 0
    assert job_steps.allowance(job, start - HOUR, 500) == 10
    assert job_steps.allowance(job, start + SECOND, 3) == 3
    for made in (10, 20, 30):
        await shop.step(job_id)
        assert (await shop.of(job_id)).made == made
    assert (await shop.finish(job_id)).state == "done"


async def test_jobs_have_bounds_and_an_end(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [await shop.job("dead") for _ in range(jobs.MOST_RUNNING)]
    with pytest.raises(TooMany):
        await shop.job("dead")
    await shop.db.write(jobs.cancel, ids[0])
    monkeypatch.setattr(jobs, "KEPT_EACH", 0)
    ids.append(await shop.job("dead"))
    assert [job.id for job in await shop.db.read(jobs.listed, shop.webhook_id)] == sorted(
        ids[1:], reverse=True
    )
    assert await shop.db.write(jobs.purge, 100) == 0
    await shop.db.write(run, "update jobs set created_at = created_at - $1", jobs.LASTS + SECOND)
    assert await shop.db.write(jobs.purge, 100) == 0
    assert {job.state for job in await shop.db.read(jobs.listed, shop.webhook_id)} == {"expired"}
    await shop.db.write(run, "update jobs set finished_at = finished_at - $1", jobs.LASTS + SECOND)
    assert await shop.db.write(jobs.purge, 3) == 3
    assert await shop.db.write(jobs.purge, 100) == jobs.MOST_RUNNING - 3


async def test_the_start_is_found_in_a_long_feed(shop: Shop) -> None:
    await shop.db.write(
        run,
        "insert into events (id, seq, owner_id, name, record_id, record_version, occurred_at,"
        " body_digest) with recursive /*postgres n as (select * from"
        " generate_series(1, 20000) as g(n))*/ /*sqlite n(n) as (select 1 union all"
        " select n + 1 from n where n < 20000)*/ select 'e' || n, n, $1, 'thing.made', 'r', 1,"
        " $2 + cast(n as bigint) * 100000000, '' from n",
        OWNER, 0,
    )  # fmt: skip
    for wanted in (1, 900, 5_000, 13_456, 20_000):
        chosen = job_selection.Selection(
            OWNER, shop.webhook_id, (), None, wanted * 100_000_000, 2**60, 20_000
        )
        place = await shop.db.read(job_selection.start, chosen)
        # Before it by a day, which is 864 events here, and at most a little more.
        assert wanted - 864 - 2 * job_selection.NEAR <= place < max(wanted - 863, 1), wanted
