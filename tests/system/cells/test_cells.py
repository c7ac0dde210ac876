"""Three cells behind HAProxy: owners move between them while everybody writes and receives."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import shutil
import signal
import ssl
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import pytest

from gateway.cli.moving.live_copy import COUNTS
from gateway.domain.accounts import api_keys, users
from gateway.domain.cells.credential_suffix import marked
from outbox.database.migrate import migrate
from outbox.database.transaction import Tx
from outbox.ids import Ids
from outbox.webhooks.key_files import read_key_file
from tests.deploy.test_cell_proxy import SHARED, CellProxy
from tests.deploy.test_proxies import Here
from tests.gateway.cli.moving.test_deaths import LIVE_STEPS
from tests.support.chains import walked
from tests.support.cluster import Cluster
from tests.support.databases import SOURCES, PostgresServer
from tests.support.drain import Got, Inbox, add_webhook, inbox
from tests.support.ledger import query
from tests.support.living import NAMES, record_of
from tests.support.movers import keys_at, opened
from tests.support.process import Serving, environment, free_port, serving_process
from tests.support.site import HASHED
from tests.support.waiting import in_time, until

CELLS = ("one", "two", "three")
LONGEST_SECONDS = 300.0
"""The longest time for which a write of an owner may be refused."""
PASSING = {421, 502, 503, 504}
"""Refusals while an owner moves, or something is killed."""
FEED = """
select id from events where owner_id = '{}' and webhook_id is null and seq is not null order by seq
"""


@dataclass
class Owner:
    """An owner's program: it knows the proxy alone."""

    id: str
    email: str
    key: str
    webhook: str
    cell: str
    http: aiohttp.ClientSession
    base: str
    pause: float
    made: list[str] = field(default_factory=list)
    feed: list[str] = field(default_factory=list)
    cursor: str = ""
    refused: Counter[int] = field(default_factory=Counter)
    """How often each status came; 0: no answer."""
    unexpected: list[tuple[int, str]] = field(default_factory=list)
    stopped: bool = False

    async def live(self) -> None:
        """Write and read until `stopped`."""
        while not self.stopped:
            await self.write()
            await self.read()
            await asyncio.sleep(self.pause)

    async def write(self) -> None:
        """Make a contact and change it."""
        number = len(self.made)
        made = await self._send("POST", "/api/contacts", {"name": f"C {number}"}, f"c-{number}")
        await self._send("PATCH", f"/api/contacts/{made['id']}", {"notes": "changed"})
        self.made.append(made["id"])

    async def read(self) -> bool:
        """Read one more page of the feed; return whether it had events."""
        after = f"&after={self.cursor}" if self.cursor else ""
        page = await self._send("GET", f"/api/events?limit=100{after}", None)
        self.feed += [one["id"] for one in page["data"]]
        self.cursor = page.get("nextCursor") or self.cursor
        return bool(page["data"])

    async def status(self) -> tuple[int, str, str]:
        """Ask once who the caller is; return the status, the cell and the code of a refusal."""
        headers = {"X-API-Key": self.key, "Host": SHARED}
        async with self.http.get(f"{self.base}/api/me", headers=headers, ssl=False) as answer:
            text = await answer.text()
            code = json.loads(text).get("code", "") if text.startswith("{") else ""
            return answer.status, answer.headers.get("X-Carteiro-Cell", ""), code

    async def _send(self, method: str, path: str, body: Any, key: str = "") -> Any:
        """Send one request until somebody takes it."""
        headers = {"X-API-Key": self.key, "Host": SHARED}
        if key:
            headers["Idempotency-Key"] = key
        async with asyncio.timeout(LONGEST_SECONDS):
            while True:
                try:
                    async with self.http.request(
                        method, self.base + path, json=body, headers=headers, ssl=False
                    ) as answer:
                        text = await answer.text()
                        if answer.status < 300:
                            return json.loads(text)
                        self.refused[answer.status] += 1
                        if answer.status not in PASSING:
                            self.unexpected.append((answer.status, text))
                except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError):
                    self.refused[0] += 1
                await asyncio.sleep(0.05)


@dataclass
class Cell:
    """A cell: its database, its files and its server."""

    name: str
    url: str
    folder: Path
    port: int
    server: Serving | None = None

    @property
    def config(self) -> Path:
        return self.folder / f"{self.name}.toml"

    @property
    def keys(self) -> Path:
        return self.folder / f"{self.name}.key"


@dataclass
class Town:
    """The cells, the proxy in front of them, and everybody who uses them."""

    cells: dict[str, Cell]
    proxy: CellProxy
    owners: list[Owner]
    receiver: Inbox
    stack: ExitStack

    async def start(self, name: str) -> None:
        """Start the server of a cell."""
        cell = self.cells[name]
        (folder := cell.folder / f"{name}-server").mkdir(exist_ok=True)
        cell.server = await asyncio.to_thread(
            self.stack.enter_context,
            serving_process(
                folder, CARTEIRO_CONFIG=str(cell.config), CARTEIRO_DATABASE__URL=cell.url,
                CARTEIRO_SERVER__PORT=str(cell.port),
            ),
        )  # fmt: skip

    async def kill(self, name: str) -> None:
        """Kill the server of a cell with -9."""
        server = self.cells[name].server
        assert server is not None
        server.process.send_signal(signal.SIGKILL)
        await asyncio.to_thread(server.process.wait, 10)

    async def command(
        self, source: str, *words: str, module: Sequence[str] = ("gateway",)
    ) -> tuple[int, str]:
        """Run a command as a cell; return its status and what it said."""
        cell = self.cells[source]
        first, *rest = words
        # An operator has a machine of his own; here his command must not take the servers' cores.
        process = await asyncio.create_subprocess_exec(
            "nice", "-n", "19",
            sys.executable, "-m", *module, "--config", str(cell.config), first, *rest,
            cwd=cell.folder, env=environment(cell.folder, CARTEIRO_DATABASE__URL=cell.url),
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        out, _ = await process.communicate()
        return process.returncode or 0, out.decode()

    async def move(
        self, owner: Owner, target: str, module: Sequence[str] = ("gateway",)
    ) -> tuple[int, str]:
        """Run `carteiro move` for an owner; on success tell the proxy."""
        status, said = await self.command(
            owner.cell, "move", owner.email, "--to", target, module=module
        )
        if status == 0:
            owner.cell = target
            await self.push()
        return status, said

    async def push(self) -> None:
        """Tell the proxy where everybody is."""
        status, said = await self.command(
            "one", "cells", "push", "--folder", str(self.proxy.folder),
            "--socket", str(self.proxy.socket),
        )  # fmt: skip
        assert status == 0, said

    async def judge(self) -> int:
        """Check that nothing was lost or is unexpected, order and feeds; return the repeats."""
        for owner in self.owners:
            assert not owner.unexpected, (owner.email, owner.unexpected[:3])
        expected = {
            (owner.webhook, record, name)
            for owner in self.owners
            for record in owner.made
            for name in ("created", "updated")
        }
        await in_time(lambda: expected <= set(map(_seen, self._got)), 120)
        missing = expected - set(map(_seen, self._got))
        assert not missing, (len(missing), sorted(missing)[:5])
        strange = {one for one in map(_seen, self._got) if one not in expected}
        assert not strange, sorted(strange)[:3]
        versions: dict[tuple[str, str], int] = {}
        for got in self._got:
            version = int(got.headers["X-Webhook-Record-Version"])
            key = (got.path, record_of(got))
            assert version >= versions.get(key, 0), key
            versions[key] = version
        for owner in self.owners:
            await self._judge_feed(owner)
        for cell in self.cells.values():
            verdict = await walked(cell.url, read_key_file(cell.keys, Ids()))
            assert not verdict.faults, (cell.name, verdict.faults[:3])
            await self._judge_rest(cell)
        times = Counter((one.path, one.headers["X-Webhook-Id"]) for one in self._got)
        return sum(times.values()) - len(times)

    @property
    def _got(self) -> list[Got]:
        return self.receiver.got

    async def _judge_feed(self, owner: Owner) -> None:
        while await owner.read():
            pass
        feed = [one for (one,) in await query(self.cells[owner.cell].url, FEED.format(owner.id))]
        assert owner.feed == feed, (owner.email, len(owner.feed), len(feed))

    async def _judge_rest(self, cell: Cell) -> None:
        """Check that a cell has no row of owners who live elsewhere."""
        connection = await asyncpg.connect(cell.url)
        try:
            for owner in self.owners:
                if owner.cell != cell.name:
                    rows = await connection.fetch(COUNTS, owner.id)
                    left = {row["name"]: row["count"] for row in rows if row["count"]}
                    assert not left, (cell.name, owner.email, left)
        finally:
            await connection.close()


def _seen(got: Got) -> tuple[str, str, str]:
    return got.path[1:], record_of(got), got.headers["X-Webhook-Event"].partition(".")[2]


@asynccontextmanager
async def town(
    folder: Path, urls: dict[str, str], directory: str, owners: int, pause: float
) -> AsyncIterator[Town]:
    """Serve three cells on these databases, with so many owners in each; judge them at the end."""
    cells = {name: Cell(name, url, folder, free_port()) for name, url in urls.items()}
    for cell in cells.values():
        _write(cell, cells, directory)
        keys_at(cell.keys)
    (home := folder / "proxy").mkdir()
    proxy = CellProxy(home, {cell.name: cell.port for cell in cells.values()})
    connector = aiohttp.TCPConnector(resolver=Here(), limit=0, ssl=ssl.create_default_context())
    async with inbox() as receiver, aiohttp.ClientSession(connector=connector) as http:
        with ExitStack() as stack:
            made = Town(cells, proxy, [], receiver, stack)
            for cell in cells.values():
                made.owners += await _people(cell, owners, receiver, http, proxy.url, pause)
                await made.start(cell.name)
            proxy.start()
            stack.callback(proxy.kill)
            await made.push()
            async with asyncio.TaskGroup() as group:
                for owner in made.owners:
                    group.create_task(owner.live())
                try:
                    yield made
                finally:
                    for owner in made.owners:
                        owner.stopped = True
            print("repeats:", await made.judge())


def _write(cell: Cell, cells: dict[str, Cell], directory: str) -> None:
    peers = ", ".join(
        f'{{ name = "{one.name}", url = "http://127.0.0.1:{one.port}", config = "{one.config}" }}'
        for one in cells.values()
    )
    cell.config.write_text(
        f'[database]\nurl = "{cell.url}"\n[secrets]\nkey_file = "{cell.keys}"\n'
        f'[cell]\nname = "{cell.name}"\npeers = [{peers}]\ndirectory = "{directory}"\n'
        '[egress]\nallow_http = true\nallow = ["127.0.0.0/8"]\n'
        "[limits]\nread_per_second = 0\nwrite_per_second = 0\nconnections_per_address = 1000\n"
    )


async def _people(
    cell: Cell, count: int, receiver: Inbox, http: aiohttp.ClientSession, base: str, pause: float
) -> list[Owner]:
    ring = read_key_file(cell.keys, Ids())
    db = await opened(cell.url)
    made = []
    try:
        for number in range(count):
            email = f"{cell.name}{number}@example.com"
            owner = await db.write(users.add, email=email, name="Owner", password_hash=HASHED)
            key = marked(api_keys.make(db.ids), cell.name, owner)
            await db.write(
                api_keys.add, owner, api_keys.KeyDraft("k", key, ("read", "write"), None)
            )
            webhook, _ = await add_webhook(
                db, ring, receiver.url, *NAMES, owner=owner, ordered=True
            )

            async def point(tx: Tx, webhook: str = webhook) -> None:
                await tx.run(
                    "update webhooks set url = $2 || '/' || id, timeout_ms = 10000 where id = $1",
                    webhook, receiver.url,
                )  # fmt: skip

            await db.write(point)
            made.append(Owner(owner, email, key, webhook, cell.name, http, base, pause))
    finally:
        await db.close()
    return made


DYING = "tests.gateway.cli.moving.dying_move"
STEPS = [
    *dict.fromkeys((when, step) for when, step, *_ in LIVE_STEPS),
    ("before", "stand.3"), ("after", "stand.3"),
]  # fmt: skip
"""Where the command is killed."""
PARTIES = ("command", "source", "target", "proxy", "source database", "target database")
"""What is killed with it."""
MOVES = 24
"""Each step at least once, and each party four times."""
ROUNDS = 2
A_SPAN = 5
"""The contacts that each owner writes in a span of time."""


async def _fresh(server: PostgresServer) -> dict[str, str]:
    return {name: await server.fresh() for name in CELLS}


async def test_a_key_works_before_during_and_after_a_move(
    tmp_path: Path, postgres_server: PostgresServer
) -> None:
    urls, directory = await _fresh(postgres_server), await postgres_server.empty()
    async with town(tmp_path, urls, directory, owners=1, pause=0.1) as cells:
        mover = cells.owners[0]
        assert await mover.status() == (200, "", "")
        await until(lambda: len(mover.made) >= 3, 60)
        dead, said = await cells.move(mover, "two", (DYING, "after", "_rest.1"))
        assert dead == -9, said
        # He may read what there is, and others notice nothing.
        count = len(mover.made)
        assert mover.refused[503] or await _until_refused(mover)
        others = [len(one.made) for one in cells.owners[1:]]
        await until(
            lambda: all(len(o.made) > n for o, n in zip(cells.owners[1:], others, strict=True)), 60
        )
        assert len(mover.made) <= count + 1
        status, said = await cells.command("one", "move", mover.email, "--to", "two")
        assert status == 0, said
        mover.cell = "two"
        # The proxy does not know it yet.
        assert await mover.status() == (421, "two", "misdirected")
        await cells.push()
        assert await mover.status() == (200, "", "")
        count = len(mover.made)
        await until(lambda: len(mover.made) >= count + 3, 60)
        assert not any(one.refused for one in cells.owners[1:])
    for url in (*urls.values(), directory):
        await postgres_server.drop(url)


async def _until_refused(owner: Owner) -> bool:
    await until(lambda: bool(owner.refused[503]), 60)
    return True


@asynccontextmanager
async def clusters() -> AsyncIterator[dict[str, Cluster]]:
    """Three servers of PostgreSQL with the schema, and one for the directory."""
    # Its user may not enter the folder of the test.
    folder = Path(tempfile.mkdtemp(prefix="carteiro-cells-"))
    folder.chmod(0o755)
    made = {name: Cluster(folder / name) for name in (*CELLS, "directory")}
    try:
        for name, cluster in made.items():
            await cluster.create()
            await cluster.start()
            if name in CELLS:
                db = await opened(cluster.url)
                await migrate(db, SOURCES)
                await db.close()
        yield made
    finally:
        for cluster in made.values():
            await cluster.close()
        shutil.rmtree(folder, ignore_errors=True)


@asynccontextmanager
async def busy(folder: Path, pause: float) -> AsyncIterator[tuple[Town, dict[str, Cluster]]]:
    """Serve three cells with 60 owners, each on a server of its own that can be killed."""
    async with clusters() as servers:
        urls = {name: servers[name].url for name in CELLS}
        async with town(folder, urls, servers["directory"].url, owners=20, pause=pause) as cells:
            yield cells, servers


async def _killed(
    cells: Town, servers: dict[str, Cluster], party: str, ends: tuple[str, str]
) -> None:
    """Kill a party with -9, and let it come back."""
    who, _, database = party.partition(" ")
    if who == "command":
        return
    if who == "proxy":
        cells.proxy.kill()
        cells.proxy.start()
        return
    name = ends[0] if who == "source" else ends[1]
    if database:
        await servers[name].kill()
        await servers[name].start()
    else:
        await cells.kill(name)
        await cells.start(name)


@pytest.mark.timeout(3_600)
async def test_moves_with_kills_lose_nothing(tmp_path: Path) -> None:
    """Owners move at random; the command is killed at each step, and something with it."""
    rng, repeated = random.Random(1), 0
    async with busy(tmp_path, pause=2.0) as (cells, servers):
        for number, (when, step) in zip(range(MOVES), itertools.cycle(STEPS), strict=False):
            party = PARTIES[number % len(PARTIES)]
            owner = rng.choice(cells.owners)
            ends = (owner.cell, rng.choice([name for name in CELLS if name != owner.cell]))
            status, said = await cells.move(owner, ends[1], (DYING, when, step))
            assert status == -9, (when, step, said)
            await _killed(cells, servers, party, ends)
            for _ in range(20):
                status, said = await cells.move(owner, ends[1])
                if status == 0:
                    break
                repeated += 1
                await asyncio.sleep(1)
            assert status == 0, (when, step, party, said)
        refused = dict(sum((one.refused for one in cells.owners), Counter[int]()))
        print("repeated:", repeated, "refused:", refused)


@pytest.mark.timeout(3_600)
async def test_others_see_nothing_of_moves_and_of_a_cell_that_is_down(tmp_path: Path) -> None:
    async with busy(tmp_path, pause=4.0) as (cells, servers):
        await _written(cells.owners, 5)
        await _beside_moves(cells)
        await _one_down(cells, servers)


async def _beside_moves(cells: Town) -> None:
    """Move a few owners again and again, while the others write."""
    moving, others = cells.owners[::10], [one for at, one in enumerate(cells.owners) if at % 10]
    before = sum((one.refused for one in others), Counter[int]())
    moves, written = 0, asyncio.create_task(_written(others, 2 * A_SPAN))
    while moves < ROUNDS or not written.done():
        owner = moving[moves % len(moving)]
        status, said = await cells.move(owner, _next(owner.cell))
        assert status == 0, said
        moves += 1
    await written
    print("moves:", moves)
    assert not sum((one.refused for one in others), Counter[int]()) - before


def _next(cell: str) -> str:
    return CELLS[(CELLS.index(cell) + 1) % len(CELLS)]


async def _written(owners: Sequence[Owner], count: int) -> None:
    """Wait until each owner has made so many contacts more."""
    wanted = {one.id: len(one.made) + count for one in owners}
    await until(lambda: all(len(one.made) >= wanted[one.id] for one in owners), 300)


async def _one_down(cells: Town, servers: dict[str, Cluster]) -> None:
    """Kill a whole cell again and again; owners of the others see nothing of it."""
    others = [one for one in cells.owners if one.cell != "three"]
    before = sum((one.refused for one in others), Counter[int]())
    for _ in range(ROUNDS):
        await cells.kill("three")
        await servers["three"].kill()
        await _written(others, A_SPAN)
        await servers["three"].start()
        await cells.start("three")
        await _written(cells.owners, 1)
    assert not sum((one.refused for one in others), Counter[int]()) - before
