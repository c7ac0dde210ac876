"""A server that starts between a kill of the command and its repetition leaves the owner alone."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import AbstractContextManager, ExitStack, closing
from pathlib import Path

from tests.gateway.cli.moving.test_deaths import CLOSED, killed
from tests.support.databases import SqliteFiles
from tests.support.drain import inbox
from tests.support.moved import goes_on, run, settings
from tests.support.movers import House, furnish, keys_at, look
from tests.support.process import Serving, serving_process

ATTEMPTS = "select count(*) from attempts where owner_id = ?"
WAITING = 2
"""Events of the other owner that his webhook without failures has not got."""
POINT = "update webhooks set url = ? || '/' || owner_id"


def test_nothing_is_sent_and_writes_are_refused(tmp_path: Path, sqlite_files: SqliteFiles) -> None:
    house = asyncio.run(_furnished(sqlite_files, tmp_path))
    target, keys = f"sqlite:///{tmp_path}/target.db", tmp_path / "target.key"
    keys_at(keys)
    killed(house, target, keys, "after", CLOSED)
    before = asyncio.run(look(house.url, house.owners))
    attempts = count(house)
    sent = asyncio.run(_serve(house))
    assert sent
    assert house.mover not in sent
    assert count(house) == attempts
    run(house, target, keys)
    assert asyncio.run(look(target, house.owners)).feed == before.feed
    asyncio.run(goes_on(house, target, keys))


async def _furnished(files: SqliteFiles, home: Path) -> House:
    return await furnish(await files.fresh(home), home / "source.key")


def count(house: House) -> int:
    """Return how many attempts the log has of the first owner."""
    with closing(sqlite3.connect(house.url.removeprefix("sqlite:///"))) as db:
        [(attempts,)] = db.execute(ATTEMPTS, [house.mover])
    return int(attempts)


async def _serve(house: House) -> set[str]:
    """Serve the source until the other owner's deliveries arrived; return whose arrived."""
    async with inbox() as receiver:
        with closing(sqlite3.connect(house.url.removeprefix("sqlite:///"))) as db, db:
            db.execute(POINT, [receiver.url])
        with ExitStack() as stack:
            server = await asyncio.to_thread(stack.enter_context, _serving(house))
            refused, body, headers = await asyncio.to_thread(_write, server, house)
            assert (refused, json.loads(body)["code"]) == (503, "moving")
            assert headers["Retry-After"] == "1"
            await receiver.until(WAITING, f"/{house.owners[1]}", 40)
            await asyncio.to_thread(server.end)
        return {one.path[1:] for one in receiver.got}


def _serving(house: House) -> AbstractContextManager[Serving]:
    return serving_process(
        house.keys.parent, CARTEIRO_EGRESS__ALLOW_HTTP="true",
        CARTEIRO_EGRESS__ALLOW="127.0.0.0/8", **settings(house),
    )  # fmt: skip


def _write(server: Serving, house: House) -> tuple[int, bytes, dict[str, str]]:
    body = {"name": "Refused"}
    return server.ask("/api/contacts", method="POST", body=body, headers=house.headers)
