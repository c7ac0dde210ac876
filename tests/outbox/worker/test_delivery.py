"""One event to its receiver: fan-out, signature, retries, final states and log; on both engines."""

import asyncio

import pytest
from aiohttp import web

from outbox import webhooks
from outbox.database.transaction import Database, Tx
from outbox.queue.state.policy import Schedule
from tests.support.drain import OWNER, Inbox, add_webhook, drain, inbox, make, make_many, ring, rows
from tests.support.receiver import Visit, hostile

DELIVERIES = "select * from deliveries order by seq, id"
ATTEMPTS = "select * from attempts order by delivery_id, number"


@pytest.mark.slow
async def test_every_event_gets_the_next_seq_without_gap(db: Database) -> None:
    async with inbox() as box, drain(db, ring()) as running:
        await running.webhook(box.url)
        await asyncio.gather(*(db.write(make_many, 7) for _ in range(100)))
        await box.until(700)
        positions = await db.read(rows, "select seq, pos from events order by pos")
        seqs = [row["seq"] for row in positions]
        assert sorted(seqs) == list(range(1, 701))
        ids = {got.headers["X-Webhook-Id"] for got in box.got}
        assert len(ids) == len(box.got) == 700


@pytest.mark.parametrize("ending", ["abort", pytest.param("408", marks=pytest.mark.slow)])
async def test_a_stale_connection_says_nothing_of_the_webhooks_health(
    db: Database, ending: str
) -> None:
    async with inbox() as box, drain(db, ring(), schedule=Schedule((60.0,))) as running:

        async def fail_then_hang_up(request: web.Request) -> web.Response:
            if len(box.got) == 2 and ending == "408":
                return web.Response(status=408)
            if len(box.got) == 2:
                assert request.transport is not None
                request.transport.abort()
            return web.Response(status=200 if len(box.got) == 1 else 500)

        box.answer = fail_then_hang_up
        webhook_id = await running.webhook(box.url)
        await db.write(make, "r1")
        await running.watch.until("delivery_finished")
        before = await db.read(webhooks.one, webhook_id)
        await db.write(make, "r2")
        await running.watch.until("attempt", 3)
        after = await db.read(webhooks.one, webhook_id)
        assert before is not None
        assert after is not None
        assert after.last_success_at == before.last_success_at
        assert after.failures == 1
        [_, again] = await db.read(rows, DELIVERIES)
        assert (again["attempts"], again["tries"], again["last_status"]) == (2, 1, 500)


async def test_unsendable_deliveries_end_dead_and_delay_nobody(db: Database) -> None:
    async with inbox() as box, drain(db, ring()) as running:
        broken = await running.webhook(f"{box.url}/broken")
        await running.webhook(f"{box.url}/fine")

        async def spoil(tx: Tx) -> None:
            await tx.run(
                "update webhooks set schedule = $2, version = version + 1 where id = $1",
                broken, "not a list",
            )  # fmt: skip

        await db.write(spoil)
        await db.write(make, "r1")
        await box.until(1, "/fine")
        await running.watch.until("delivery_finished", 2)
        ends = {row["webhook_id"]: row for row in await db.read(rows, DELIVERIES)}
        assert ends[broken]["state"] == "dead"
        assert "schedule" in ends[broken]["reason"]


async def test_throttling_delays_the_whole_webhook(db: Database) -> None:
    async with inbox() as box, drain(db, ring()) as running:

        async def slow_down(_: web.Request) -> web.Response:
            return web.Response(status=429, headers={"Retry-After": "600"})

        box.answer = slow_down
        webhook_id = await running.webhook(box.url)
        await db.write(make, "r1")
        await running.watch.until("attempt")
        await db.write(make, "r2")
        await running.watch.until("fanned_out", 2)
        [lane] = await db.read(
            rows, "select due_at - due_now() as wait from lanes where webhook_id = $1", webhook_id
        )
        assert 500_000_000 < lane["wait"] <= 600_000_000
        assert len(box.got) == 1


@pytest.mark.slow
async def test_shutdown_cuts_a_hanging_send_and_it_is_sent_after_the_next_start(
    db: Database,
) -> None:
    key = ring()
    async with inbox() as box:
        await add_webhook(db, key, box.url)

        async def hang(_: web.Request) -> web.Response:
            await asyncio.Event().wait()
            raise AssertionError

        box.answer = hang
        async with drain(db, key) as running:
            await db.write(make, "r1")
            await box.until(1)
        webhook_id = await _only_webhook(db)
        assert running.watch.counts[f"attempt {webhook_id} 127.0.0.1 first aborted"]
        [delivery] = await db.read(rows, DELIVERIES)
        assert (delivery["state"], delivery["tries"]) == ("ready", 0)
        assert await db.read(rows, "select * from nodes") == []
        box.answer = None
        async with drain(db, key) as running:
            await running.watch.until("delivery_finished")
        attempts = await db.read(rows, ATTEMPTS)
        assert [a["outcome"] for a in attempts] == ["aborted", "success"]


@pytest.mark.slow
async def test_a_response_that_has_begun_counts_when_its_send_is_cut(db: Database) -> None:
    """Its status says that the receiver has the event; to send it again would double it."""
    begun = asyncio.Event()

    async def answer(visit: Visit) -> None:
        await visit.request()
        await visit.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
        begun.set()
        await asyncio.Event().wait()

    key = ring()
    async with hostile(answer) as there:
        await add_webhook(db, key, there.url)
        for turns in (64, 512, 4_096):
            begun.clear()
            async with drain(db, key) as running:
                await db.write(make, "r1")
                await begun.wait()
                # So many turns of the loop later the head has been read, if not on a busy machine.
                for _ in range(turns):
                    await asyncio.sleep(0)
                await running.worker.drain(0.0)
            *_, attempt = await db.read(rows, "select * from attempts order by started_at")
            if attempt["outcome"] == "success":
                break
        assert (attempt["outcome"], attempt["status"]) == ("success", 200)
        assert (bytes(attempt["response_body"]), attempt["truncated"]) == (b"half", 1)
        states = await db.read(rows, "select * from deliveries where attempts > 0")
        assert "delivered" in [row["state"] for row in states]


async def _only_webhook(db: Database) -> str:
    [webhook] = await db.read(webhooks.listed, OWNER)
    return webhook.id


@pytest.mark.slow
async def test_slow_receivers_give_their_slots_back(db: Database) -> None:
    async with inbox() as box, drain(db, ring(), slots=4) as running:
        hanging = asyncio.Event()

        async def hang(request: web.Request) -> web.Response:
            if request.path.startswith("/slow"):
                await hanging.wait()
            return web.Response()

        box.answer = hang
        for number in range(8):
            await running.webhook(f"{box.url}/slow{number}", "slow.made")
        await running.webhook(f"{box.url}/fine", "thing.made")
        await db.write(make, "r", "slow.made")
        await _until_slow(box, 8)
        # All eight hang on four slots, and none of the four stays occupied.
        before = running.watch.counts.get("slots 4 0", 0)
        await running.watch.until("slots 4 0", before + 1)
        await db.write(make, "r1")
        await box.until(1, "/fine")
        # A webhook with a slow send in flight starts no other.
        await db.write(make, "r", "slow.made")
        await db.write(make, "r2")
        await box.until(2, "/fine")
        assert len([g for g in box.got if g.path.startswith("/slow")]) == 8
        hanging.set()
        await _until_slow(box, 16)


async def _until_slow(box: Inbox, count: int) -> None:
    async with box.changed:
        await box.changed.wait_for(
            lambda: len([g for g in box.got if g.path.startswith("/slow")]) >= count
        )


@pytest.mark.slow
async def test_an_attempt_that_cannot_be_logged_still_counts(db: Database) -> None:
    """Two rows with one number: the second attempt cannot be written, its delivery must be."""
    async with inbox() as box, drain(db, ring()) as running:
        webhook_id = await running.webhook(box.url)
        refuse = asyncio.Event()

        async def wait(_: web.Request) -> web.Response:
            await refuse.wait()
            return web.Response()

        box.answer = wait
        await db.write(make, "r1")
        await box.until(1)

        async def occupy(tx: Tx) -> None:
            await tx.run(
                """
                insert into attempts (owner_id, delivery_id, webhook_id, event_id, number, kind,
                  outcome, started_at, total_us, url, request_headers, truncated, node_id)
                select owner_id, id, webhook_id, event_id, 1, 'event', 'success', 0, 0, '', '[]',
                  false, '' from deliveries
                """
            )

        await db.write(occupy)
        refuse.set()
        await running.watch.until("delivery_finished")
        [delivery] = await db.read(rows, DELIVERIES)
        assert (delivery["state"], delivery["webhook_id"]) == ("delivered", webhook_id)
