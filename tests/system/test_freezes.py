"""A node whose lease expires during an attempt: its late results change nothing."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from outbox import database
from outbox.clock import SystemClock
from outbox.database.transaction import Tx
from outbox.ids import Ids
from tests.support.databases import PostgresServer
from tests.support.drain import add_webhook, drain, inbox, make, ring, rows
from tests.system.freezes import run_freeze


async def end_leases(tx: Tx) -> None:
    """Make every node look silent for longer than its lease."""
    await tx.run("update nodes set alive_until = due_now() - 1")


@pytest.mark.slow
async def test_another_node_takes_over_when_a_lease_has_ended(
    postgres_server: PostgresServer,
) -> None:
    url = await postgres_server.fresh()
    db = await database.open(url, clock=SystemClock(), ids=Ids())
    key = ring()
    thaw = asyncio.Event()
    async with inbox() as box:

        async def answer(_: web.Request) -> web.Response:
            if len(box.got) == 1:
                await thaw.wait()
            return web.Response()

        box.answer = answer
        await add_webhook(db, key, box.url)
        async with drain(db, key) as frozen:
            await db.write(make, "r1")
            await box.until(1)
            await db.write(end_leases)
            # A frozen process would not take it back itself.
            frozen.worker._claimer.stop()
            async with drain(db, key) as other:
                await other.watch.until("rescued")
                await other.watch.until("delivery_finished")
                before = await db.read(rows, "select * from deliveries")
                thaw.set()
                await frozen.watch.until("fenced")
                assert await db.read(rows, "select * from deliveries") == before
        attempts = await db.read(rows, "select number, node_id from attempts")
        assert [(a["number"], a["node_id"]) for a in attempts] == [(2, other.worker.node_id)]
        first, second = box.got
        assert first.body == second.body
    await db.close()
    await postgres_server.drop(url)


@pytest.mark.faults
async def test_a_node_frozen_past_its_lease_changes_nothing() -> None:
    told = await run_freeze(70260)
    assert told["pass"], told
