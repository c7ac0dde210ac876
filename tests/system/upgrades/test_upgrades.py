"""A database of each release is upgraded: nothing changes but its schema, and what waits arrives.

A refused upgrade changes nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import aiohttp
import pytest

from tests.support.engines import Engine, empty_database
from tests.support.faults import ENGINES
from tests.support.ledger import query
from tests.support.process import carteiro
from tests.support.product import NotStarted, Product
from tests.support.receiver import Received, receiver
from tests.system.upgrades.releases import (
    LEDGER,
    RELEASES,
    WAITING,
    everything,
    kept,
    load,
    missing,
    product,
    run_script,
    send_to,
    settled,
)


def names(requests: Sequence[Received]) -> list[str]:
    """Return the names of the contacts in what a receiver got."""
    return [str(json.loads(request.body)["data"]["name"]) for request in requests]


async def write(server: Product, folder: Path, url: str) -> None:
    """Write a contact with a new key."""
    settings = {
        "CARTEIRO_DATABASE__URL": url, "CARTEIRO_SECRETS__KEY_FILE": str(folder / "test.key")
    }  # fmt: skip
    done = await asyncio.to_thread(
        carteiro, "key", "add", "ana@example.com", "--name", "new", folder=folder, **settings
    )
    assert done.returncode == 0, done.stderr
    headers = {"X-API-Key": done.stdout.strip()}
    async with (
        aiohttp.ClientSession(server.address, headers=headers) as http,
        http.post("/api/contacts", json={"name": "Written"}) as answer,
    ):
        assert answer.status == 201, await answer.text()


@ENGINES
@pytest.mark.parametrize("release", RELEASES)
async def test_an_upgrade_keeps_all_rows_and_delivers_what_waits(
    release: str, engine: Engine, tmp_path: Path
) -> None:
    async with empty_database(engine, tmp_path) as url, receiver() as target:
        await load(release, engine, url)
        await send_to(url, int(target.url.rpartition(":")[2].partition("/")[0]))
        before = await kept(url)
        server = product(tmp_path, url)
        try:
            await server.start()
            await target.wait(len(WAITING))
            await settled(url)
            after = await kept(url)
            arrived = names(target.requests)
            await write(server, tmp_path, url)
            await target.wait(len(WAITING) + 1)
            assert names(target.requests[len(WAITING) :]) == ["Written"]
            assert await server.stop() == 0
            assert await missing(url) == []
        finally:
            await server.close()
        assert sorted(arrived) == sorted(WAITING)
        for table in ("contacts", "events", "webhooks", "keys"):
            assert after[table] == before[table], table
        # Attempts of the dump stay as they were; each delivery that waited has one more.
        old = set(before["attempts"])
        assert old <= set(after["attempts"])
        assert len(after["attempts"]) == len(old) + len(WAITING)
        changed = [
            (then[-1], now[-1])
            for then, now in zip(before["deliveries"], after["deliveries"], strict=True)
            if then != now
        ]
        assert changed == [("waits", "delivered")] * len(WAITING)
        states = Counter(str(row[-1]) for row in after["deliveries"])
        print(json.dumps({"upgrade": release, "engine": engine, **states, "arrived": len(arrived)}))
        assert states == {"delivered": 4, "exhausted": 1, "waits": 5}


REFUSED = {
    "a changed migration": (
        "update schema_migrations set checksum = 'x' where component = 'gateway' and number = 5",
        "gateway 0005_billing was changed",
    ),
    "a newer schema": (
        "insert into schema_migrations (component, number, name, checksum, applied_at)"
        " values {later}",
        "the database schema is newer than this program (gateway 0099",
    ),
    "a gap": (
        "delete from schema_migrations where component = 'gateway' and number = 4",
        "has the migration gateway 0005 but not 0004",
    ),
}
LATER = ", ".join(f"('gateway', {n}, '{n:04d}_later', 'x', 1)" for n in range(6, 100))


@ENGINES
@pytest.mark.parametrize("fault", REFUSED)
async def test_a_refused_upgrade_changes_nothing(
    fault: str, engine: Engine, tmp_path: Path
) -> None:
    """The outbox's migrations would come first, and the fault is in the gateway's."""
    statement, message = REFUSED[fault]
    async with empty_database(engine, tmp_path) as url:
        await load("b7822d0", engine, url)
        await run_script(url, statement.format(later=LATER))
        before = await everything(engine, url)
        server = product(tmp_path, url)
        try:
            with pytest.raises(NotStarted) as refused:
                await server.start()
        finally:
            await server.close()
        assert message in str(refused.value)
        assert await everything(engine, url) == before
        ledger = await query(url, LEDGER)
        assert len([row for row in ledger if row[0] == "outbox"]) == 1
