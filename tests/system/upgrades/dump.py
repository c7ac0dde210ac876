"""Write the SQL dump of a release: a database that its own server filled, with waiting deliveries.

    python -m tests.system.upgrades.dump NAME [TREE]

TREE is a checkout of the release, by default this one. It writes dumps/NAME.sqlite.sql and
dumps/NAME.postgres.sql. The server writes contacts through its REST API, and is killed while
requests hang, so that each state of a delivery has rows.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import sqlite3
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from subprocess import PIPE, run

import aiohttp
from aiohttp import web

from tests.architecture.tree import ROOT
from tests.support.databases import PostgresServer
from tests.support.ledger import query
from tests.support.process import free_port
from tests.system.upgrades.releases import DUMPS, KEY_FILE, PORT

EMAIL, PASSWORD = "ana@example.com", "correct horse battery"
TOKEN = re.compile('name="csrf_token" value="([0-9a-f]+)"')
NOISE = re.compile(r"^(?:--.*|SET .*|SELECT pg_catalog\.set_config.*|\\.*|)\n", re.M)
DELIVERIES = 10
"""Five contacts, two webhooks."""
LONG, SHORT = "60", "0.1"
"""Retry schedules, in seconds: one leaves a failed delivery waiting, one ends it."""


class Receiver:
    """Answers with `status`; with None it never answers. Sets `reached` at each request."""

    def __init__(self) -> None:
        self.status: int | None = 200
        self.reached = asyncio.Queue[None]()
        self.end = asyncio.Event()

    async def answer(self, request: web.Request) -> web.Response:
        await request.read()
        self.reached.put_nowait(None)
        if self.status is None:
            await self.end.wait()
        return web.Response(status=self.status or 200)


def settings(tree: Path, url: str, port: int, schedule: str) -> dict[str, str]:
    """Return the environment of a release's commands."""
    return {name: value for name, value in os.environ.items() if "CARTEIRO" not in name} | {
        "PYTHONPATH": str(tree),
        "CARTEIRO_SERVER__HOST": "127.0.0.1",
        "CARTEIRO_SERVER__PORT": str(port),
        "CARTEIRO_DATABASE__URL": url,
        "CARTEIRO_SECRETS__KEY_FILE": str(KEY_FILE),
        "CARTEIRO_EGRESS__ALLOW": "127.0.0.1/32",
        "CARTEIRO_EGRESS__ALLOW_HTTP": "true",
        "CARTEIRO_RETRY__SCHEDULE": schedule,
        "CARTEIRO_LOGGING__LEVEL": "error",
    }


async def serve(tree: Path, environment: Mapping[str, str]) -> asyncio.subprocess.Process:
    """Start the release's server in its own group and wait until it is ready."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway", "serve", cwd=tree, env=dict(environment),
        stdout=PIPE, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    while line := await process.stdout.readline():
        if b"is ready; console at" in line:
            return process
    raise SystemExit("the server did not start")


def command(tree: Path, environment: Mapping[str, str], *words: str, text: str = "") -> str:
    """Run a command of the release; return its last line of output."""
    done = run(
        [sys.executable, "-m", "gateway", *words], cwd=tree, env=dict(environment), input=text,
        text=True, stdout=PIPE, check=True,
    )  # fmt: skip
    return done.stdout.strip().rpartition("\n")[2]


async def add_webhook(http: aiohttp.ClientSession, name: str) -> str:
    """Create a webhook in the console; return the path of its page."""
    async with http.get("/console/webhooks/new") as page:
        [token] = set(TOKEN.findall(await page.text()))
    fields = {
        "csrf_token": token, "url": f"http://127.0.0.1:{PORT}/{name}", "events": "contact.created",
    }  # fmt: skip
    async with http.post("/console/webhooks", data=fields) as page:
        assert re.search("[0-9a-f]{24}", page.url.path), await page.text()
        return re.sub("([0-9a-f]{24}).*", r"\1", page.url.path)


async def pause(http: aiohttp.ClientSession, path: str) -> None:
    """Pause the webhook whose page is at `path`."""
    async with http.get(path) as page:
        token = TOKEN.findall(await page.text())[0]
    async with http.post(f"{path}/pause", data={"csrf_token": token}) as page:
        assert page.status == 200, await page.text()


async def add_contact(http: aiohttp.ClientSession, key: str, name: str) -> None:
    body = {"name": name, "email": f"{name.lower()}@example.com"}
    async with http.post("/api/contacts", json=body, headers={"X-API-Key": key}) as answer:
        assert answer.status == 201, await answer.text()


async def fill(tree: Path, url: str) -> None:
    """Let the release's server fill the database at `url`."""
    receiver, app = Receiver(), web.Application()
    app.router.add_post("/{name}", receiver.answer)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", PORT).start()
    port = free_port()
    environment = settings(tree, url, port, SHORT)
    server = await serve(tree, environment)
    command(
        tree, environment, "user", "add", EMAIL, "--name", "Ana", "--password-stdin",
        text=PASSWORD,
    )  # fmt: skip
    key = command(tree, environment, "key", "add", EMAIL, "--name", "upgrade")
    base = f"http://127.0.0.1:{port}"
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(base, cookie_jar=jar) as http:
        async with http.get("/console/sign-in") as page:
            token = TOKEN.findall(await page.text())[0]
        fields = {"csrf_token": token, "email": EMAIL, "password": PASSWORD}
        async with http.post("/console/sign-in", data=fields) as page:
            assert page.status == 200, await page.text()
        await add_webhook(http, "first")
        paused = await add_webhook(http, "paused")
        await pause(http, paused)
        await add_contact(http, key, "Delivered")
        await receiver.reached.get()
        receiver.status = 500
        await add_contact(http, key, "Exhausted")
        for _ in range(2):
            await receiver.reached.get()
        server.send_signal(signal.SIGTERM)
        await server.wait()
        server = await serve(tree, environment | {"CARTEIRO_RETRY__SCHEDULE": LONG})
        await add_contact(http, key, "Waiting")
        await receiver.reached.get()
        receiver.status = None
        await add_contact(http, key, "Hanging")
        await receiver.reached.get()
        # The webhook has one request at a time now, so this delivery is not claimed.
        await add_contact(http, key, "Unclaimed")
        while (await query(url, "select count(*) from deliveries"))[0] != (DELIVERIES,):
            await asyncio.sleep(0.05)
    os.killpg(server.pid, signal.SIGKILL)
    await server.wait()
    receiver.end.set()
    await runner.cleanup()


async def main(name: str, tree: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "release.db"
        await fill(tree, f"sqlite:///{file}")
        with sqlite3.connect(file) as db:
            (DUMPS / f"{name}.sqlite.sql").write_text("\n".join(db.iterdump()) + "\n")
    server = PostgresServer()
    url = await server.empty()
    await fill(tree, url)
    [(programs,)] = await query(url, "select setting from pg_config where name = 'BINDIR'")
    text = run(
        [Path(str(programs)) / "pg_dump", "--inserts", "--no-owner", "--no-privileges", url],
        stdout=PIPE, text=True, check=True,
    ).stdout  # fmt: skip
    (DUMPS / f"{name}.postgres.sql").write_text(NOISE.sub("", text))


if __name__ == "__main__":
    socket.setdefaulttimeout(10)
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]) if sys.argv[2:] else ROOT))
