"""Lists of deliveries against a plain filter in memory: each row once, in order, on any page."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from outbox import webhooks
from outbox.database.transaction import Database, Tx
from outbox.queue.log import delivery_log, delivery_pages
from outbox.queue.log.delivery_types import FILTERS, WAITING, Delivery, DeliveryQuery, StateFilter
from outbox.queue.state.lanes import due_now
from outbox.webhooks import Draft, Webhook
from tests.support.drain import ring

OWNER = "owner"
STATES = ("delivered", "exhausted", "gone", "cancelled", "dead", "in_flight", "held", "ready")
EVENT = """
insert into events (id, owner_id, name, record_id, record_version, occurred_at, body_digest)
values ($1, $2, $3, 'record', 1, $4, '')
"""
DELIVERY = """
insert into deliveries (id, owner_id, event_id, webhook_id, origin, state, retry, next_at, tries,
  attempts, record_id, seq, created_at, last_status, last_outcome)
values ($1, $2, $3, $4, 'event', $5, $6, $7, 0, 0, 'record', $8, $9, $10, $11)
"""


async def furnish(tx: Tx, ids: Sequence[str], count: int, dice: random.Random) -> None:
    due = await due_now(tx)
    start = tx.now - count * 1_000_000
    for number in range(count):
        at = start + number * 1_000_000
        event_id = f"{at // 1000:012x}{number:012x}"
        name = dice.choice(("contact.created", "contact.updated"))
        await tx.run(EVENT, event_id, OWNER, name, at)
        for webhook_id in ids:
            await tx.run(
                DELIVERY, f"{at // 1000:012x}{dice.getrandbits(48):012x}",
                "other" if webhook_id == ids[-1] else OWNER, event_id, webhook_id,
                dice.choice(STATES), dice.random() < 0.4,
                due + dice.choice((-1, 1)) * dice.randrange(10**9), number, at,
                *dice.choice(((None, None), (200, "success"), (500, "http_5xx"))),
            )  # fmt: skip


async def made(db: Database, count: int) -> list[Webhook]:
    """Three webhooks, one of them paused, with random deliveries; and one of another owner."""
    draft = Draft(url="https://example.com/", events=("contact.created",))
    keys = ring()
    ids = [
        await db.write(webhooks.create, owner_id=owner, draft=draft, secret="whsec_", ring=keys)
        for owner in (OWNER, OWNER, OWNER, "other")
    ]

    async def unit(tx: Tx) -> None:
        await furnish(tx, ids, count, random.Random(7))
        await tx.run("update webhooks set state = 'paused' where id = $1", ids[1])

    await db.write(unit)
    return await db.read(webhooks.listed, OWNER)


async def every(tx: Tx, listed: Sequence[Webhook]) -> list[tuple[Delivery, bool]]:
    rows = await tx.all(
        f"select {delivery_log.COLUMNS} from deliveries d left join events e on e.id = d.event_id"
    )
    active = {one.id: one.state == "active" for one in listed}
    deliveries = [delivery_log.delivery_of(row) for row in rows if row["webhook_id"] in active]
    return [(one, active[one.webhook_id]) for one in deliveries]


async def walk(
    db: Database, listed: Sequence[Webhook], query: DeliveryQuery, size: int, scanned: int
) -> list[str]:
    ids: list[str] = []
    after: str | None = ""
    while after is not None:
        page = await db.read(delivery_pages.page, listed, query, after, size, scanned)
        assert len(page.deliveries) <= size
        ids += [one.id for one in page.deliveries]
        after = page.after
    return ids


@pytest.mark.parametrize("scanned", [1, 5_000])
async def test_pages_hold_what_a_filter_in_memory_finds(
    db: Database, monkeypatch: pytest.MonkeyPatch, scanned: int
) -> None:
    """With few rows a round, pages are short, and nothing is left out between them."""
    monkeypatch.setattr(delivery_pages, "TERMS", 2)
    listed = await made(db, 40)
    everything = await db.read(every, listed)
    [first, second, third] = ([one] for one in listed)
    times = sorted({one.created_at for one, _ in everything})
    # Times of ids are milliseconds.
    since, end = times[10] // 1000 * 1000, times[30] // 1000 * 1000
    for only in FILTERS:
        for some, query in (
            (listed, DeliveryQuery(only)), (listed, DeliveryQuery(only, event="contact.updated")),
            (listed, DeliveryQuery(only, status=500)), (listed, DeliveryQuery(only, since=since)),
            (listed, DeliveryQuery(only, "contact.created", 200, since, end)),
            (first, DeliveryQuery(only)), (second, DeliveryQuery(only)),
            (third, DeliveryQuery(only, status=200)),
        ):  # fmt: skip
            right = [
                one
                for one, active in everything
                if query.matches(one, active) and one.webhook_id in {each.id for each in some}
            ]
            ids = await walk(db, some, query, 7, scanned)
            assert sorted(ids) == sorted(one.id for one in right), query
            key = {one.id: (one.next_at, one.id) if _waits(only) else (0, one.id) for one in right}
            assert ids == sorted(ids, key=lambda one: key[one], reverse=not _waits(only))


def _waits(only: StateFilter) -> bool:
    return only == "waiting" or only in WAITING
