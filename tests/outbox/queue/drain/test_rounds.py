"""Fan-out in several rounds: bounded work, turns of owners, and exactly one delivery a webhook."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from outbox import webhooks
from outbox.database.transaction import Database, Tx
from outbox.queue.drain import budget
from outbox.queue.drain.fanout import FannedOut, fan_out
from outbox.queue.replays.job_selection import Selection, look
from outbox.queue.state import creation_snapshots
from outbox.queue.state.claimed_deliveries import Capacity
from outbox.queue.upkeep import erasure_requests
from outbox.queue.upkeep.erasure import Erasure
from outbox.sending.request import new_secret
from outbox.webhooks import Draft
from tests.support.drain import OWNER, add_webhook, all_forgotten, make, make_many, ring, rows, run
from tests.support.waiting import until

URL = "http://127.0.0.1:9/"
NONE = Capacity("node", "claim-0", 0, 0, 0, {}, 0)
MANY = 35
POSTGRES = pytest.mark.parametrize("db_url", ["postgres"], indirect=True)
KEY = ring()


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a round make few deliveries."""
    monkeypatch.setattr(budget, "LEAST_WEBHOOKS", 4)
    for engine in budget.ROUND:
        monkeypatch.setitem(budget.ROUND, engine, 250_000)
        monkeypatch.setitem(budget.WEBHOOKS_OF_ALL, engine, 10)


async def add_many(tx: Tx, /, count: int, owner: str = OWNER, **options: Any) -> list[str]:
    draft = Draft(url=URL, events=("thing.made",), **options)
    deliveries = [
        await webhooks.create(
            tx, owner_id=owner, draft=draft, secret=new_secret(b"s" * 32), ring=KEY
        )
        for _ in range(count)
    ]
    return sorted(deliveries)


async def a_round(db: Database) -> FannedOut:
    return await db.write(fan_out, NONE)


async def to_the_end(db: Database, most: int = 2_000) -> list[FannedOut]:
    done = [await a_round(db)]
    while done[-1].more:
        assert len(done) < most
        done.append(await a_round(db))
    return done


async def made_of(db: Database) -> Counter[tuple[str, str]]:
    deliveries = await db.read(rows, "select webhook_id, record_id from deliveries")
    return Counter((row["webhook_id"], row["record_id"]) for row in deliveries)


async def test_an_event_for_many_webhooks_takes_many_small_rounds(db: Database) -> None:
    ids = await db.write(add_many, MANY)
    await db.write(make_many, 3)
    done = await to_the_end(db)
    deliveries = await made_of(db)
    assert deliveries == Counter((one, f"record-{n}") for one in ids for n in range(3))
    assert max(sum(one.created.values()) for one in done) <= 10
    assert sum(sum(one.events.values()) for one in done) == 3
    announced = [each for one in done for each in one.announced]
    assert [(each.seq, each.deliveries) for each in announced] == [(1, MANY), (2, MANY), (3, MANY)]
    assert not await db.read(rows, "select * from remainders")


async def test_changes_between_rounds_neither_leave_out_nor_double(db: Database) -> None:
    ids = await db.write(add_many, MANY)
    await db.write(make, "first")
    while len(await made_of(db)) < 10:
        await a_round(db)
    paused, changed, removed = ids[-1], ids[-2], ids[-3]
    await db.write(run, "update webhooks set state = 'paused' where id = $1", paused)
    await db.write(run, "update lanes set active = false where webhook_id = $1", paused)
    await db.write(run, "update webhooks set events = '[\"x\"]' where id = $1", changed)
    await db.write(run, "delete from lanes where webhook_id = $1", removed)
    await db.write(run, "delete from webhooks where id = $1", removed)
    [late] = await db.write(add_many, 1)
    await db.write(creation_snapshots.forget_since)
    await db.write(make, "second")
    await to_the_end(db)
    old = {one for one in ids if one not in (changed, removed)}
    assert await made_of(db) == Counter(
        [(one, "first") for one in old] + [(one, "second") for one in {*old, late}]
    )


async def test_a_backfill_waits_for_what_fan_out_has_left(db: Database) -> None:
    ids = await db.write(add_many, MANY)
    await db.write(make_many, 2)
    await a_round(db)
    chosen = Selection(OWNER, ids[-1], (), None, 0, 2**62, 2)
    page = await db.read(look, chosen, 0, 10)
    assert (list(page.events), page.place, page.more) == ([], 0, True)
    await to_the_end(db)
    page = await db.read(look, chosen, 0, 10)
    assert (list(page.events), page.place, page.more) == ([], 2, False)


async def test_an_erasure_waits_for_what_fan_out_has_left(db: Database) -> None:
    await db.write(add_many, MANY)
    await db.write(make, "person")
    await a_round(db)
    await db.write(erasure_requests.request, OWNER, ["person"])
    erasure = Erasure(db)
    await erasure.run_once()
    assert await db.read(erasure_requests.any_open)
    await to_the_end(db)
    await erasure.run_once()
    assert not await db.read(erasure_requests.any_open)
    [event] = await db.read(rows, "select body from events")
    assert event["body"] is None
    states = await db.read(rows, "select distinct state from deliveries")
    assert [row["state"] for row in states] == ["cancelled"]


@POSTGRES
async def test_the_creation_snapshot_stays_while_older_events_are_left(db: Database) -> None:
    await db.write(add_many, MANY)
    await db.write(make, "before")
    await a_round(db)
    late, _ = await add_webhook(db, KEY, URL)
    await db.write(creation_snapshots.forget_since)
    await to_the_end(db)
    assert not [one for one, _ in await made_of(db) if one == late]
    await until(lambda: all_forgotten(db))
