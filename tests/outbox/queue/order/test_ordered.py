"""Ordered webhooks: one head for each record, at each commit, whatever ends it."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from outbox.database import sql
from outbox.database.fair_limit import Crowded
from outbox.database.transaction import DUTIES, Database, Tx
from outbox.database.unit_limits import SCANS_EACH, SCANS_WAITING
from outbox.queue.drain.fanout import fan_out
from outbox.queue.drain.settle import settle
from outbox.queue.order import ordering
from outbox.queue.state import lanes
from outbox.queue.upkeep import parking
from tests.support.drain import OWNER, add_webhook, make, ring, rows
from tests.support.lines import NONE, URL, result, taken, written
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


@pytest.mark.slow
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
