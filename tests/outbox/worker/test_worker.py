"""The drain's loop under internal errors: nothing is lost, repeated or retried in a busy loop."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import pytest
from aiohttp import web

from outbox.database.transaction import Database, Tx
from outbox.errors import OutcomeUnknown
from outbox.queue.drain import at_once, cycle
from outbox.queue.drain.rescue import release
from outbox.queue.drain.settle import attempt_of, settle
from outbox.queue.state import lanes
from outbox.queue.state.policy import Schedule
from outbox.worker import Worker, claimer, settling, windows
from outbox.worker.claimer import Claimer
from outbox.worker.settling import Settling
from tests.support.drain import Counted, add_webhook, drain, inbox, make, make_many, ring, rows, run
from tests.support.waiting import until

POSTGRES = pytest.mark.parametrize("db_url", ["postgres"], indirect=True)


@pytest.mark.slow
async def test_an_error_of_the_loop_repeats_no_send_in_flight(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with inbox() as box, drain(db, ring()) as running:
        answer = asyncio.Event()

        async def wait(_: web.Request) -> web.Response:
            await answer.wait()
            return web.Response()

        box.answer = wait
        await running.webhook(box.url)
        await db.write(make, "r1")
        await box.until(1)
        faults = 3

        async def broken(self: Claimer, *args: Any) -> float | None:
            nonlocal faults
            if faults:
                faults -= 1
                raise RuntimeError("a fault of ours")
            return await take(self, *args)

        take = Claimer.take
        monkeypatch.setattr(Claimer, "take", broken)
        await db.write(make, "r2")
        await running.watch.until("restarted", 3)
        answer.set()
        await running.watch.until("delivery_finished", 2)
        assert len(box.got) == 2
        assert not running.watch.counts.get("rescued")


@pytest.mark.slow
async def test_a_claim_with_unknown_outcome_is_released_once(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the database is unavailable, there is one claim to release and no more."""
    away = 6
    real = type(db).write

    async def write(self: Any, unit: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal away
        result = await real(self, unit, *args, **kwargs)
        if away and unit in (
            cycle.take, cycle.settle_and_take, cycle.claim_due, cycle.fan_out_and_look,
        ):  # fmt: skip
            away -= 1
            raise OutcomeUnknown("connection", "lost during COMMIT")
        if away and unit is release:
            away -= 1
            raise OutcomeUnknown("connection", "lost during COMMIT")
        return result

    key = ring()
    async with inbox() as box:
        await add_webhook(db, key, box.url)
        await db.write(make_many, 2)
        monkeypatch.setattr(type(db), "write", write)
        async with drain(db, key) as running:
            owed = running.worker._claimer._orphans
            most = 0

            def settled() -> bool:
                nonlocal most
                most = max(most, len(owed))
                return not (away or owed)

            await until(settled)
            assert most == 1
            await running.watch.until("delivery_finished", 2)
        assert len(box.got) == 2


@POSTGRES
async def test_a_claim_that_takes_place_after_its_release_is_taken_back_soon(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the network, or the server, goes on with a statement that nobody waits for."""
    monkeypatch.setattr(claimer, "RECHECK_SECONDS", 0.01)
    real = type(db).write
    late: list[Any] = []
    done = False

    async def write(self: Any, unit: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal done
        if unit is at_once.turn and not (late or done):
            late.append((self, unit, *args))
            raise OutcomeUnknown("connection", "lost")
        result = await real(self, unit, *args, **kwargs)
        if unit is release and late:
            drain_db, *call = late.pop()
            done = True
            assert (await real(drain_db, *call)).claimed
        return result

    key = ring()
    async with inbox() as box:
        await add_webhook(db, key, box.url)
        await db.write(make_many, 2)
        monkeypatch.setattr(type(db), "write", write)
        async with drain(db, key) as running:
            await running.watch.until("rescued unheld 1")
            await running.watch.until("delivery_finished", 2)
        assert len(box.got) == 2


@POSTGRES
async def test_a_claim_that_cannot_be_released_delays_nobody(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another transaction has locked a lane of a claim with unknown outcome."""
    key = ring()
    lost = False
    real = type(db).write
    go_on = asyncio.Event()
    holding: list[asyncio.Task[None]] = []

    async def stranger(tx: Tx, webhook_id: str, locked: asyncio.Event) -> None:
        await lanes.lock(tx, [webhook_id])
        locked.set()
        await go_on.wait()

    async def write(self: Any, unit: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal lost
        result = await real(self, unit, *args, **kwargs)
        if unit is cycle.claim_due and result.claimed and not lost:
            lost, locked = True, asyncio.Event()
            beside = db.apart("migration")
            holding.append(asyncio.create_task(real(beside, stranger, held, locked)))
            await locked.wait()
            raise OutcomeUnknown("connection", "lost during COMMIT")
        return result

    async with inbox() as box:
        held, _ = await add_webhook(db, key, f"{box.url}/held")
        await add_webhook(db, key, f"{box.url}/free", owner="1" * 24)
        await db.write(make_many, 6)
        monkeypatch.setattr(type(db), "write", write)
        async with drain(db, key):
            await until(lambda: lost)
            await db.write(make, "r", owner="1" * 24)
            await box.until(1, "/free")
            go_on.set()
            await asyncio.gather(*holding)
            await box.until(6, "/held")
        assert len(box.got) == 7


@POSTGRES
async def test_ready_deliveries_are_sent_while_fan_out_fails(db: Database, db_url: str) -> None:
    async with inbox() as box, drain(db, ring(), schedule=Schedule((0.5, 0.5))) as running:

        async def fail(_: web.Request) -> web.Response:
            return web.Response(status=500)

        box.answer = fail
        await running.webhook(box.url)
        await db.write(make, "r1")
        await box.until(1)
        stranger = await asyncpg.connect(db_url)
        await stranger.execute("begin; select seq from outbox_state for update")
        await db.write(make, "r2")
        await box.until(3)
        await stranger.close()
        await box.until(4)


@pytest.mark.slow
async def test_deliveries_claimed_here_but_unknown_are_rescued(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claimer, "CHECK_SECONDS", 0.2)
    async with inbox() as box, drain(db, ring()) as running:
        hang = asyncio.Event()

        async def wait(request: web.Request) -> web.Response:
            if request.path == "/held":
                await hang.wait()
            return web.Response()

        box.answer = wait
        lost = await running.webhook(f"{box.url}/lost")
        await running.webhook(f"{box.url}/held")
        await db.write(make, "r1")
        await box.until(2)
        await running.watch.until("delivery_finished")
        # As after a failover that lost the settle.
        await db.write(
            run,
            "update deliveries set state = 'in_flight', claim = 'x', node_id = $1, "
            "finished_at = null where webhook_id = $2",
            running.worker.node_id, lost,
        )  # fmt: skip
        await running.watch.until("rescued unheld 1")
        await box.until(2, "/lost")
        assert len([got for got in box.got if got.path == "/held"]) == 1
        hang.set()
        await running.watch.until("delivery_finished", 3)


@pytest.mark.slow
async def test_a_result_that_cannot_be_written_delays_no_other(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = settle

    async def refuse(tx: Tx, batch: Any) -> Any:
        if any(result.delivery.webhook_id == bad for result in batch):
            raise RuntimeError("this one never")
        return await real(tx, batch)

    def refuse_one(result: Any, outcome: Any) -> Any:
        if result.delivery.webhook_id == bad:
            raise RuntimeError("this one never")
        return attempt_of(result, outcome)

    for module in (settling, cycle):
        monkeypatch.setattr(module, "settle", refuse)
    monkeypatch.setattr(at_once, "attempt_of", refuse_one)
    async with inbox() as box, drain(db, ring()) as running:
        bad = await running.webhook(f"{box.url}/bad")
        await running.webhook(f"{box.url}/fine")
        for number in range(2):
            await db.write(make, f"r{number}")
        await running.watch.until("delivery_finished", 2)
        states = await db.read(
            rows, "select state, count(*) as n from deliveries group by state order by state"
        )
        assert {row["state"]: row["n"] for row in states}["delivered"] == 2


async def test_a_drain_past_its_grace_starts_nothing(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = ring()
    async with inbox() as box:
        await add_webhook(db, key, box.url)
        watch = Counted()
        async with drain(db, key) as running:
            await running.watch.until("claimed")
            stopping: list[asyncio.Task[None]] = []
            worker: Worker = running.worker
            begin = worker._claimer._begin

            def stop_first(*args: Any) -> None:
                # The claim has returned; the stop came while it was running.
                if args[0] and not stopping:
                    stopping.append(asyncio.create_task(worker.drain(0.0)))
                    worker._claimer.stop()
                begin(*args)

            monkeypatch.setattr(worker._claimer, "_begin", stop_first)
            await db.write(make, "r1")
            await until(lambda: stopping)
            await stopping[0]
        assert box.got == []
        assert not watch.counts
        [row] = await db.read(rows, "select state, attempts, claim from deliveries")
        assert (row["state"], row["attempts"], row["claim"]) == ("ready", 0, None)


@pytest.mark.slow
async def test_a_slow_send_too_many_is_cut_as_a_timeout(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "MOST_SLOW", 16)
    async with inbox() as box, drain(db, ring(), slots=8, timeout=30.0) as running:
        hang = asyncio.Event()

        async def wait(_: web.Request) -> web.Response:
            await hang.wait()
            return web.Response()

        box.answer = wait
        for number in range(3):
            await running.webhook(f"{box.url}/{number}")
        await db.write(make, "r1")
        # Two of one owner may be slow: an eighth of sixteen.
        await running.watch.until("cut")
        await running.watch.until("attempt")
        [attempt] = await db.read(rows, "select outcome, error from attempts")
        assert attempt["outcome"] == "timeout"
        assert "too many" in attempt["error"]
        assert running.watch.counts["cut"] == 1
        hang.set()
        await running.watch.until("delivery_finished", 3)


@pytest.mark.slow
async def test_a_failed_claim_does_not_leave_a_settle_running(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two writes of one list at once can lose an item that the second one added."""
    at_once = most = faults = 0
    write, take = Settling.write, Claimer.take

    async def slow(self: Settling, *args: Any) -> float | None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        try:
            for _ in range(100):
                await asyncio.sleep(0)
            return await write(self, *args)
        finally:
            at_once -= 1

    async def broken(self: Claimer, *args: Any) -> float | None:
        nonlocal faults
        faults += 1
        if faults <= 3:
            raise RuntimeError("a fault of ours")
        return await take(self, *args)

    monkeypatch.setattr(Settling, "write", slow)
    monkeypatch.setattr(Claimer, "take", broken)
    async with drain(db, ring()) as running:
        await running.watch.until("restarted", 3)
        assert most == 1
