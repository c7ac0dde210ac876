"""Two servers and an owner who writes, reads his feed and receives while he moves between them."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import aiohttp
import asyncpg

from outbox.database.transaction import Tx
from outbox.ids import Ids
from outbox.webhooks.key_files import read_key_file
from tests.support.drain import Got, Inbox, add_webhook, inbox
from tests.support.moved import Pair
from tests.support.movers import opened
from tests.support.process import Serving, environment, serving_process

CLOSED_SECONDS = 400
"""The longest time for which tests that kill both servers again and again close an owner."""
NAMES = ("contact.created", "contact.updated")
POINT = "update webhooks set url = $1 || '/' || id, timeout_ms = 5000"
FEED = """
select id from events where owner_id = $1 and webhook_id is null and seq is not null order by seq
"""


@dataclass
class Caller:
    """An owner's program: it writes to whichever server takes it, and reads the feed there."""

    http: aiohttp.ClientSession
    bases: list[str]
    headers: dict[str, str]
    at: int = 0
    made: list[str] = field(default_factory=list)
    unexpected: list[tuple[int, str]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)
    feed: list[str] = field(default_factory=list)
    cursor: str = ""
    stopped: bool = False
    progress: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def write(self) -> None:
        """Make contacts, change each once and delete some, until `stopped`."""
        while not self.stopped:
            number = len(self.made)
            path = "/api/contacts"
            made = await self.send("POST", path, {"name": f"Live {number}"}, f"new-{number}")
            await self.send("PATCH", f"{path}/{made['id']}", {"notes": "changed"}, "")
            if number % 5 == 4:
                await self.send("DELETE", f"{path}/{made['id']}", None, "")
            async with self.progress:
                self.made.append(made["id"])
                self.progress.notify_all()

    async def send(self, method: str, path: str, body: Any, key: str) -> Any:
        """Send one write until a server takes it."""
        headers = self.headers | ({"Idempotency-Key": key} if key else {})
        async with asyncio.timeout(CLOSED_SECONDS):
            while True:
                began = monotonic()
                try:
                    async with self.http.request(
                        method, self.bases[self.at] + path, json=body, headers=headers
                    ) as answer:
                        text = await answer.text()
                        if answer.status < 300:
                            self.seconds.append(monotonic() - began)
                            return json.loads(text or "null")
                        if answer.status == 404 and method == "DELETE":
                            # The one before had no answer.
                            return None
                        moving = answer.status == 503 and '"moving"' in text
                        if not moving and not (answer.status == 401 and len(self.bases) > 1):
                            self.unexpected.append((answer.status, text))
                except aiohttp.ClientConnectionError:
                    pass
                self.refused.append(began)
                self.at = (self.at + 1) % len(self.bases)
                # As a proxy that tries the other server soon.
                await asyncio.sleep(0.01)

    async def read(self) -> None:
        """Read the feed where it writes, until `stopped`."""
        while not self.stopped:
            await self.read_on()
            await asyncio.sleep(0.02)

    async def read_on(self) -> bool:
        """Read one more page; return whether it had events."""
        page = await self.page()
        self.feed += [one["id"] for one in page["data"]]
        self.cursor = page.get("nextCursor") or self.cursor
        return bool(page["data"])

    async def page(self) -> Any:
        path = "/api/events?limit=100" + (f"&after={self.cursor}" if self.cursor else "")
        async with asyncio.timeout(CLOSED_SECONDS):
            while True:
                try:
                    async with self.http.get(
                        self.bases[self.at] + path, headers=self.headers
                    ) as answer:
                        if answer.status == 200:
                            return await answer.json()
                        text = await answer.text()
                        if answer.status != 401 and '"moving"' not in text:
                            self.unexpected.append((answer.status, text))
                except aiohttp.ClientConnectionError:
                    pass
                await asyncio.sleep(0.02)

    async def until(self, count: int) -> None:
        """Wait until as many contacts are made."""
        async with asyncio.timeout(90), self.progress:
            await self.progress.wait_for(lambda: len(self.made) >= count)

    @property
    def p99(self) -> float:
        """Return the time in seconds in which 99 of 100 writes were done."""
        ordered = sorted(self.seconds)
        return ordered[int(len(ordered) * 0.99)] if ordered else 0.0


@dataclass
class Life:
    """Both servers, the callers of both owners and their receiver."""

    pair: Pair
    receiver: Inbox
    webhook: str
    mover: Caller
    other: Caller
    servers: list[Serving]
    stack: ExitStack

    @property
    def folder(self) -> Path:
        return self.pair.keys.parent

    async def move(self, *more: str, module: Sequence[str] = ("gateway",)) -> tuple[int, str]:
        """Run the command; return its status and what it said."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", *module, *self.pair.words(*more),
            cwd=self.folder, env=environment(self.folder, **settings(self.pair, 0)),
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        out, _ = await process.communicate()
        return process.returncode or 0, out.decode()

    async def restart(self, which: int) -> None:
        """Kill a server with -9, and start it again on its port."""
        self.servers[which].process.kill()
        await asyncio.to_thread(self.servers[which].process.wait, 120)
        await self.start(which, str(self.servers[which].port))

    async def start(self, which: int, port: str = "") -> None:
        (folder := self.folder / f"server{which}").mkdir(exist_ok=True)
        more = {"CARTEIRO_SERVER__PORT": port} if port else {}
        serving = await asyncio.to_thread(
            self.stack.enter_context, serving_process(folder, **settings(self.pair, which), **more)
        )
        self.servers[which : which + 1] = [serving]

    async def judge(self) -> None:
        """Check that nothing was lost, that order and feed are whole, and what was repeated."""
        assert not self.mover.unexpected, self.mover.unexpected[:3]
        assert not self.other.unexpected, self.other.unexpected[:3]
        path = f"/{self.webhook}"
        expected = {(record, name) for record in self.mover.made for name in ("created", "updated")}

        def arrived() -> list[Got]:
            return [got for got in self.receiver.got if got.path == path]

        def seen() -> set[tuple[str, str]]:
            return {
                (record_of(got), got.headers["X-Webhook-Event"].split(".")[1]) for got in arrived()
            }

        async with asyncio.timeout(60), self.receiver.changed:
            await self.receiver.changed.wait_for(lambda: expected <= seen())
        versions: dict[str, int] = {}
        for got in arrived():
            record, version = record_of(got), int(got.headers["X-Webhook-Record-Version"])
            assert version >= versions.get(record, 0), (record, version)
            versions[record] = version
        await self.judge_feed()

    async def judge_feed(self) -> None:
        """Check that the feed goes on after a move, without a hole and in its order."""
        while await self.mover.read_on():
            pass
        connection = await asyncpg.connect(self.pair.target)
        try:
            feed = [row["id"] for row in await connection.fetch(FEED, self.pair.house.mover)]
        finally:
            await connection.close()
        assert self.mover.feed == feed[len(feed) - len(self.mover.feed) :], (
            len(feed), len(self.mover.feed), feed[-3:], self.mover.feed[-3:],
        )  # fmt: skip

    @property
    def repeated(self) -> int:
        """Return how many requests came again."""
        got = Counter((one.path, one.headers["X-Webhook-Id"]) for one in self.receiver.got)
        return sum(count - 1 for count in got.values())


async def _events(tx: Tx, owner_id: str) -> list[str]:
    return [row["id"] for row in await tx.all(FEED, owner_id)]


def record_of(got: Got) -> str:
    """Return the id of the record that a request is about."""
    return str(json.loads(got.body)["data"]["id"])


def settings(pair: Pair, which: int) -> dict[str, str]:
    """Return the settings of one of both servers."""
    there = {
        "CARTEIRO_DATABASE__URL": pair.target, "CARTEIRO_SECRETS__KEY_FILE": str(pair.keys),
    }  # fmt: skip
    return (there if which else pair.settings) | {
        "CARTEIRO_EGRESS__ALLOW_HTTP": "true", "CARTEIRO_EGRESS__ALLOW": "127.0.0.0/8",
        "CARTEIRO_LIMITS__READ_PER_SECOND": "0", "CARTEIRO_LIMITS__WRITE_PER_SECOND": "0",
    }  # fmt: skip


@asynccontextmanager
async def living(pair: Pair) -> AsyncIterator[Life]:
    """Serve both databases, and let both owners write."""
    house = pair.house
    async with inbox() as receiver, aiohttp.ClientSession() as http:
        db = await opened(house.url)
        try:
            ring = read_key_file(house.keys, Ids())
            webhook, _ = await add_webhook(
                db, ring, receiver.url, *NAMES, owner=house.mover, ordered=True
            )

            async def point(tx: Tx) -> None:
                await tx.run(POINT, receiver.url)

            await db.write(point)
            events = await db.read(_events, house.mover)
        finally:
            await db.close()
        with ExitStack() as stack:
            # It has read the feed so far.
            mover = Caller(http, [], dict(house.headers), cursor=events[-1])
            other = Caller(http, [], dict(house.other_headers))
            life = Life(pair, receiver, webhook, mover, other, [], stack)
            await life.start(0)
            await life.start(1)
            mover.bases = [server.url for server in life.servers]
            other.bases = [life.servers[0].url]
            async with asyncio.TaskGroup() as group:
                for work in (mover.write(), mover.read(), other.write()):
                    group.create_task(work)
                try:
                    yield life
                finally:
                    mover.stopped = other.stopped = True
            await life.judge()
