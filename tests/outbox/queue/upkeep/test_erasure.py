"""A person is erased from events and attempts, and what was sent can still be proven."""

from __future__ import annotations

import asyncio
import gzip
from dataclasses import replace

import pytest
from aiohttp import web

from outbox.database.transaction import Database, Tx
from outbox.errors import OutboxError
from outbox.queue.drain.fanout import fan_out
from outbox.queue.replays import replay
from outbox.queue.upkeep import erasure, erasure_requests, event_texts, personal_data
from outbox.queue.upkeep.erasure import Erasure
from tests.outbox.queue.replays.test_replay import ROOM
from tests.support.chains import walked
from tests.support.drain import OWNER, add_webhook, drain, inbox, make, ring, rows, run

PERSON = "person"


async def asked(tx: Tx, *kept: str, owner: str = OWNER) -> None:
    await erasure_requests.request(tx, owner, [PERSON], kept)


async def test_everything_about_the_person_goes_and_the_chain_holds(
    db: Database, db_url: str
) -> None:
    keys, refused = ring(), 0

    async def answer(request: web.Request) -> web.Response:
        nonlocal refused
        refused += 1
        body = await request.read()
        # Every other response is a failure, and each repeats what it got.
        return web.Response(status=200 if refused % 2 else 500, body=body)

    async with inbox() as box, drain(db, keys) as running:
        box.answer = answer
        webhook_id = await running.webhook(box.url, "thing.made", "thing.gone")
        for record in (PERSON, "another", PERSON):
            await db.write(make, record)
        await running.watch.until("delivery_finished", 3)
        await db.write(asked, "thing.gone")
        await db.write(make, PERSON, "thing.gone")
        await running.watch.until("delivery_finished", 4)
    await db.write(run, "update events set record_fields = '[]'")
    before = await db.read(rows, "select * from attempts order by place")
    work = Erasure(db)
    assert await work.any_open()
    await work.run_once()
    assert not await work.any_open()
    events = await db.read(rows, "select * from events order by pos")
    gone = {row["id"] for row in events if row["erased_at"] is not None}
    assert [row["id"] in gone for row in events] == [True, False, True, False]
    for name in ("body", "record_fields"):
        assert all((row[name] is None) == (row["id"] in gone) for row in events)
    after = await db.read(rows, "select * from attempts order by place")
    for old, new in zip(before, after, strict=True):
        assert bytes(new["digest"]) == bytes(old["digest"])
        erased = new["event_id"] in gone
        assert (new["response_body"] is None) == erased
        assert (new["response_headers"] is None) == erased
        assert (new["answer_digest"] is not None) == erased
    verdict = await walked(db_url, keys, webhook_id)
    assert verdict.faults == []
    assert verdict.judge.signed["no_body"] == len([r for r in after if r["event_id"] in gone])
    first = next(row for row in after if row["event_id"] in gone)
    with pytest.raises(OutboxError, match="erased with a person's data"):
        await db.write(replay.one, first["delivery_id"], "user")
    # What stands for the response is covered as the response was.
    key = first["delivery_id"], first["number"]
    change = "update attempts set answer_digest = $1 where delivery_id = $2 and number = $3"
    await db.write(run, change, bytes(32), *key)
    [fault] = (await walked(db_url, keys)).faults
    assert fault.place == first["place"]


async def test_a_response_cannot_be_removed_without_an_erasure(db: Database, db_url: str) -> None:
    keys = ring()
    async with inbox() as box, drain(db, keys) as running:
        await running.webhook(box.url)
        await db.write(make, PERSON)
        await running.watch.until("delivery_finished")
    [delivery] = await db.read(rows, "select id from deliveries")
    await db.write(personal_data.erase_answers, [delivery["id"]], 10)
    [fault] = (await walked(db_url, keys)).faults
    assert "not erased" in fault.what


@pytest.mark.slow
async def test_a_delivery_in_flight_is_recorded_first(db: Database, db_url: str) -> None:
    """Its attempt is in the log, its response is not, and it is never tried again."""
    keys = ring()
    arrived, go = asyncio.Event(), asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        body = await request.read()
        arrived.set()
        await go.wait()
        return web.Response(status=500, body=body)

    async with inbox() as box, drain(db, keys) as running:
        box.answer = answer
        await running.webhook(box.url)
        await db.write(make, PERSON)
        await arrived.wait()
        await db.write(asked)
        work = Erasure(db)
        await work.run_once()
        assert await work.any_open()
        [event] = await db.read(rows, "select * from events")
        assert event["body"] is None
        go.set()
        await running.watch.until("attempt", 1)
        # Whoever comes first: the next claim, or the next run.
        await work.run_once()
        await running.watch.until("tick", running.watch.counts.get("tick", 0) + 2)
        await work.run_once()
        assert not await work.any_open()
        [delivery] = await db.read(rows, "select * from deliveries")
        assert (delivery["state"], delivery["reason"]) == ("cancelled", "erased")
        [attempt] = await db.read(rows, "select * from attempts")
        assert attempt["response_body"] is None
        assert len(box.got) == 1
    assert (await walked(db_url, keys)).faults == []


async def test_an_event_of_an_erased_person_is_cancelled_at_its_claim(db: Database) -> None:
    """Between the end of an attempt and the next run of the duty."""
    keys = ring()
    async with inbox() as box:
        await add_webhook(db, keys, box.url)
        await db.write(make, PERSON)
        await db.write(fan_out, replace(ROOM, slots=0))
        await db.write(run, "update events set body = null, erased_at = 1")
        async with drain(db, keys) as running:
            await running.watch.until("delivery_finished", 1)
        [delivery] = await db.read(rows, "select * from deliveries")
        assert (delivery["state"], delivery["reason"]) == ("cancelled", "erased")
        assert box.got == []


async def test_other_owners_and_many_events_are_told_apart(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasure_requests, "PAGE", 1)
    monkeypatch.setattr(erasure_requests, "WORK", 3)
    monkeypatch.setattr(erasure, "EVENTS", 2)
    other = "1" * 24
    for number in range(4):
        for record in (PERSON, f"another-{number}"):
            await db.write(make, record)
        await db.write(make, PERSON, owner=other)
    async with inbox() as box, drain(db, ring()) as running:
        await running.webhook(box.url)
        await db.write(make, "last")
        await running.watch.until("delivery_finished", 1)
    await db.write(asked)
    await Erasure(db).run_once()
    events = await db.read(rows, "select owner_id, record_id from events where body is not null")
    assert len(events) == 9
    assert (OWNER, PERSON) not in {(row["owner_id"], row["record_id"]) for row in events}


@pytest.mark.parametrize(
    "damage", ["record_ids = '[\"r'", "record_ids = '{}'", "kept_names = '[1]'", "kept_names = ''"]
)
async def test_a_damaged_request_is_left_alone_and_stops_no_other(
    db: Database, damage: str
) -> None:
    await db.write(asked)
    await db.write(run, f"update erasures set {damage}")
    await db.write(make, PERSON, owner="b" * 24)
    await db.write(fan_out, ROOM)
    await db.write(asked, owner="b" * 24)
    work = Erasure(db)
    assert await work.any_open()
    await work.run_once()
    assert not await work.any_open()
    [left] = await db.read(rows, "select owner_id, error from erasures")
    assert (left["owner_id"], left["error"]) == (OWNER, erasure_requests.DAMAGED)
    [row] = await db.read(rows, "select body, erased_at from events")
    assert row["body"] is None
    assert row["erased_at"] is not None


async def test_coded_responses_are_searched_as_text(db: Database) -> None:
    async with inbox() as box, drain(db, ring()) as running:

        async def answer(_: web.Request) -> web.Response:
            body = gzip.compress(b"thanks, Maria")
            return web.Response(body=body, headers={"Content-Encoding": "gzip"})

        box.answer = answer
        await running.webhook(box.url)
        await db.write(make, PERSON)
        await running.watch.until("delivery_finished")
    place: event_texts.Place | None = event_texts.Place(left=9)
    found: list[str] = []
    while place is not None:
        page = await db.read(event_texts.page, OWNER, PERSON, place, 1)
        found += page.texts()
        place = page.after
    assert "thanks, Maria" in found
    # The body, the headers of the response, and its text.
    assert len(found) == 3


async def test_damaged_texts_are_searched_as_far_as_they_can_be_read(db: Database) -> None:
    """Or no erasure that meets them would end."""
    async with inbox() as box, drain(db, ring()) as running:
        await running.webhook(box.url)
        await db.write(make, PERSON)
        await running.watch.until("delivery_finished")
    await db.write(run, "update events set body = $1", b"Mari\xe1, Maria")
    await db.write(run, "update attempts set response_headers = $1, response_body = $2", "[", b"hi")
    page = await db.read(event_texts.page, OWNER, PERSON, event_texts.Place(left=9), 1)
    assert list(page.texts()) == ["Mari\ufffd, Maria"]
    assert page.after is not None
    page = await db.read(event_texts.page, OWNER, PERSON, page.after, 1)
    assert list(page.texts()) == ["[", "hi"]


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_an_error_in_one_request_stops_no_other(db: Database) -> None:
    """It is told, and that request is tried again."""
    await db.write(asked)
    await db.write(make, PERSON)
    await db.write(make, PERSON, owner="b" * 24)
    await db.write(fan_out, ROOM)
    webhook_id, _ = await add_webhook(db, ring(), "http://127.0.0.1:9/")
    await db.write(_attempted, webhook_id)
    await db.write(asked, owner="b" * 24)
    with pytest.raises(TypeError):
        await Erasure(db).run_once()
    [left] = await db.read(rows, "select owner_id, error from erasures")
    assert (left["owner_id"], left["error"]) == (OWNER, None)
    events = await db.read(rows, "select erased_at from events where owner_id <> $1", OWNER)
    assert all(row["erased_at"] is not None for row in events)


async def _attempted(tx: Tx, webhook_id: str) -> None:
    """Store an attempt of each event whose response is a number: it has no digest."""
    await tx.run(
        "insert into deliveries (id, owner_id, event_id, webhook_id, origin, state, retry, next_at,"
        " tries, attempts, record_id, seq, created_at, finished_at) select 'd' || seq, owner_id,"
        " id, $1, 'event', 'delivered', false, 0, 0, 1, record_id, seq, 0, 0 from events"
        " where owner_id = $2",
        webhook_id, OWNER,
    )  # fmt: skip
    await tx.run(
        "insert into attempts (owner_id, delivery_id, webhook_id, event_id, number, kind, outcome,"
        " started_at, total_us, url, request_headers, response_body, truncated, node_id)"
        " select owner_id, id, webhook_id, event_id, 1, 'event', 'success', 0, 0, 'u', '[]', -1.5,"
        " false, 'n' from deliveries where state = 'delivered'"
    )
