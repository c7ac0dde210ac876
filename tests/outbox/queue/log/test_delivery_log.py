"""The log of a delivery, the health of its webhook, and the replay of a delivery."""

import pytest

from outbox.database.transaction import Database, Tx
from outbox.events import Cause, cause, enqueue
from outbox.queue.log import delivery_log
from outbox.queue.replays import replay
from outbox.queue.upkeep import parking
from outbox.sending.request import masked
from tests.outbox.queue.upkeep.test_parking import park, paused
from tests.support.drain import OWNER, add_webhook, drain, inbox, make, ring, rows


async def test_a_delivery_with_its_attempts_and_exact_body(db: Database) -> None:
    async with inbox() as box, drain(db, ring()) as running:
        webhook_id = await running.webhook(f"{box.url}/hook")
        event_id = await db.write(make, "r1")
        [got] = await box.until(1)
        await running.watch.until("attempt")
        [delivery] = (await db.read(delivery_log.health, webhook_id)).latest
        assert (delivery.event, delivery.state, delivery.attempts) == ("thing.made", "delivered", 1)
        event = await db.read(delivery_log.event, event_id)
        assert event is not None
        assert event.body == got.body
        [attempt] = await db.read(delivery_log.attempts, delivery.id)
        assert dict(attempt.request_headers)["X-Webhook-Id"] == event_id
        assert attempt.status == 200
        health = await db.read(delivery_log.health, webhook_id)
        assert (health.waiting, health.tried, health.delivered) == (0, 1, 1)


@pytest.mark.parametrize("origin", ["event", "test"])
async def test_the_log_shows_every_header_that_the_receiver_got(db: Database, origin: str) -> None:
    own = (("Authorization", "Bearer s3cret"), ("X-Shop", "7"))
    async with inbox() as box, drain(db, ring()) as running:
        webhook_id = await running.webhook(f"{box.url}/hook", headers=own)
        cause.set(Cause("request-1", f"00-{'a' * 32}-{'b' * 16}-01"))
        await db.write(announce, None if origin == "event" else webhook_id)
        [got] = await box.until(1)
        await running.watch.until("attempt")
        [delivery] = (await db.read(delivery_log.health, webhook_id)).latest
        [attempt] = await db.read(delivery_log.attempts, delivery.id)
        sent = [item for item in got.headers.items() if item[0] not in ("Host", "Content-Length")]
        assert attempt.request_headers == masked(sent)
        assert ("X-Webhook-Test" in got.headers) == (origin == "test")
        [row] = await db.read(rows, "select request_headers from attempts")
        assert "s3cret" not in row["request_headers"]
        assert got.headers["X-Webhook-Id"] not in row["request_headers"]


async def test_headers_stored_with_their_names_are_shown_as_they_are(db: Database) -> None:
    async with inbox() as box, drain(db, ring()) as running:
        webhook_id = await running.webhook(f"{box.url}/hook")
        await db.write(make, "r1")
        await running.watch.until("attempt")
        [delivery] = (await db.read(delivery_log.health, webhook_id)).latest
        for text, shown in (
            ('[["X-A","1"],["webhook-id","2"]]', [("X-A", "1"), ("webhook-id", "2")]),
            ("[]", []),
        ):
            await db.write(store, text)
            [attempt] = await db.read(delivery_log.attempts, delivery.id)
            assert attempt.request_headers == shown


async def announce(tx: Tx, webhook_id: str | None) -> str:
    return enqueue(
        tx, owner_id=OWNER, name="thing.made", record_id="r1", record_version=7,
        data={"id": "r1"}, webhook_id=webhook_id,
    )  # fmt: skip


async def store(tx: Tx, text: str) -> int:
    return await tx.run("update attempts set request_headers = $1", text)


async def test_a_replay_is_a_new_delivery_of_the_same_bytes(db: Database) -> None:
    async with inbox() as box, drain(db, ring()) as running:
        webhook_id = await running.webhook(f"{box.url}/hook")
        await db.write(make, "r1")
        await box.until(1)
        await running.watch.until("attempt")
        [first] = (await db.read(delivery_log.health, webhook_id)).latest
        replayed = await db.write(replay.one, first.id, "u" * 24)
        before, after = await box.until(2)
        await running.watch.until("attempt", 2)
        assert after.body == before.body
        assert after.headers["X-Webhook-Id"] == before.headers["X-Webhook-Id"]
        delivery = await db.read(delivery_log.one, replayed)
        assert delivery is not None
        assert (delivery.origin, delivery.state) == ("replay", "delivered")
        assert delivery.replayed_by == "u" * 24
        assert [d.id for d in await db.read(delivery_log.siblings, delivery)] == [first.id]


async def test_what_cannot_be_replayed_says_why(db: Database) -> None:
    async def refusal(delivery_id: str) -> str:
        with pytest.raises(replay.NotReplayable) as refused:
            await db.write(replay.one, delivery_id, "u" * 24)
        return str(refused.value)

    async def run(tx: Tx, sql: str) -> None:
        await tx.run(sql)

    webhook_id = await paused(db, ("a", False), ("b", False))
    [b, a] = (await db.read(delivery_log.health, webhook_id)).latest
    assert "no longer" in await refusal("0" * 24)
    await db.write(run, f"update events set body = null, erased_at = 1 where id = '{a.event_id}'")
    assert "erased" in await refusal(a.id)
    await db.write(run, f"update deliveries set origin = 'test' where id = '{b.id}'")
    assert "test" in await refusal(b.id)
    await db.write(run, f"delete from events where id = '{b.event_id}'")
    assert "retention" in await refusal(b.id)
    assert await parking.remove(db, webhook_id)
    assert "deleted" in await refusal(b.id)


async def test_a_replay_at_a_paused_webhook_is_parked(db: Database) -> None:
    webhook_id, _ = await add_webhook(db, ring(), "https://x.example/")
    assert await db.write(parking.pause, webhook_id)
    [done] = await db.write(park, webhook_id, [("a", False)], "delivered")
    await db.write(replay.one, done, "u" * 24)
    assert await db.read(parking.count, webhook_id, 10) == 1
