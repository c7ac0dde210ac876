"""Baselines on aiohttp and uvloop without the product's code.

`echo` parses a posted body and returns it. `statements FILE` writes a contact and its event with
each statement awaited through aiosqlite. `fixed` responds with one of the texts of its input,
selected by the path /N. `send URL FILE` signs and posts each event of the file, and no more.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import aiosqlite
import msgspec
import uvloop
from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector, web

from gateway.server.config import Delivery

JSON = "application/json"
SECRET = "whsec_" + base64.b64encode(bytes(32)).decode()

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


async def post_all(session: ClientSession, url: str, events: Iterator[list[str]]) -> None:
    """Sign and post one event after the other until none is left."""
    for event_id, text in events:
        body, now = text.encode(), str(int(time.time()))
        plain = hmac.digest(SECRET.encode(), body, "sha256").hex()
        content = f"{event_id}.{now}.".encode() + body
        key = base64.b64decode(SECRET.removeprefix("whsec_"))
        trio = base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()
        headers = {
            "Content-Type": JSON, "X-Webhook-Event": "contact.created",
            "X-Webhook-Timestamp": now, "X-Webhook-Signature": f"sha256={plain}",
            "User-Agent": "Carteiro-Webhook/1.0", "X-Webhook-Id": event_id,
            "X-Webhook-Attempt": "1", "X-Webhook-Record-Version": "1",
            "webhook-id": event_id, "webhook-timestamp": now, "webhook-signature": f"v1,{trio}",
        }  # fmt: skip
        async with session.post(url, data=body, headers=headers, allow_redirects=False) as answer:
            await answer.read()
            assert answer.status == 200


async def send(url: str, file: str) -> None:
    """Post the events of a file, as many at once as the product's default."""
    events = iter(json.loads(Path(file).read_text()))
    async with ClientSession(
        connector=TCPConnector(limit=0), cookie_jar=DummyCookieJar(),
        timeout=ClientTimeout(total=15), auto_decompress=False,
    ) as session:  # fmt: skip
        await asyncio.gather(*(post_all(session, url, events) for _ in range(Delivery().slots)))
    print(json.dumps("sent"), flush=True)


async def serve(kind: str, file: str = "") -> None:
    """Serve until the end of the process."""
    app = web.Application()
    if kind == "statements":
        db = await aiosqlite.connect(file, isolation_level=None)
        await db.execute("pragma journal_mode = wal")
        await db.execute("pragma synchronous = full")
        # As the product's server does; it also speeds this one up.
        sys.setswitchinterval(0.0005)
        app.router.add_post("/{path:.*}", Statements(db).create)
    elif kind == "fixed":
        bodies = [body.encode() for body in json.load(sys.stdin)]

        async def fixed(request: web.Request) -> web.Response:
            return web.Response(body=bodies[int(request.match_info["path"])], content_type=JSON)

        app.router.add_get("/{path:.*}", fixed)
    else:
        app.router.add_post("/{path:.*}", echo)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    print(json.dumps({"port": runner.addresses[0][1]}), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(send(*sys.argv[2:]) if sys.argv[1] == "send" else serve(*sys.argv[1:]))
