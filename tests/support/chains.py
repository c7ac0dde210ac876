"""Chains of attempts for tests: a log that a drain has written, and the walk through it."""

from __future__ import annotations

from contextlib import AsyncExitStack

from aiohttp import web

from outbox.clock import SystemClock
from outbox.database import transfer_ends
from outbox.database.transaction import Database
from outbox.database.transfer import Place
from outbox.ids import Ids
from outbox.queue.proof.verification import Verdict, verify
from outbox.queue.proof.witness import Noted
from outbox.queue.state.chain import Head
from outbox.webhooks.secrets import KeyRing
from tests.support.drain import drain, inbox, make, ring

TABLES = (
    "attempts", "chain_ends", "chain_gaps", "deliveries", "events", "lanes", "outbox_state",
    "schema_migrations", "webhooks",
)  # fmt: skip


async def walked(
    url: str, keys: KeyRing | None, webhook_id: str = "", noted: Head | None = None
) -> Verdict:
    """Verify the chains of a database on a snapshot of its own."""
    place = Place(url, SystemClock(), Ids())
    ends = {} if noted is None else {webhook_id: [Noted(*noted)]}
    async with transfer_ends.snapshot(place, TABLES) as source:
        return await verify(source, keys, webhook_id, ends)


async def delivered(
    db: Database, records: int, *, urls: int = 1, keys: KeyRing | None = None
) -> tuple[KeyRing, list[str]]:
    """Deliver events of so many records to webhooks; return the keys and the webhooks.

    The receiver refuses every third request, so chains have retries and failures. Its responses
    have the record's body.
    """
    keys = keys or ring()
    count = 0

    async def answer(request: web.Request) -> web.Response:
        nonlocal count
        count += 1
        text = (await request.read()).decode()
        return web.Response(status=500 if count % 3 == 0 else 200, text=text)

    async with AsyncExitStack() as stack:
        box = await stack.enter_async_context(inbox())
        box.answer = answer
        running = await stack.enter_async_context(drain(db, keys))
        webhooks = [await running.webhook(f"{box.url}/{number}") for number in range(urls)]
        for number in range(records):
            await db.write(make, f"record-{number}")
        await running.watch.until("delivery_finished", records * urls)
    return keys, webhooks
