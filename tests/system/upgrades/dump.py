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
from tests.support.console import signed_in
from tests.support.databases import PostgresServer
from tests.support.ledger import query
from tests.support.process import free_port
from tests.support.waiting import until
from tests.system.upgrades.test_upgrades import DUMPS, KEY_FILE, PORT

EMAIL, PASSWORD = "ana@example.com", "correct horse battery"
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
    async with signed_in(base, EMAIL, PASSWORD) as forms:
        await forms.webhook(f"http://127.0.0.1:{PORT}/first")
        paused = await forms.webhook(f"http://127.0.0.1:{PORT}/paused")
        page = f"/console/webhooks/{paused.id}"
        assert (await forms.submit(f"{page}/pause", at=page)).status == 200
        http = forms.http
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

        async def written() -> bool:
            return await query(url, "select count(*) from deliveries") == [(DELIVERIES,)]

        await until(written)
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
