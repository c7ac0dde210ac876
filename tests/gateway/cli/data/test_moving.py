"""A queue continues in another database: who gets what, claims, places and clocks."""

from __future__ import annotations

import io
import random
from pathlib import Path

import asyncpg
import pytest

from gateway.cli.data.progress_bar import Progress
from gateway.cli.data.target_filling import departing, fill, must_be_known, own_tables
from outbox import database
from outbox.clock import SystemClock
from outbox.database import transfer_ends
from outbox.database.transaction import Database, Tx
from outbox.database.transfer import Place
from outbox.ids import Ids
from outbox.queue.drain.fanout import fan_out
from outbox.queue.state import creation_snapshots, notices
from outbox.queue.state.claimed_deliveries import Capacity
from outbox.queue.state.creation_snapshots import forget_since
from outbox.queue.upkeep import erasure_requests, parking
from outbox.queue.upkeep.erasure import Erasure
from outbox.queue.upkeep.queue_transfer import pause_all
from outbox.queue.upkeep.retention import purge_deliveries
from outbox.worker import live_nodes
from tests.support.chains import delivered, walked
from tests.support.databases import SOURCES, PostgresServer, SqliteFiles
from tests.support.drain import OWNER, rows
from tests.support.rows import add_waiting, add_webhooks, webhook_id

NONE = Capacity("node", "claim-0", 0, 0, 0, {}, 0)
OWNERS = ("a" * 24, "b" * 24)
CLOCK = SystemClock()
EVENT = """
insert into events (id, owner_id, name, record_id, record_version, occurred_at, body, body_digest)
values ($1, $2, 'contact.created', 'record', 1, 1, $3, '')
"""
WEBHOOK = """
insert into webhooks (id, owner_id, version, url, events, state, ordered, secret, since_pos,
  since_snapshot, created_at, updated_at)
values ($1, $2, 1, 'https://example.com/', '["contact.created"]', 'active', false, $3, $4, $5, 1, 1)
"""
LANE = "insert into lanes (webhook_id, owner_id, active, failing) values ($1, $2, true, false)"
PAIRS = "select event_id, webhook_id from deliveries"


def place(url: str) -> Place:
    return Place(url, CLOCK, Ids())


async def move(source_url: str, target_url: str) -> None:
    """Move everything, as the commands do."""
    source, target = place(source_url), place(target_url)
    async with transfer_ends.snapshot(source, own_tables(source.engine)) as found:
        upto = must_be_known(found.migrations, "the source")
        async with transfer_ends.filling(target, SOURCES, unowned=None) as new:
            progress = Progress("move", io.StringIO(), CLOCK)
            await fill(new, found.tables, upto, departing(found), lambda *_: None, progress)
            await new.commit()


async def opened(url: str) -> Database:
    return await database.open(url, clock=CLOCK, ids=Ids(), serving=True)


async def fan_out_all(tx: Tx) -> set[tuple[str, str]]:
    while (await fan_out(tx, NONE)).more:
        pass
    return {(row["event_id"], row["webhook_id"]) for row in await tx.all(PAIRS)}


async def history(url: str, dice: random.Random) -> set[tuple[str, str]]:
    """Write events and webhooks in overlapping transactions; return which pairs belong together.

    Nothing is fanned out. On SQLite there is one transaction after the other.
    """
    db = await opened(url)
    try:
        if db.engine == "sqlite":
            for number in range(30):
                await db.write(_write_one, number, dice.choice(OWNERS), dice.random() < 0.3)
        else:
            await _overlapping(url, dice)
        return await db.read(_wanted)
    finally:
        await db.close()


async def _write_one(tx: Tx, number: int, owner: str, webhook: bool) -> None:
    if not webhook:
        await tx.run(EVENT, f"event-{number}", owner, b"")
        return
    row = await tx.one("select coalesce(max(pos), 0) as pos from events")
    assert row is not None
    await tx.run(WEBHOOK, f"hook-{number}", owner, b"x", row["pos"], None)
    await tx.run(LANE, f"hook-{number}", owner)


async def _overlapping(url: str, dice: random.Random) -> None:
    connections = [await asyncpg.connect(url) for _ in range(4)]
    is_open = [False] * len(connections)
    makes_webhooks = list(is_open)
    event = EVENT.replace("'record'", "$4")
    for number in range(60):
        at = dice.randrange(len(connections))
        connection = connections[at]
        owner = dice.choice(OWNERS)
        if is_open[at] and dice.random() < 0.5:
            await connection.execute("commit")
            is_open[at] = False
            continue
        if not is_open[at]:
            await connection.execute("begin")
            is_open[at] = True
            makes_webhooks[at] = dice.random() < 0.4
        if makes_webhooks[at]:
            snapshot = await connection.fetchval("select cast(pg_current_snapshot() as text)")
            await connection.execute(WEBHOOK, f"hook-{number}", owner, b"x", 0, snapshot)
            await connection.execute(LANE, f"hook-{number}", owner)
        else:
            await connection.execute(event, f"event-{number}", owner, b"", f"record-{at}")
    for at, connection in enumerate(connections):
        if is_open[at]:
            await connection.execute("commit")
        await connection.close()


async def _wanted(tx: Tx) -> set[tuple[str, str]]:
    """Which webhook wants which event, by the meaning of the columns."""
    xid = "0" if tx.engine == "sqlite" else "cast(xid as text)"
    found = await tx.all(f"select id, owner_id, pos, {xid} as xid from events where seq is null")
    hooks = await tx.all("select id, owner_id, since_pos, since_snapshot from webhooks")
    pairs = set()
    for hook in hooks:
        since = creation_snapshots.parse(hook["since_snapshot"])
        for event in found:
            older = event["pos"] <= hook["since_pos"] if tx.engine == "sqlite" else False
            if since is not None:
                older = since.sees(int(event["xid"]))
            if event["owner_id"] == hook["owner_id"] and not older:
                pairs.add((event["id"], hook["id"]))
    return pairs


@pytest.mark.parametrize("seed", range(4))
async def test_a_webhook_gets_the_same_events_in_the_other_database(
    db_url: str, target: str, seed: int
) -> None:
    wanted = await history(db_url, random.Random(seed))
    assert wanted
    db = await opened(db_url)
    before = await db.read(_by_record)
    await db.close()
    await move(db_url, target)
    db = await opened(target)
    try:
        # Before and after webhooks forget when they were made, and for what comes next.
        assert await db.read(_by_record) == before
        await db.write(forget_since)
        assert await db.write(fan_out_all) == wanted
        await db.write(forget_since)
        hooks = {row["id"] for row in await db.read(_rows, "select id from webhooks")}
        for owner in OWNERS:
            await db.write(_write_one, int(owner[0], 16) * 100, owner, False)
        later = await db.write(fan_out_all) - wanted
        assert {hook for _, hook in later} == hooks
    finally:
        await db.close()


async def _by_record(tx: Tx) -> dict[str, list[str]]:
    """Return the order of the events of each record."""
    found: dict[str, list[str]] = {}
    for row in await tx.all("select id, record_id from events order by pos"):
        found.setdefault(row["record_id"], []).append(row["id"])
    return found


async def _rows(tx: Tx, sql: str) -> list[dict[str, object]]:
    return [dict(row) for row in await tx.all(sql)]


async def _run(tx: Tx, sql: str) -> None:
    await tx.run(sql)


async def test_claims_end_lanes_wake_and_places_go_on_after_purged_events(
    db_url: str, target: str
) -> None:
    db = await opened(db_url)
    await db.write(add_webhooks, 1, 3)
    await db.write(add_waiting, 1, 5, 0)
    await db.write(live_nodes.join, "node-of-before")
    await db.write(
        _run,
        "update deliveries set state = 'in_flight', claim = 'c', node_id = 'node-of-before',"
        " attempts = 1, rescues = 9",
    )
    await db.write(_run, "update lanes set due_at = null")
    for number in range(20):
        await db.write(_write_one, number, OWNERS[0], False)
    await db.write(fan_out_all)
    [last] = await db.read(_rows, "select max(pos) as pos, max(seq) as seq from events")
    await db.write(_run, f"delete from events where pos = {last['pos']}")
    await db.close()
    await move(db_url, target)
    db = await opened(target)
    try:
        found = await db.read(_rows, "select * from deliveries")
        assert len(found) == 5
        for row in found:
            # A claim that a backup met is no death of its sender: it does not count as a rescue.
            assert (row["state"], row["claim"], row["node_id"]) == ("ready", None, None)
            assert (row["retry"], row["attempts"], row["rescues"]) == (True, 1, 9)
        assert await db.read(_rows, "select * from nodes") == []
        waiting = await db.read(_rows, "select webhook_id from lanes where due_at is not null")
        assert [row["webhook_id"] for row in waiting] == [webhook_id(1)]
        await db.write(_write_one, 99, OWNERS[0], False)
        await db.write(fan_out_all)
        [new] = await db.read(_rows, "select pos, seq from events where id = 'event-99'")
        after = [int(str(last[name])) + 1 for name in ("pos", "seq")]
        assert [new["pos"], new["seq"]] == after
    finally:
        await db.close()


async def test_a_fast_clock_of_sqlite_delays_nothing_on_postgres(
    tmp_path: Path, sqlite_files: SqliteFiles, postgres_server: PostgresServer
) -> None:
    """The due clock of the file is a day ahead, because the machine's clock once was."""
    source = await sqlite_files.fresh(tmp_path)
    ahead = CLOCK.wall() + 86_400_000_000
    db = await opened(source)
    await db.write(add_webhooks, 1, 1)
    await db.write(add_waiting, 1, 3, ahead)
    await db.write(_run, f"update lanes set turned_at = {ahead}, wait_until = {ahead}")
    await db.write(_run, f"update outbox_state set due_mark = {ahead}")
    await db.close()
    target = await postgres_server.empty()
    await move(source, target)
    db = await opened(target)
    try:
        [due] = await db.read(
            _rows, "select count(*) as n from deliveries where next_at > due_now() + 1000000"
        )
        [lane] = await db.read(_rows, "select due_at - due_now() as wait from lanes")
        assert due["n"] == 0
        assert int(str(lane["wait"])) < 1_000_000
    finally:
        await db.close()
        await postgres_server.drop(target)


async def test_a_paused_queue_keeps_its_deliveries(db_url: str) -> None:
    db = await opened(db_url)
    try:
        await db.write(add_webhooks, 1, 2)
        await db.write(_run, "update webhooks set state = 'disabled' where id = 'w000002'")
        await db.write(notices.add, "owner", "w000001", "failing", "timeout")
        await db.write(pause_all)
        assert not await db.read(notices.any_due)
        states = await db.read(_rows, "select state, version from webhooks order by id")
        assert states == [
            {"state": "paused", "version": 2}, {"state": "disabled", "version": 1},
        ]  # fmt: skip
        assert await db.read(_rows, "select * from lanes where active") == []
    finally:
        await db.close()


@pytest.mark.parametrize("way", [("sqlite", "postgres"), ("postgres", "sqlite")])
async def test_the_chains_of_a_log_travel_with_it(
    way: tuple[str, str], tmp_path: Path, sqlite_files: SqliteFiles, postgres_server: PostgresServer
) -> None:
    """An erasure that is not done yet, gaps and ends travel too."""
    there = {
        "sqlite": await sqlite_files.fresh(tmp_path),
        "postgres": await postgres_server.fresh(),
    }
    source, target = (there[engine] for engine in way)
    db = await opened(source)
    keys, webhooks = await delivered(db, 12, urls=3)
    await parking.remove(db, webhooks[2])
    ids = [row["id"] for row in await db.read(rows, "select id from deliveries")]
    await db.write(purge_deliveries, ids[:9], 2**62, CLOCK)
    await db.write(erasure_requests.request, OWNER, ["record-3", "record-4"])
    before = await walked(source, keys)
    await db.close()
    await move(source, target)
    after = await walked(target, keys)
    assert before.faults == after.faults == []
    assert after.heads == before.heads
    assert after.judge.signed == before.judge.signed
    db = await opened(target)
    await Erasure(db).run_once()
    left = await db.read(rows, "select record_id from events where body is not null")
    await db.close()
    assert {row["record_id"] for row in left} == {
        f"record-{number}" for number in range(12) if number not in (3, 4)
    }
    assert (await walked(target, keys)).faults == []
