"""The outcome of a COMMIT: queried while it runs, after a crash, on another timeline."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import asyncpg
import pytest

from outbox.database.postgres.commit_outcome import CommitOutcomes, Mark, Session, mark, marking
from outbox.database.postgres.faults import LOST
from outbox.database.postgres.hosts import Session as DriverSession
from outbox.database.postgres.server import Server
from outbox.database.sql import insert_text
from outbox.errors import OutcomeUnknown
from outbox.events import INSERT
from tests.support.waiting import HANG_SECONDS

ONE_EVENT = insert_text(INSERT.table, INSERT.columns, 1, "")
INSERTED = ("0" * 24, "x.y", "r", 1, None, 0, None, None, b"{}", "d", None)


def deadline() -> float:
    return asyncio.get_running_loop().time() + HANG_SECONDS


async def begun(connection: asyncpg.Connection, event_id: str = "") -> Mark:
    """Write an event in an open transaction, and return its mark."""
    await connection.execute("begin")
    event_id = event_id or "e" * 24
    row = await connection.fetchrow(marking(ONE_EVENT), event_id, *INSERTED)
    return await mark(connection, row, (INSERT, event_id))


async def test_a_session_hears_what_the_server_warns_of(url: str) -> None:
    """A COMMIT that a standby did not confirm succeeds with a warning."""
    ours = await asyncpg.connect(url, connection_class=DriverSession)
    for severity, heard in (("warning", True), ("notice", False)):
        await ours.execute(f"do $$ begin raise {severity} 'so'; end $$")
        assert [ours.heard_warning(), ours.heard_warning()] == [heard, False]
    await ours.close()


async def test_an_unused_id_is_not_committed(url: str) -> None:
    """As after a crash before any part of the transaction was on disk."""
    ours = await asyncpg.connect(url)
    marked = await begun(ours)
    await ours.execute("rollback")
    ahead = replace(marked, xid=str(int(str(marked.xid)) + 1_000_000))
    assert not await CommitOutcomes(Server(url, "", "on")).committed(ahead, deadline())
    await ours.close()


async def test_an_id_of_another_transaction_is_not_committed(url: str) -> None:
    ours = await asyncpg.connect(url)
    marked = await begun(ours)
    await ours.execute("commit")
    other = replace(marked, wrote=(INSERT, "f" * 24))
    assert not await CommitOutcomes(Server(url, "", "on")).committed(other, deadline())
    await ours.close()


async def test_without_an_event_the_status_counts_on_the_same_timeline_alone(url: str) -> None:
    """A standby that was promoted without the transaction reuses its id."""
    ours = await asyncpg.connect(url)
    marked = replace(await begun(ours), wrote=None)
    await ours.execute("commit")
    fates = CommitOutcomes(Server(url, "", "on"))
    assert await fates.committed(marked, deadline())
    with pytest.raises(OutcomeUnknown):
        await fates.committed(replace(marked, timeline="0000FFFF"), deadline())
    await ours.close()


async def test_a_running_transaction_is_unknown_at_the_deadline(url: str) -> None:
    ours = await asyncpg.connect(url)
    marked = await begun(ours)
    with pytest.raises(OutcomeUnknown):
        await CommitOutcomes(Server(url, "", "on")).committed(
            marked, asyncio.get_running_loop().time() + 0.3
        )
    await ours.close()


async def session_of(connection: asyncpg.Connection, event_id: str) -> Session:
    pid = connection.get_server_pid()
    started = await connection.fetchval(
        "select backend_start from pg_stat_activity where pid = $1", pid
    )
    return Session(pid, started, (INSERT, event_id))


async def test_a_statement_that_waits_at_the_server_never_takes_place_afterwards(url: str) -> None:
    ours, other = await asyncpg.connect(url), await asyncpg.connect(url)
    await begun(other)
    session = await session_of(ours, "e" * 24)
    waiting = asyncio.create_task(ours.execute(ONE_EVENT, "e" * 24, *INSERTED))
    waits = "select exists (select 1 from pg_locks where pid = $1 and not granted)"
    while not await other.fetchval(waits, session.pid):
        await asyncio.sleep(0)
    assert not await CommitOutcomes(Server(url, "", "on")).committed(session, deadline())
    await other.execute("rollback")
    with pytest.raises((asyncpg.PostgresError, *LOST)):
        await waiting
    assert not await other.fetchval(INSERT.found, "e" * 24)
    await other.close()
