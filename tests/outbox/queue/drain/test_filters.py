"""Conditions of webhooks at fan-out: what they leave out, count and cost."""

from __future__ import annotations

import pytest

from outbox import webhooks
from outbox.database.transaction import Database, Tx
from outbox.events import RecordField, enqueue
from outbox.queue.drain import budget
from outbox.queue.drain.creations import UNJUDGED
from outbox.queue.drain.fanout import fan_out
from outbox.queue.log import series
from outbox.queue.state.claimed_deliveries import Capacity
from outbox.webhooks.conditions import Condition
from tests.support.drain import OWNER, add_webhook, make, ring, rows, run
from tests.support.lines import NONE, URL

ALL = Capacity("node", "claim-1", 256, 64, 16, {}, 1_000_000)
LARGE = "x" * 10_000
"""With it, a body is larger than what fan-out loads with its event."""
WON = (Condition("status", "won"),)
OTHER = "1" * 24


async def deal(tx: Tx, status: str, text: str = "", webhook_id: str | None = None) -> str:
    return enqueue(
        tx, owner_id=OWNER, name="thing.made", record_id="r", record_version=1,
        data={"status": status, "text": text}, webhook_id=webhook_id,
    )  # fmt: skip


async def moved(tx: Tx, status: str, text: str = "", *, changed: bool = True) -> str:
    """Write an event whose data has no status."""
    return enqueue(
        tx, owner_id=OWNER, name="thing.made", record_id="r", record_version=1,
        data={"text": text}, record_fields={"status": RecordField(status, changed)},
    )  # fmt: skip


async def webhooks_of(db: Database, event_id: str) -> set[str]:
    deliveries = await db.read(
        rows, "select webhook_id from deliveries where event_id = $1", event_id
    )
    return {row["webhook_id"] for row in deliveries}


@pytest.mark.parametrize("capacity", [NONE, ALL])
async def test_a_webhook_gets_the_events_for_which_its_conditions_hold(
    db: Database, capacity: Capacity
) -> None:
    picky, _ = await add_webhook(db, ring(), URL, conditions=WON)
    plain, _ = await add_webhook(db, ring(), URL)
    won, lost = await db.write(deal, "won"), await db.write(deal, "lost")
    done = await db.write(fan_out, capacity)
    assert await webhooks_of(db, won) == {picky, plain}
    assert await webhooks_of(db, lost) == {plain}
    assert (done.created, done.left_out) == ({"thing.made": 3}, {"thing.made": 1})
    assert [each.deliveries for each in done.announced] == [2, 1]
    [found] = (await db.read(series.by_webhook, OWNER, 0, 2**62)).values()
    assert found.results["filtered"] == 1
    assert (found.failed, found.lost, found.rate) == (0, 0, None)


async def test_an_owner_with_a_remainder_is_judged_by_the_record_too(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(budget.ROUND, db.engine, 100_000)
    await add_webhook(db, ring(), URL, conditions=WON)
    events = [await db.write(moved, "won" if n % 2 else "lost", LARGE) for n in range(6)]
    rounds = 1
    while (await db.write(fan_out, NONE)).more:
        rounds += 1
    assert rounds > 1
    got = [bool(await webhooks_of(db, event_id)) for event_id in events]
    assert got == [False, True] * 3


async def test_a_test_event_passes_every_condition(db: Database) -> None:
    picky, _ = await add_webhook(db, ring(), URL, conditions=WON)
    sent = await db.write(deal, "lost", webhook_id=picky)
    done = await db.write(fan_out, NONE)
    assert await webhooks_of(db, sent) == {picky}
    assert not done.left_out


async def test_an_erased_event_is_not_left_out(db: Database) -> None:
    picky, _ = await add_webhook(db, ring(), URL, conditions=WON)
    erased = await db.write(deal, "lost")
    await db.write(run, "update events set body = null, erased_at = 1")
    await db.write(fan_out, NONE)
    assert await webhooks_of(db, erased) == {picky}


@pytest.mark.parametrize(
    "damaged",
    [
        b'{"data":{"status":"w\xefn"}}',
        b'{"data":{"stat\xf5s":"won"}}',
        b'{"data":{"status":"wno"}}',
    ],
)
async def test_a_damaged_event_is_not_left_out_and_delays_nobody(
    db: Database, damaged: bytes
) -> None:
    picky, _ = await add_webhook(db, ring(), URL, conditions=WON)
    other, _ = await add_webhook(db, ring(), URL, owner=OTHER)
    event = await db.write(deal, "won")
    await db.write(run, "update events set body = $1", damaged)
    others = await db.write(make, "r", owner=OTHER)
    await db.write(fan_out, ALL)
    assert await webhooks_of(db, event) == {picky}
    assert await webhooks_of(db, others) == {other}


async def test_damaged_conditions_leave_nothing_out_silently(db: Database) -> None:
    picky, _ = await add_webhook(db, ring(), URL, conditions=WON)
    await db.write(run, "update webhooks set conditions = '{'")
    await db.write(deal, "lost")
    done = await db.write(fan_out, ALL)
    assert done.dead == [picky]
    [row] = await db.read(rows, "select state, reason from deliveries")
    assert (row["state"], row["reason"]) == ("dead", UNJUDGED)
    webhook = await db.read(webhooks.one, picky)
    assert webhook is not None
    assert webhook.conditions is None
