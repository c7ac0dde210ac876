"""Ordered webhooks: one head for each record, at each commit, whatever ends it."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any, cast

import pytest

from outbox.database import sql
from outbox.database.fair_limit import Crowded
from outbox.database.places import SCANS_EACH, SCANS_WAITING
from outbox.database.transaction import DUTIES, Database, Tx
from outbox.queue.drain.claim import claim
from outbox.queue.drain.fanout import fan_out
from outbox.queue.drain.rescue import rescue
from outbox.queue.drain.settle import settle
from outbox.queue.order import ordering
from outbox.queue.replays import steering
from outbox.queue.replays.replay import one as replay
from outbox.queue.state import head_deliveries, lanes
from outbox.queue.state.deliveries import Capacity
from outbox.queue.state.policy import MOST_RESCUES
from outbox.queue.upkeep import owner_moves, parking, personal_data, retention
from tests.support.drain import OWNER, add_webhook, make, ring, rows
from tests.support.lines import NONE, URL, WAITS, fanned, result, settled, taken, written
from tests.support.work import worked

POSTGRES = pytest.mark.parametrize("db_url", ["postgres"], indirect=True)
STATES = """
select record_id, state from deliveries where webhook_id = $1 and origin = 'event'
order by record_id, seq
"""
LONG = """
with recursive n (i) as (select 1 union all select i + 1 from n where i < 3000000)
select max(i) as most from n
"""
# Without the index and the marks of the engine: what must never be.
HEADLESS = """
select d.id from deliveries d where d.state = 'held' and not exists (
  select 1 from deliveries x where x.webhook_id = d.webhook_id and x.record_id = d.record_id
    and x.origin = 'event' and x.state in ('ready', 'in_flight') and x.seq < d.seq)
"""


async def ordered(db: Database, *records: str) -> str:
    """Return an ordered webhook with these events."""
    webhook_id, _ = await add_webhook(db, ring(), URL, ordered=True)
    await written(db, *records)
    return webhook_id


async def states(db: Database, webhook_id: str) -> dict[str, list[str]]:
    """Return the states of the deliveries of each record, in the order of their events."""
    by_record: dict[str, list[str]] = {}
    for row in await db.read(rows, STATES, webhook_id):
        by_record.setdefault(row["record_id"], []).append(row["state"])
    assert await db.read(rows, HEADLESS) == []
    return by_record


WAITS_FOR_FAN_OUT = """
select 1 from pg_locks where locktype = 'advisory' and not granted
  and database = (select oid from pg_database where datname = current_database())
"""


async def execute(tx: Tx, sql: str, *args: Any) -> int:
    return await tx.run(sql, *args)


async def test_of_each_record_only_the_first_is_ready(db: Database) -> None:
    webhook_id = await ordered(db, "a", "b", "a", "a", "c")
    await written(db, "a", "b")
    assert await states(db, webhook_id) == {
        "a": ["ready", "held", "held", "held"], "b": ["ready", "held"], "c": ["ready"],
    }  # fmt: skip
    assert len(await taken(db, webhook_id)) == 3
    assert await taken(db, webhook_id, "claim-2") == []


async def test_other_webhooks_have_no_lines(db: Database) -> None:
    webhook_id, _ = await add_webhook(db, ring(), URL)
    await written(db, "a", "a")
    assert await states(db, webhook_id) == {"a": ["ready", "ready"]}
    assert len(await taken(db, webhook_id)) == 2


@pytest.mark.parametrize("end", ["delivered", "exhausted", "gone", "dead"])
async def test_the_next_is_ready_when_a_head_ends(db: Database, end: str) -> None:
    webhook_id = await ordered(db, "a", "a", "b")
    await settled(db, await taken(db, webhook_id), end)
    assert await states(db, webhook_id) == {"a": [end, "ready"], "b": [end]}
    if end != "gone":
        await settled(db, await taken(db, webhook_id, "claim-2"), "delivered")
        assert await states(db, webhook_id) == {"a": [end, "delivered"], "b": [end]}


async def test_followers_wait_while_a_head_waits_for_its_next_attempt(db: Database) -> None:
    webhook_id = await ordered(db, "a", "a", "b", "b")
    [oldest] = await db.read(rows, "select id from deliveries order by seq limit 1")
    first = await taken(db, webhook_id)
    head = [d for d in first if d.id == oldest["id"]]
    await settled(db, head, "ready", 3_600_000_000)
    await settled(db, [d for d in first if d not in head], "delivered")
    assert await states(db, webhook_id) == {"a": ["ready", "held"], "b": ["delivered", "ready"]}
    [other] = await taken(db, webhook_id, "claim-2")
    assert other.id not in {d.id for d in first}
    await written(db, "a")
    assert (await states(db, webhook_id))["a"] == ["ready", "held", "held"]


async def test_a_rescued_head_stays_the_head(db: Database) -> None:
    webhook_id = await ordered(db, "a", "a")
    for number in range(MOST_RESCUES - 1):
        [head] = await taken(db, webhook_id, f"claim-{number}")
        assert len(await db.write(rescue, "node", WAITS)) == 1
        assert await states(db, webhook_id) == {"a": ["ready", "held"]}
        await db.write(execute, "update deliveries set next_at = 0 where state = 'ready'")
        await db.write(execute, "update lanes set due_at = 0")
    [head] = await taken(db, webhook_id, "last")
    [gone] = await db.write(rescue, "node", WAITS)
    assert gone.state == "dead"
    assert await states(db, webhook_id) == {"a": ["dead", "ready"]}
    [following] = await taken(db, webhook_id, "after")
    assert following.id != head.id


async def test_a_head_whose_claim_a_move_takes_stays_the_head(db: Database) -> None:
    webhook_id = await ordered(db, "a", "a")
    [head] = await taken(db, webhook_id, "claim")
    await db.write(owner_moves.take_claims, OWNER)
    assert await states(db, webhook_id) == {"a": ["ready", "held"]}
    await db.write(execute, "update lanes set due_at = 0")
    [again] = await taken(db, webhook_id, "again")
    assert again.id == head.id


async def test_replays_and_tests_stand_outside(db: Database) -> None:
    webhook_id = await ordered(db, "a", "a")
    [head] = await taken(db, webhook_id)
    await db.write(replay, head.id, OWNER)
    [again] = await taken(db, webhook_id, "claim-2")
    assert (again.origin, again.event_id) == ("replay", head.event_id)
    await settled(db, [again], "delivered")
    assert await states(db, webhook_id) == {"a": ["in_flight", "held"]}


async def test_retention_at_an_inactive_webhook_ends_heads(db: Database) -> None:
    webhook_id = await ordered(db, "a", "a", "a")
    await db.write(parking.pause, webhook_id)
    ids = [r["id"] for r in await db.read(rows, "select id from deliveries order by seq")]
    assert (await db.write(retention.expire_parked, ids[:1], db.clock))[0] == 1
    assert await states(db, webhook_id) == {"a": ["cancelled", "ready", "held"]}
    await db.write(retention.expire_parked, ids, db.clock)
    assert await states(db, webhook_id) == {"a": ["cancelled"] * 3}


async def test_the_next_is_ready_when_an_owner_cancels_a_head(db: Database) -> None:
    webhook_id = await ordered(db, "a", "a", "a", "b")
    head, second, third, _ = await db.read(rows, "select id from deliveries order by seq")
    assert await db.write(steering.cancel, [second["id"]]) == [webhook_id]
    assert await states(db, webhook_id) == {"a": ["ready", "cancelled", "held"], "b": ["ready"]}
    await db.write(steering.cancel, [head["id"]])
    assert (await states(db, webhook_id))["a"] == ["cancelled", "cancelled", "ready"]
    assert third["id"] in {delivery.id for delivery in await taken(db, webhook_id)}


async def test_the_next_is_ready_when_the_event_of_a_head_is_erased(db: Database) -> None:
    webhook_id = await ordered(db, "a", "a", "b")
    [head, *_] = await db.read(rows, "select id, event_id from deliveries order by seq")
    await db.write(personal_data.erase_bodies, [head["event_id"]])
    await db.write(personal_data.cancel, [head["id"]], {webhook_id})
    assert await states(db, webhook_id) == {"a": ["cancelled", "ready"], "b": ["ready"]}
    assert len(await taken(db, webhook_id)) == 2


ENDS = re.compile(r"update deliveries\s+set (?:\S+ = [^,]+,\s*)*state =")
TESTED = {
    "settle", "rescue", "retention", "steering", "personal_data", "keep_newest", "record_lines",
    # All that waits at a webhook ends there, heads last.
    "parking",
    # These only claim or take claims back, or move deliveries into lines and out of them.
    "claim", "probes", "loading", "queue_transfer", "head_deliveries", "ordering", "owner_moves",
}  # fmt: skip


def test_whoever_may_end_a_head_is_tested_here() -> None:
    """A new statement that changes states must promote the followers of the heads that it ends."""
    modules = {
        path.stem for path in Path(head_deliveries.__file__).parents[1].rglob("*.py")
        if ENDS.search(path.read_text())
    }  # fmt: skip
    assert modules == TESTED


@pytest.mark.parametrize("choice", ["none", "newest", "all"])
async def test_each_choice_on_activation(db: Database, choice: Any) -> None:
    webhook_id = await ordered(db, "a", "b", "a", "a", "b")
    await db.write(parking.pause, webhook_id)
    await written(db, "a", "c")
    assert await db.read(parking.count, webhook_id, 100) == 7
    assert await parking.activate(db, webhook_id, choice)
    cancelled = "cancelled"
    assert await states(db, webhook_id) == {
        "none": {"a": [cancelled] * 4, "b": [cancelled] * 2, "c": [cancelled]},
        "newest": {"a": [*[cancelled] * 3, "ready"], "b": [cancelled, "ready"], "c": ["ready"]},
        "all": {"a": ["ready", "held", "held", "held"], "b": ["ready", "held"], "c": ["ready"]},
    }[choice]  # fmt: skip
    due = (await db.read(rows, "select due_at from lanes"))[0]["due_at"]
    assert (due is None) == (choice == "none")


async def test_a_removal_that_stops_half_way_leaves_each_line_its_head(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook_id = await ordered(db, *["a"] * 700)
    await db.write(parking.pause, webhook_id)

    class Died(Exception):
        """The process ends here."""

    writes = 0
    write = db.write

    async def dying(unit: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal writes
        writes += 1
        if writes == 2:
            raise Died
        return await write(unit, *args, **kwargs)

    monkeypatch.setattr(db, "write", dying)
    with pytest.raises(Died):
        await parking.activate(db, webhook_id, "none")
    monkeypatch.undo()
    current = await states(db, webhook_id)
    assert (current["a"].count("cancelled"), current["a"].count("ready")) == (500, 1)
    assert await parking.activate(db, webhook_id, "all")
    assert (await states(db, webhook_id))["a"].count("held") == 199


async def test_a_backlog_joins_lines_when_the_order_is_turned_on(db: Database) -> None:
    webhook_id, _ = await add_webhook(db, ring(), URL)
    await written(db, "a", "b", "a", "a", "b", "c")
    assert await ordering.turn(db, webhook_id, True)
    await written(db, "c", "d")
    assert await states(db, webhook_id) == {
        "a": ["ready", "held", "held"], "b": ["ready", "held"], "c": ["ready", "held"],
        "d": ["ready"],
    }  # fmt: skip
    assert len(await taken(db, webhook_id)) == 4


async def test_requests_under_way_end_before_the_order_begins(db: Database) -> None:
    webhook_id, _ = await add_webhook(db, ring(), URL)
    await written(db, "a", "a", "a")
    capacity = Capacity("node", "claim-1", 2, 2, 2, {webhook_id: 32}, 1_000_000)
    first, second = (await db.write(claim, capacity, {})).claimed
    assert not await ordering.turn(db, webhook_id, True)
    await db.write(make, "a")
    await fanned(db)
    assert await taken(db, webhook_id, "claim-2") == [], "the lane waits"
    assert await ordering.any_turning(db)
    await settled(db, [second], "delivered")
    await settled(db, [first], "ready", 0)
    await ordering.finish_all(db)
    assert not await ordering.any_turning(db)
    assert await states(db, webhook_id) == {"a": ["ready", "delivered", "held", "held"]}
    assert [d.id for d in await taken(db, webhook_id, "claim-3")] == [first.id]


async def test_what_waits_leaves_its_lines_when_the_order_is_turned_off(db: Database) -> None:
    webhook_id = await ordered(db, "a", "a", "a", "b", "b")
    [head, *_] = await taken(db, webhook_id)
    assert await ordering.turn(db, webhook_id, False)
    current = await states(db, webhook_id)
    assert "held" not in current["a"] + current["b"]
    assert (
        await db.read(rows, "select id from deliveries where ordered and finished_at is null") == []
    )
    assert len(await taken(db, webhook_id, "claim-2")) == 3
    await settled(db, [head], "delivered")
    assert await ordering.turn(db, webhook_id, True) is False


@pytest.mark.parametrize(("holder", "refused"), [(OWNER, False), (DUTIES, True)])
async def test_an_owner_turns_order_among_his_own_searches(
    db: Database, holder: str, refused: bool
) -> None:
    """With all places for the engine's searches taken; the control searches as the engine."""
    webhook_id = await ordered(db, "a", "a")
    await ordering.turn(db, webhook_id, False)
    await db.write(ordering.begin, webhook_id, True)
    duties = [
        asyncio.create_task(db.scan(DUTIES, rows, LONG)) for _ in range(SCANS_EACH + SCANS_WAITING)
    ]
    # Until each of them runs or waits.
    await asyncio.sleep(0)
    turned = asyncio.create_task(ordering.finish(db, webhook_id, holder))
    await asyncio.wait([turned])
    for duty in duties:
        duty.cancel()
    await asyncio.wait(duties)
    assert isinstance(turned.exception(), Crowded) is refused


@pytest.mark.parametrize("on", [True, False])
async def test_no_write_of_a_turn_passes_what_waits_outside_the_lines(
    db_url: str, on: bool
) -> None:
    """With 400,000 waiting replays each batch held up all other writes for 1.7 s."""
    async with worked(db_url) as counting:
        db = cast("Database", counting)
        webhook_id, _ = await add_webhook(db, ring(), URL, ordered=not on)
        await written(db, *"abcab" * 6)
        [first] = await db.read(
            rows, "select id from deliveries where state = 'ready' order by next_at limit 1"
        )
        most = []
        for replays in (20, 4_000):
            await db.write(replayed, first["id"], replays)
            counting.units.clear()
            assert await ordering.turn(db, webhook_id, on)
            names = sorted(counting.units, key=lambda u: -u[1])[:3]
            most.append(counting.most())
            assert (await states(db, webhook_id))["c"][0] == "ready"
            await ordering.turn(db, webhook_id, not on)
        assert most[1] <= most[0] * 1.5 + 100, (most, names)


async def test_a_turn_sees_that_the_order_was_turned_twice_meanwhile(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has joined before leaves again, behind the place of the first walk."""
    monkeypatch.setattr(ordering, "PAGE", 4)
    monkeypatch.setattr(ordering, "WAITING", ordering.WAITING.replace("limit 2000", "limit 4"))
    webhook_id, _ = await add_webhook(db, ring(), URL)
    await written(db, *"abcab" * 3)
    scan = db.scan
    pages = 0

    async def interrupted(*args: Any) -> Any:
        nonlocal pages
        pages += 1
        if pages == 4:
            assert await ordering.turn(db, webhook_id, False)
            assert await db.write(ordering._change, webhook_id, True)
        return await scan(*args)

    monkeypatch.setattr(db, "scan", interrupted)
    assert await ordering.turn(db, webhook_id, True)
    current = await states(db, webhook_id)
    assert current == {
        "a": ["ready", *["held"] * 5], "b": ["ready", *["held"] * 5], "c": ["ready", *["held"] * 2]
    }  # fmt: skip


async def replayed(tx: Tx, delivery_id: str, count: int) -> None:
    """Make this many replays of a delivery that are due before all others."""
    row = await tx.one("select * from deliveries where id = $1", delivery_id)
    assert row is not None
    await sql.insert(
        tx, "deliveries",
        ("id", "owner_id", "event_id", "webhook_id", "origin", "state", "retry", "next_at", "tries",
         "attempts", "record_id", "seq", "created_at"),
        [
            (tx.new_id(), OWNER, row["event_id"], row["webhook_id"], "replay", "ready", False, n,
             0, 0, row["record_id"], row["seq"], 1)
            for n in range(count)
        ],
    )  # fmt: skip


@pytest.mark.parametrize("on", [True, False])
async def test_the_duty_continues_a_turn_whose_process_died(db: Database, on: bool) -> None:
    webhook_id, _ = await add_webhook(db, ring(), URL, ordered=not on)
    await written(db, "a", "a", "b")
    assert await db.write(ordering.begin, webhook_id, on)
    assert await ordering.any_turning(db)
    await written(db, "b")
    await ordering.finish_all(db)
    assert not await ordering.any_turning(db)
    following = "held" if on else "ready"
    assert await states(db, webhook_id) == {"a": ["ready", following], "b": ["ready", following]}
    assert len(await taken(db, webhook_id)) == (2 if on else 4)


async def test_an_activation_does_not_open_a_lane_that_is_being_turned(db: Database) -> None:
    webhook_id, _ = await add_webhook(db, ring(), URL)
    await written(db, "a", "a")
    await db.write(parking.pause, webhook_id)
    assert await db.write(ordering.begin, webhook_id, True)
    assert await parking.activate(db, webhook_id, "all")
    assert await taken(db, webhook_id) == []
    await ordering.finish_all(db)
    assert len(await taken(db, webhook_id)) == 1


class Ended(Exception):
    """The process has ended."""


@pytest.mark.parametrize("on", [True, False])
async def test_a_process_that_ends_while_order_is_turned_leaves_no_line_without_a_head(
    db: Database, monkeypatch: pytest.MonkeyPatch, on: bool
) -> None:
    """Whichever of its commits is the last, the duty of the next process continues at once."""
    for name in ("LEAVE", "LEAVE_AS_HEAD"):
        few = getattr(ordering, name).replace(f"limit {ordering.BATCH}", "limit 3")
        monkeypatch.setattr(ordering, name, few)
    monkeypatch.setattr(ordering, "BATCH", 3)
    write = db.write
    commits = ends = 0

    async def last_commits(*args: Any) -> Any:
        nonlocal commits
        result = await write(*args)
        commits -= 1
        if commits <= 0:
            raise Ended
        return result

    while True:
        ends += 1
        webhook_id, _ = await add_webhook(db, ring(), URL, ordered=not on)
        await written(db, *"abcd" * 3)
        commits = ends
        monkeypatch.setattr(db, "write", last_commits)
        try:
            await ordering.turn(db, webhook_id, on)
        except Ended:
            ended = True
        else:
            ended = False
        monkeypatch.setattr(db, "write", write)
        assert await db.read(rows, HEADLESS) == [] or await ordering.any_turning(db), ends
        # Events that come meanwhile, and what the duty does next.
        await written(db, *"abe")
        await ordering.finish_all(db)
        current = await states(db, webhook_id)
        assert {state[0] for state in current.values()} == {"ready"}, ends
        assert not await ordering.any_turning(db)
        assert len(await taken(db, webhook_id)) == (5 if on else 15)
        if not ended:
            break
        await parking.remove(db, webhook_id)
    assert ends > 4


async def test_a_paused_webhook_stays_paused_when_it_is_turned(db: Database) -> None:
    webhook_id, _ = await add_webhook(db, ring(), URL)
    await db.write(parking.pause, webhook_id)
    await written(db, "a", "a")
    assert await ordering.turn(db, webhook_id, True)
    assert await taken(db, webhook_id) == []
    assert await states(db, webhook_id) == {"a": ["ready", "held"]}


async def test_a_line_without_a_head_is_repaired(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordering, "HELD", ordering.HELD.replace("limit 2000", "limit 3"))
    monkeypatch.setattr(ordering, "PAGE", 3)
    webhook_id = await ordered(db, *"abcde" * 3)
    sql = "update deliveries set state = 'cancelled', finished_at = 1 where state = 'ready'"
    assert await db.write(execute, f"{sql} and record_id <> 'b'") == 4
    assert await ordering.heal(db) == 4
    assert await ordering.heal(db) == 0
    current = await states(db, webhook_id)
    assert current.pop("b") == ["ready", "held", "held"]
    assert list(current.values()) == [["cancelled", "ready", "held"]] * 4
    assert len(await taken(db, webhook_id)) == 5


@POSTGRES
async def test_a_settle_and_a_fan_out_at_once_leave_no_line_without_a_head(db: Database) -> None:
    """Fan-out sees a head that ends before fan-out commits; the settle does not see the new row."""
    webhook_id = await ordered(db, "a")
    [head] = await taken(db, webhook_id)
    await db.write(make, "a")
    locked, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(tx: Tx) -> None:
        await settle(tx, [result(head, "delivered")])
        locked.set()
        await go_on.wait()

    settling = asyncio.create_task(db.write(slowly))
    await locked.wait()
    assert (await db.write(fan_out, NONE)).noted
    go_on.set()
    await settling
    deliveries = await db.read(rows, STATES, webhook_id)
    assert [row["state"] for row in deliveries] == ["delivered", "held"]
    assert not await db.write(lanes.wake_noted)
    assert await states(db, webhook_id) == {"a": ["delivered", "ready"]}
    assert await db.read(rows, "select * from wakes") == []
    assert len(await taken(db, webhook_id, "claim-2")) == 1


@POSTGRES
async def test_a_fan_out_that_has_not_seen_the_option_commits_before_it_holds(db: Database) -> None:
    """The lane was locked, so fan-out only notes it: the lane's lock does not part the two."""
    webhook_id, _ = await add_webhook(db, ring(), URL)
    await written(db, "a")
    await db.write(make, "a")
    locked, free, fanned_out, commit = (asyncio.Event() for _ in range(4))

    async def stranger(tx: Tx) -> None:
        await lanes.lock(tx, [webhook_id])
        locked.set()
        await free.wait()

    async def slowly(tx: Tx) -> None:
        assert (await fan_out(tx, NONE)).noted
        fanned_out.set()
        await commit.wait()

    holding = asyncio.create_task(db.write(stranger))
    await locked.wait()
    fanning = asyncio.create_task(db.write(slowly))
    await fanned_out.wait()
    free.set()
    await holding
    turning = asyncio.create_task(ordering.turn(db, webhook_id, True))
    async with asyncio.timeout(30):
        while not turning.done() and not await db.read(rows, WAITS_FOR_FAN_OUT):
            await asyncio.sleep(0)
    commit.set()
    await fanning
    assert await turning
    assert not await db.write(lanes.wake_noted)
    assert await states(db, webhook_id) == {"a": ["ready", "held"]}


STATEMENTS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "promote": (head_deliveries.PROMOTE, ('["d"]',)),
    "waiting": (ordering.WAITING, ("w", True, 1, "d")),
    "join": (ordering.JOIN, ('["d"]',)),
    "under way": (ordering.UNDER_WAY, ("w",)),
    "leave": (ordering.LEAVE, ("w",)),
    "leave as head": (ordering.LEAVE_AS_HEAD, ("w",)),
    "turning": (ordering.UNFINISHED, ()),
    "held": (ordering.HELD, ("w", "", 0)),
    "headless": (ordering.HEADLESS, ('["d"]',)),
}


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("name", STATEMENTS)
async def test_no_statement_walks_a_table_on_sqlite(db: Database, name: str) -> None:
    statement, arguments = STATEMENTS[name]
    plan = [
        str(row["detail"])
        for row in await db.read(rows, f"explain query plan {statement}", *arguments)
    ]
    walked = [
        step for step in plan
        if step.startswith("SCAN") and "VIRTUAL" not in step and "CONSTANT" not in step
        and not any(i in step for i in ("deliveries_claimed", "lanes_turning", "deliveries_held"))
    ]  # fmt: skip
    assert walked == [], plan
