"""Baselines: servers on aiohttp and uvloop without the product's code.

`echo` parses a posted body and returns it. `statements FILE` writes a contact and its event with
each statement awaited through aiosqlite. `fixed BODY…` responds with fixed bytes, selected by the
paths /0, /1, …; it parses a posted body.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable

import aiosqlite
import msgspec
import uvloop
from aiohttp import web

JSON = "application/json"
Handler = Callable[[web.Request], Awaitable[web.Response]]

CONTACT = """
insert into contacts (id, owner_id, version, created_at, name, email, phone, position, tags, source,
  folded, sort_name)
values (?1, ?2, 1, ?3, ?4, ?5, ?6, ?7, '[]', 'api', ?8, ?9)
"""
EVENT = """
insert into events (id, owner_id, name, record_id, record_version, occurred_at, request_id, body,
  body_digest)
values (?1, ?2, 'contact.created', ?3, 1, ?4, ?1, ?5, ?6)
"""


async def echo(request: web.Request) -> web.Response:
    body = await request.read()
    msgspec.json.decode(body)
    return web.Response(body=body, status=201, content_type=JSON)


class Statements:
    """The usual design with an async driver: one connection, each statement awaited."""

    def __init__(self, db: aiosqlite.Connection) -> None:
        self._db = db
        # One connection has one transaction at a time.
        self._alone = asyncio.Lock()

    async def create(self, request: web.Request) -> web.Response:
        given = msgspec.json.decode(await request.read())
        now = time.time_ns() // 1000
        record, event, owner = (os.urandom(12).hex() for _ in range(3))
        name, email = given["name"], given["email"]
        shown = {"id": record, **given, "createdAt": now}
        body = msgspec.json.encode({"event": "contact.created", "timestamp": now, "data": shown})
        folded = name.casefold()
        async with self._alone:
            await self._db.execute("begin immediate")
            await self._db.execute(
                CONTACT,
                (record, owner, now, name, email, given["phone"], given["position"],
                 f"{folded} {email}", folded),
            )  # fmt: skip
            await self._db.execute(
                EVENT, (event, owner, record, now, body, hashlib.sha256(body).hexdigest())
            )
            await self._db.execute("commit")
        return web.Response(body=msgspec.json.encode(shown), status=201, content_type=JSON)


def fixed(bodies: list[str]) -> Handler:
    served = [body.encode() for body in bodies]

    async def handle(request: web.Request) -> web.Response:
        if request.method == "POST":
            msgspec.json.decode(await request.read())
        body = served[int(request.match_info["path"])]
        return web.Response(body=body, content_type=JSON)

    return handle


async def main(words: list[str]) -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    app = web.Application()
    db = None
    if words[0] == "statements":
        db = await aiosqlite.connect(words[1], isolation_level=None)
        await db.execute("pragma journal_mode = wal")
        await db.execute("pragma synchronous = full")
        app.router.add_post("/{path:.*}", Statements(db).create)
        # As the product's server does; it also speeds this one up.
        sys.setswitchinterval(0.0005)
    elif words[0] == "fixed":
        app.router.add_get("/{path:.*}", fixed(words[1:]))
        app.router.add_post("/{path:.*}", fixed(words[1:]))
    else:
        app.router.add_post("/{path:.*}", echo)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    print(json.dumps({"port": runner.addresses[0][1]}), flush=True)
    await stopping.wait()
    await runner.cleanup()
    if db is not None:
        await db.close()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1:]))
