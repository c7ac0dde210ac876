"""The outcome of a COMMIT: queried while it runs, after a crash, on another timeline."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

import asyncpg
import pytest

from outbox.database.postgres.fate import Fates, Mark, mark, marking
from outbox.database.postgres.server import Server
from outbox.errors import OutcomeUnknown
from outbox.events import INSERT

TRIALS = 400
SEED = 50601
INSERTED = ("0" * 24, "x.y", "r", 1, None, 0, None, None, b"{}", "d")


def deadline() -> float:
    return asyncio.get_running_loop().time() + 5


async def begun(connection: asyncpg.Connection, event_id: str = "") -> Mark:
    """Write an event in an open transaction, and return its mark."""
    await connection.execute("begin")
    event_id = event_id or "e" * 24
    row = await connection.fetchrow(marking(INSERT), event_id, *INSERTED)
    return await mark(connection, row, (INSERT, event_id))


async def test_a_commit_that_succeeds_during_the_query_of_its_outcome(url: str) -> None:
    """With status and event in one statement, one trial in forty reported it as not committed."""
    dice = random.Random(SEED)
    fates = Fates(Server(url, "", "on"))
    ours = await asyncpg.connect(url)
    for number in range(TRIALS):
        marked = await begun(ours, f"{number:024x}")
        asked = asyncio.create_task(fates.committed(marked, deadline()))
        await asyncio.sleep(dice.uniform(0, 0.012))
        await ours.execute("commit")
        assert await asked, f"trial {number}, seed {SEED}"
    await ours.close()


async def test_a_rolled_back_transaction_is_not_committed(url: str) -> None:
    ours = await asyncpg.connect(url)
    marked = await begun(ours)
    await ours.execute("rollback")
    assert not await Fates(Server(url, "", "on")).committed(marked, deadline())
    await ours.close()


async def test_an_unused_id_is_not_committed(url: str) -> None:
    """As after a crash before any part of the transaction was on disk."""
    ours = await asyncpg.connect(url)
    marked = await begun(ours)
    await ours.execute("rollback")
    ahead = replace(marked, xid=str(int(str(marked.xid)) + 1_000_000))
    assert not await Fates(Server(url, "", "on")).committed(ahead, deadline())
    await ours.close()


async def test_an_id_of_another_transaction_is_not_committed(url: str) -> None:
    ours = await asyncpg.connect(url)
    marked = await begun(ours)
    await ours.execute("commit")
    other = replace(marked, wrote=(INSERT, "f" * 24))
    assert not await Fates(Server(url, "", "on")).committed(other, deadline())
    await ours.close()


async def test_without_an_event_the_status_counts_on_the_same_timeline_alone(url: str) -> None:
    """A standby that was promoted without the transaction reuses its id."""
    ours = await asyncpg.connect(url)
    marked = replace(await begun(ours), wrote=None)
    await ours.execute("commit")
    fates = Fates(Server(url, "", "on"))
    assert await fates.committed(marked, deadline())
    with pytest.raises(OutcomeUnknown):
        await fates.committed(replace(marked, timeline="0000FFFF"), deadline())
    await ours.close()


async def test_a_running_transaction_is_unknown_at_the_deadline(url: str) -> None:
    ours = await asyncpg.connect(url)
    marked = await begun(ours)
    with pytest.raises(OutcomeUnknown):
        await Fates(Server(url, "", "on")).committed(
            marked, asyncio.get_running_loop().time() + 0.3
        )
    await ours.close()
