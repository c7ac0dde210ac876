"""Webhooks that begin to hang hold up no other owner, though no slot of theirs is free yet."""

from __future__ import annotations

import asyncio

from aiohttp import web

from outbox.database.transaction import Database
from outbox.webhooks.secrets import KeyRing
from tests.support.drain import Inbox, Still, add_webhook, drain, inbox, make_many, ring

HANGING, HEALTHY = "1" * 24, "2" * 24
SLOTS = 16
LANES = 3 * SLOTS
EVENTS = 3


def hang(box: Inbox) -> asyncio.Event:
    """Let the receiver hang at /hang until the returned event is set."""
    end = asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        if request.path == "/hang":
            await end.wait()
        return web.Response()

    box.answer = answer
    return end


async def webhooks(db: Database, key: KeyRing, box: Inbox) -> None:
    for _ in range(LANES):
        await add_webhook(db, key, f"{box.url}/hang", owner=HANGING)
    await add_webhook(db, key, f"{box.url}/healthy", owner=HEALTHY)


async def test_an_owner_is_served_while_the_webhooks_of_another_begin_to_hang(db: Database) -> None:
    async with inbox() as box:
        end = hang(box)
        key = ring()
        await webhooks(db, key, box)
        async with drain(db, key, Still(), slots=SLOTS):
            await db.write(make_many, 2, HANGING)
            await box.until(SLOTS, "/hang")
            await db.write(make_many, EVENTS, HEALTHY)
            await box.until(EVENTS, "/healthy")
            end.set()
