"""Rows of groups are written once, also when sessions end and callers go; totals have no key."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Mapping

import asyncpg
import pytest

from outbox.database.postgres import server
from outbox.database.transaction import Database, Insert, Tx
from outbox.errors import DatabaseUnavailable, OutcomeUnknown
from tests.outbox.database.postgres.conftest import Open
from tests.outbox.database.postgres.test_groups import put

SECONDS = 3.0
CALLERS = 60
KILLS = 10
SEED = 50602
TOTAL = Insert(
    "tallies",
    ("owner_id", "kind", "slot", "n"),
    "on conflict (owner_id, kind, slot) do update set n = tallies.n + excluded.n",
    sums=True,
    referred=False,
)
_END = """
select pg_terminate_backend(pid) from pg_stat_activity
where pid <> pg_backend_pid() and datname = current_database()
"""


async def put_and_count(tx: Tx, name: str, *, begun: bool) -> None:
    """Put a row off with its event and a total; `begun` makes it a transaction of its own."""
    if begun:
        await tx.one("select 1 as one")
    await put(tx, name)
    tx.later(TOTAL, ("o", "nodes", int(name) % 3, 1))


class Callers:
    """Callers that write on several handles, and what they know of their rows afterwards."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._names = (f"{number:06}" for number in itertools.count())
        self.written: set[str] = set()
        self.perhaps: set[str] = set()

    async def one(self, dbs: list[Database], end: float) -> None:
        while time.monotonic() < end:
            name = next(self._names)
            begun = self._dice.random() < 0.1
            unit = asyncio.create_task(
                self._dice.choice(dbs).write(put_and_count, name, begun=begun)
            )
            if self._dice.random() < 0.02:
                await asyncio.sleep(self._dice.uniform(0, 0.02))
                unit.cancel()
            try:
                await unit
                self.written.add(name)
            except (asyncio.CancelledError, OutcomeUnknown):
                self.perhaps.add(name)
            except DatabaseUnavailable:
                # It is not written.
                continue


async def kill(url: str, dice: random.Random) -> None:
    """End all other sessions, again and again."""
    connection = await asyncpg.connect(url)
    try:
        for _ in range(KILLS):
            await asyncio.sleep(dice.uniform(0, 2 * SECONDS / KILLS))
            await connection.execute(_END)
    finally:
        await connection.close()


async def counted(url: str) -> Mapping[str, int]:
    """Return how many events each row has, and all totals together under an empty name."""
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch(
            "select n.id, count(e.id) as n from nodes n full join events e on e.record_id = n.id"
            " group by n.id union all select '', cast(sum(n) as bigint) from tallies"
        )
    finally:
        await connection.close()
    return {row["id"]: row["n"] for row in rows}


@pytest.mark.proof
@pytest.mark.parametrize("pooled", [False, True])
async def test_each_row_is_written_once(
    url: str, handle: Open, monkeypatch: pytest.MonkeyPatch, *, pooled: bool
) -> None:
    """Behind a pooler, a group is a transaction with BEGIN and COMMIT."""

    async def checked(*_: object) -> None:
        """Here nothing renames statements, and nothing has to."""

    monkeypatch.setattr(server, "check_pooler", checked)
    options = {"direct_url": url} if pooled else {}
    dice = random.Random(SEED)
    dbs = [await handle(url, **options), await handle(url, **options)]
    callers = Callers(dice)
    killing = asyncio.create_task(kill(url, dice))
    end = time.monotonic() + SECONDS
    await asyncio.gather(*(callers.one(dbs, end) for _ in range(CALLERS)))
    await killing
    found = dict(await counted(url))
    assert found.pop("") == len(found), f"seed {SEED}"
    assert set(found.values()) == {1}
    assert callers.written <= found.keys() <= callers.written | callers.perhaps, f"seed {SEED}"
    assert len(callers.written) > CALLERS
