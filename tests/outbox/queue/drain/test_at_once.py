"""One statement does what settle, claim and fan-out do in parts, or leaves it to them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import asyncpg
import pytest

from outbox import database, events
from outbox.clock import SystemClock
from outbox.database.sql import translate
from outbox.database.transaction import Database, Tx
from outbox.ids import Ids
from outbox.queue.drain import at_once, cycle
from outbox.queue.drain.at_once import Turn
from outbox.queue.drain.fanout import fan_out
from outbox.queue.state import lanes
from outbox.queue.state.claimed_deliveries import Capacity, Claimed, Result
from outbox.queue.state.policy import DELIVERED
from outbox.queue.upkeep import parking
from outbox.sending.outcome import Outcome
from tests.support.chains import walked
from tests.support.databases import PostgresServer
from tests.support.drain import OWNER, add_webhook, make, make_many, ring, rows, run
from tests.support.work import Worked

URL = "http://127.0.0.1:9/"
SMALL = 64 * 1024
PASSES = """
insert into passes (delivery_id, webhook_id)
select id, webhook_id from deliveries where state = 'ready'
"""
NOTHING = Capacity("node", "none", 0, 0, 0, {}, 0)
STATES = """
select 'delivery ' || d.state || ' ' || d.tries || d.attempts || d.retry || coalesce(d.reason, '')
  || coalesce(d.last_outcome || d.last_status, '') || (d.claim is null) || (d.finished_at is null)
  || (d.seq - e.seq) || (d.record_id = e.record_id) || (d.next_at - min(d.next_at) over ())
  as state from deliveries d join events e on e.id = d.event_id where d.state <> 'delivered'
union all
select 'delivery ' || d.state || ' ' || d.tries || d.attempts || d.retry || coalesce(d.reason, '')
  || d.last_outcome || d.last_status || (d.claim is null) || (d.node_id is null) || d.rescues
  || (d.finished_at > d.created_at) from deliveries d where d.state = 'delivered'
union all
select 'lane ' || failing || (failing_from is null) || (due_at is null) || served || chain_place
  || (wait_until > 0) from lanes
union all
select 'webhook ' || failures || last_outcome || last_status || (last_success_at = last_attempt_at)
  || (failing_since is null) || circuit || (unreadable is null) from webhooks
union all
select 'event ' || seq from events
union all
select 'attempt ' || number || kind || outcome || status || total_us || place || state || url
  || request_headers || response_headers || encode(response_body, 'escape') || address || node_id
  || truncated || octet_length(body_digest) || octet_length(event_digest) from attempts
union all
select 'figure ' || result || sum(count) || sum(total_us) || sum(t0) || sum(t1) from figures
  group by result
union all
select 'wake' from wakes order by 1
"""


@pytest.fixture
async def url(postgres_server: PostgresServer) -> AsyncIterator[str]:
    url = await postgres_server.fresh()
    yield url
    await postgres_server.drop(url)


@pytest.fixture
async def db(url: str) -> AsyncIterator[Database]:
    db = await database.open(url, clock=SystemClock(), ids=Ids())
    yield db
    await db.close()


def capacity(claim: str, slots: int = 256) -> Capacity:
    return Capacity("node", claim, slots, 0, 0, {}, 1_000_000)


def success(delivery: Claimed) -> Result:
    """Return a result with everything that JSON and bytes can get wrong."""
    text = 'né "q" \\ \U0001f4e8 \n'
    outcome = Outcome(
        outcome="success", status=201, error=text, address="127.0.0.1", dns_us=1, connect_us=2,
        first_byte_us=3, total_us=6_000, response_headers=[("X", text)],
        response_body=b"\x00\xff" + text.encode(), truncated=True,
    )  # fmt: skip
    at = SystemClock().wall()
    return Result(delivery, DELIVERED, outcome, at, [("X", text)], URL + text, "node")


async def by_turns(db: Database, batch: list[Result], claim: str, hooks: list[str]) -> Turn:
    windows = dict.fromkeys(hooks, 3)
    return await db.write(at_once.turn, batch, capacity(claim), windows, True)


async def in_parts(db: Database, batch: list[Result], claim: str, hooks: list[str]) -> Turn:
    given = Capacity("node", claim, 256, 0, 0, dict.fromkeys(hooks, 3), 1_000_000)
    settlement, _, taken, _ = await db.write(cycle.settle_and_look, batch, given, False, False)
    fanned, _ = await db.write(cycle.fan_out_and_look, given)
    return Turn(settlement, fanned, [*(taken.claimed if taken else ()), *fanned.claimed])


async def story(url: str, turn: Any) -> list[Any]:
    """Run turns of new events and of results; return what they did, and the rows they left."""
    db = await database.open(url, clock=SystemClock(), ids=Ids())
    try:
        hooks = [(await add_webhook(db, ring(), f"{URL}{n}"))[0] for n in range(2)]
        await add_webhook(db, ring(), URL, "thing.sold")
        seen: list[Any] = []
        batch: list[Result] = []
        # New for a window of 3; more than it takes; its rest, which waited; and nothing.
        for number, new in enumerate((2, 5, 0, 0, 1)):
            await db.write(make_many, new)
            done = await turn(db, batch, f"claim-{number}", hooks)
            assert done.settlement.held == {result.delivery.id for result in batch}
            await db.write(run, "update deliveries set rescues = 1 where state <> 'delivered'")
            seen.append(sorted((event.seq, event.deliveries) for event in done.fanned.announced))
            seen.append((len(done.claimed), len(done.fanned.ready)))
            batch = [success(delivery) for delivery in done.claimed]
            seen += [
                (one.attempt.number, one.origin, one.event.record_id, one.event.body is not None)
                for one in sorted(done.claimed, key=lambda o: (o.event.record_id, o.webhook_id))
            ]
        seen += [row["state"] for row in await db.read(rows, STATES)]
    finally:
        await db.close()
    assert not (await walked(url, None)).faults
    return seen


@pytest.mark.slow
async def test_both_ways_leave_the_same_rows(postgres_server: PostgresServer) -> None:
    urls = [await postgres_server.fresh() for _ in range(2)]
    once, parts = await story(urls[0], by_turns), await story(urls[1], in_parts)
    for url in urls:
        await postgres_server.drop(url)
    assert once == parts
    assert sum(str(one).startswith("delivery delivered") for one in once) == 14


async def more(db: Database, hook: str, text: str, *args: Any) -> None:
    assert await db.write(run, text, hook, *args), text


LEFT = {
    "conditions": "update webhooks set conditions = '[]' where id = $1",
    "order": "update webhooks set ordered = true where id = $1",
    "numbers": "update webhooks set sequenced = true where id = $1",
    "a damaged list": "update webhooks set events = '[thing.made' where id = $1",
    "an unusual name": 'update webhooks set events = \'["thing.made", "Thing"]\' where id = $1',
    "a test event": "update events set webhook_id = $1",
    "a remainder": """insert into remainders (owner_id, seq, reached_at, reached, made, turned_at)
        select owner_id, 1, -1, '', 0, 0 from webhooks where id = $1""",
}
KEPT = {
    "a failing lane": "update lanes set failing = true, due_at = 1 where webhook_id = $1",
    "an open circuit": "update lanes set probe_at = 1, due_at = 1 where webhook_id = $1",
    "a rate": "update lanes set rate = 1000, due_at = 1 where webhook_id = $1",
    "a limit": "update lanes set concurrency = 1, due_at = 1 where webhook_id = $1",
    "a pause": "update lanes set wait_until = due_now() + 9e9, due_at = 1 where webhook_id = $1",
}


@pytest.mark.slow
@pytest.mark.parametrize("why", LEFT)
async def test_fan_out_is_left_to_its_parts(db: Database, why: str) -> None:
    hook, _ = await add_webhook(db, ring(), URL)
    await db.write(make, "r")
    await more(db, hook, LEFT[why])
    done = await db.write(at_once.turn, (), capacity("c"), {}, True)
    assert (done.fan_apart, done.fanned, done.claimed) == (True, None, [])
    assert not await db.read(rows, "select 1 as one from events where seq is not null")


@pytest.mark.parametrize("why", KEPT)
async def test_a_claim_is_left_to_its_parts(db: Database, why: str) -> None:
    hook, _ = await add_webhook(db, ring(), URL)
    await db.write(make, "r")
    await db.write(fan_out, NOTHING)
    await more(db, hook, KEPT[why])
    done = await db.write(at_once.turn, (), capacity("c"), {hook: 2}, True)
    assert (done.claim_apart, done.claimed) == (True, [])


async def test_no_claim_without_room_for_every_lane(db: Database) -> None:
    hooks = [(await add_webhook(db, ring(), f"{URL}{n}"))[0] for n in range(2)]
    await db.write(make_many, 2)
    await db.write(fan_out, NOTHING)
    windows = dict.fromkeys(hooks, 2)
    done = await db.write(at_once.turn, (), capacity("c", slots=3), windows, True)
    assert (done.claim_apart, done.claimed) == (True, [])
    done = await db.write(at_once.turn, (), capacity("c", slots=4), windows, True)
    assert (done.claim_apart, len(done.claimed)) == (False, 4)


async def by_turn(tx: Tx, claim: str) -> None:
    await at_once.turn(tx, (), capacity(claim), {}, True)


async def by_parts(tx: Tx, claim: str) -> None:
    await cycle.fan_out_and_look(tx, capacity(claim))


@pytest.mark.parametrize("way", [by_turn, by_parts])
async def test_what_waits_elsewhere_is_not_read_before_the_first_analyze(
    db: Database, way: Callable[[Tx, str], Awaitable[None]]
) -> None:
    drain = Worked(db.apart("drain"), [])
    await db.write(run, "alter table deliveries set (autovacuum_enabled = false)")
    await db.write(run, "analyze passes")
    await add_webhook(db, ring(), URL)
    paused, _ = await add_webhook(db, ring(), URL, "thing.sold")
    await db.write(parking.pause, paused)
    for number in range(300):
        await db.write(make, f"s{number}", "thing.sold")
        if number < 3:
            await drain.write(way, f"first-{number}")
    for number in range(4):
        await drain.write(way, f"between-{number}")
    assert await db.write(run, PASSES) == 300
    for held in ("wait_until", "probe_at"):
        hook, _ = await add_webhook(db, ring(), URL)
        await more(db, hook, f"update lanes set {held} = due_now() + 9e9 where webhook_id = $1")
    await db.write(make, "r")
    drain.units.clear()
    await drain.write(way, "after")
    assert drain.most() < 60


async def test_lanes_that_others_have_locked_hold_up_nothing(url: str, db: Database) -> None:
    hook, _ = await add_webhook(db, ring(), URL)
    await db.write(make, "r")
    first = await db.write(at_once.turn, (), capacity("c1"), {hook: 1}, True)
    results = [success(delivery) for delivery in first.claimed]
    await db.write(make_many, 2)
    other = await asyncpg.connect(url)
    try:
        async with other.transaction():
            await other.execute("select 1 from lanes where webhook_id = $1 for update", hook)
            done = await db.write(at_once.turn, results, capacity("c2"), {hook: 0}, True)
            assert (done.settlement, done.fanned) == (None, None)
            done = await db.write(at_once.turn, (), capacity("c3"), {hook: 0}, True)
            assert done.fanned is not None
            assert (done.fanned.noted, list(done.fanned.ready)) == (True, [hook])
        async with other.transaction():
            await other.execute(translate(lanes.NO_FAN_OUT, "postgres"))
            await db.write(make, "later")
            done = await db.write(at_once.turn, results, capacity("c4"), {hook: 0}, True)
            assert done.settlement is not None
            assert done.fanned is not None
            assert done.fanned.turned_away
    finally:
        await other.close()


async def test_a_lost_claim_changes_nothing(db: Database) -> None:
    await add_webhook(db, ring(), URL)
    await db.write(make_many, 2)
    done = await db.write(at_once.turn, (), capacity("c"), {}, True)
    [*_, last] = results = [success(delivery) for delivery in done.claimed]
    last.delivery.claim = "another"
    before = await db.read(rows, STATES)
    with pytest.raises(asyncpg.PostgresError, match="no longer claimed"):
        await db.write(at_once.turn, results, capacity("c2"), {}, True)
    assert await db.read(rows, STATES) == before


async def test_times_of_successes_are_kept_to_the_second(db: Database) -> None:
    hook, _ = await add_webhook(db, ring(), URL)
    await db.write(make_many, 3)
    done = await db.write(at_once.turn, (), capacity("c"), {hook: 3}, True)

    async def settled(tx: Tx, moment: int, batch: list[Result]) -> int:
        tx.now = moment
        await at_once.turn(tx, batch, capacity("c2"), None, False)
        [row] = await tx.all("select last_success_at as at from webhooks")
        return int(row["at"])

    moments = zip((5_000_000, 6_000_000, 6_000_001), done.claimed, strict=True)
    kept = [await db.write(settled, at, [success(one)]) for at, one in moments]
    assert kept == [5_000_000, 5_000_000, 6_000_001]


SCANS = """
select relname, pg_stat_get_xact_numscans(oid) as scans from pg_class
where relname in ('attempts', 'deliveries', 'events', 'figures', 'lanes', 'webhooks')
"""


async def test_a_plan_made_on_empty_tables_reads_no_table_whole(db: Database) -> None:
    """A session keeps its plans while the tables grow, until the server analyzes them."""
    drain = db.apart("drain")
    hook, _ = await add_webhook(db, ring(), URL)

    async def watched(tx: Tx, batch: list[Result], claim: str) -> tuple[Turn, dict[str, int]]:
        before = {row["relname"]: row["scans"] for row in await tx.all(SCANS)}
        done = await at_once.turn(tx, batch, capacity(claim), {hook: 1}, True)
        after = {row["relname"]: row["scans"] for row in await tx.all(SCANS)}
        return done, {name: after[name] - before[name] for name in after}

    batch: list[Result] = []
    for number in range(3):
        await db.write(make_many, 2)
        done, scans = await drain.write(watched, batch, f"c{number}")
        assert (len(done.claimed), set(scans.values())) == (1, {0}), scans
        batch = [success(delivery) for delivery in done.claimed]


async def test_a_webhook_gets_what_its_creation_did_not_see(url: str, db: Database) -> None:
    await db.write(make, "before")
    hook, _ = await add_webhook(db, ring(), URL)
    await db.write(make, "after")
    done = await db.write(at_once.turn, (), capacity("c"), {hook: 9}, True)
    assert [one.event.record_id for one in done.claimed] == ["after"]
    assert done.fanned is not None
    assert [event.deliveries for event in done.fanned.announced] == [0, 1]


async def test_large_bodies_are_loaded_while_there_is_memory(db: Database) -> None:
    hook, _ = await add_webhook(db, ring(), URL)

    async def large(tx: Tx, size: int) -> None:
        events.enqueue(
            tx, owner_id=OWNER, name="thing.made", record_id=str(size), record_version=1,
            data={"text": "x" * size},
        )  # fmt: skip

    for size in (2 * SMALL, 3 * SMALL):
        await db.write(large, size)
    await db.write(fan_out, NOTHING)
    done = await db.write(at_once.turn, (), capacity("c"), {hook: 9}, True)
    assert (len(done.large), done.claimed) == (2, [])
    room = Capacity("node", "c", 0, 0, 0, {}, 3 * SMALL)
    loaded = await db.write(at_once.load_large, done.large, room, [hook])
    assert [one.event.record_id for one in loaded] == [str(2 * SMALL)]
    states = await db.read(rows, "select state from deliveries order by state")
    assert [row["state"] for row in states] == ["in_flight", "ready"]
    assert not await db.read(rows, "select 1 as one from lanes where due_at is null")
    await more(db, hook, "delete from lanes where webhook_id = $1")
    room = Capacity("node", "c", 0, 0, 0, {}, 0)
    assert await db.write(at_once.load_large, done.large, room, [hook]) == []
    states = await db.read(rows, "select state from deliveries order by state")
    assert [row["state"] for row in states] == ["cancelled", "cancelled"]
