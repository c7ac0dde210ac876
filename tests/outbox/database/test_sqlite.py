"""SQLite: batches, transactions that the engine ends, durability settings, the lock."""

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from outbox import database
from outbox.clock import SystemClock
from outbox.database.sqlite import file as sqlite_file
from outbox.database.transaction import Database, Tx
from outbox.errors import CannotStart, UnitError
from outbox.ids import Ids
from outbox.queue.replays import replay
from outbox.queue.state import lanes
from tests.support.drain import add_webhook, make, ring


@pytest.fixture
async def file(tmp_path: Path) -> AsyncIterator[Database]:
    db = await database.open(
        f"sqlite:///{tmp_path}/one.db", clock=SystemClock(), ids=Ids(), serving=True
    )

    async def table(tx: Tx) -> None:
        await tx.run("create table notes (name text primary key, text blob not null)")

    await db.write(table)
    yield db
    await db.close()


async def note(tx: Tx, name: str, size: int = 1) -> str:
    await tx.run("insert into notes (name, text) values ($1, $2)", name, b"x" * size)
    return name


async def noted(tx: Tx) -> set[str]:
    return {row["name"] for row in await tx.all("select name from notes")}


async def pragma(tx: Tx, name: str) -> object:
    row = await tx.one(f"pragma {name}")
    assert row is not None
    return row[0]


async def test_every_commit_is_synced_to_the_disk(file: Database) -> None:
    assert await file.write(pragma, "synchronous") == 2
    assert await file.write(pragma, "journal_mode") == "wal"
    assert await file.write(pragma, "foreign_keys") == 1


async def test_a_command_beside_a_server_never_checkpoints(file: Database, tmp_path: Path) -> None:
    beside = await database.open(
        f"sqlite:///{tmp_path}/one.db", clock=SystemClock(), ids=Ids(), serving=False
    )
    assert await beside.write(pragma, "wal_autocheckpoint") == 0
    assert await file.write(pragma, "wal_autocheckpoint") == 1000
    await beside.write(note, "beside")
    await beside.close()
    assert await file.read(noted) == {"beside"}


async def test_a_reading_thread_starts_when_a_unit_finds_none_idle(file: Database) -> None:
    def threads() -> int:
        return sum(thread.name == "sqlite" for thread in threading.enumerate())

    async def met(tx: Tx) -> None:
        both.wait(timeout=30)

    both = threading.Barrier(2)
    assert threads() == 1
    assert [await file.read(noted) for _ in range(5)] == [set()] * 5
    assert threads() == 2
    for _ in range(3):
        await asyncio.gather(file.scan("one", met), file.scan("another", met))
    assert threads() == 4


async def test_a_unit_that_awaits_something_else_is_named(file: Database) -> None:
    async def wrong(tx: Tx) -> None:
        await asyncio.sleep(0)

    with pytest.raises(UnitError, match=r"wrong awaited something other than its tx"):
        await file.write(wrong)
    await file.write(note, "after")
    assert await file.read(noted) == {"after"}


async def test_a_second_server_is_refused_with_the_pid_of_the_first(
    file: Database, tmp_path: Path
) -> None:
    with pytest.raises(CannotStart, match=rf"already in use by server process {os.getpid()}"):
        await database.open(
            f"sqlite:///{tmp_path}/one.db", clock=SystemClock(), ids=Ids(), serving=True
        )


@pytest.mark.slow
async def test_the_lock_of_a_dead_server_is_free(tmp_path: Path) -> None:
    script = (
        "import asyncio, os, sys\n"
        "from outbox import database\n"
        "from outbox.clock import SystemClock\n"
        "from outbox.ids import Ids\n"
        "async def main():\n"
        "    await database.open(sys.argv[1], clock=SystemClock(), ids=Ids(), serving=True)\n"
        "    os.kill(os.getpid(), 9)\n"
        "asyncio.run(main())\n"
    )
    url = f"sqlite:///{tmp_path}/one.db"
    died = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", script, url], check=False)
    assert died.returncode == -9
    db = await database.open(url, clock=SystemClock(), ids=Ids(), serving=True)
    await db.close()


class Wall(SystemClock):
    """A clock whose wall time tests move."""

    offset = 0

    def wall(self) -> int:
        return super().wall() + self.offset


async def due(tx: Tx) -> int:
    row = await tx.one("select due_now() as due")
    assert row is not None
    return int(row["due"])


async def stored_mark(tx: Tx) -> int:
    row = await tx.one("select due_mark from outbox_state")
    assert row is not None
    return int(row["due_mark"])


async def _ended(tx: Tx, webhook_id: str) -> None:
    await make(tx, "record")
    await tx.run("update events set seq = 1")
    await tx.run(
        "insert into deliveries (id, owner_id, event_id, webhook_id, origin, state, retry, next_at,"
        " tries, attempts, record_id, seq, created_at, finished_at) select 'd', owner_id, id, $1,"
        " 'event', 'dead', false, 0, 0, 0, 'record', 1, 0, 0 from events",
        webhook_id,
    )


async def _waits(tx: Tx, delivery_id: str) -> int:
    """Return in how many microseconds a delivery and its lane are due."""
    row = await tx.one(
        "select d.next_at - due_now() as own, l.due_at - due_now() as lane"
        " from deliveries d join lanes l on l.webhook_id = d.webhook_id where d.id = $1",
        delivery_id,
    )
    assert row is not None
    return max(int(row["own"]), int(row["lane"]))


HOUR = 3_600_000_000
MONTH = 30 * 24 * HOUR


@pytest.mark.parametrize("jump", [MONTH, 2 * HOUR, -2 * HOUR, -MONTH])
async def test_a_replay_beside_a_server_whose_wall_clock_jumped_is_due_at_once(
    db_url: str, jump: int
) -> None:
    clock = Wall()
    server = await database.open(db_url, clock=clock, ids=Ids(), serving=True)
    webhook_id, _ = await add_webhook(server, ring(), "http://127.0.0.1:9/")
    await server.write(_ended, webhook_id)
    await server.write(lanes.mark)
    before = await server.read(stored_mark)
    clock.offset = jump
    command = await database.open(db_url, clock=clock, ids=Ids())
    beside = await command.read(due)
    assert beside <= await server.read(due) < beside + 60_000_000
    delivery_id = await command.write(replay.one, "d", "system")
    await command.close()
    assert -60_000_000 < await server.read(_waits, delivery_id) <= 0
    assert await server.read(stored_mark) == before, "only the serving process moves it"
    await server.close()


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("reboot", [False, True])
async def test_what_a_command_makes_due_without_a_server_is_due_at_the_next_start(
    db_url: str, monkeypatch: pytest.MonkeyPatch, reboot: bool
) -> None:
    """Whatever the wall clock was at the command and is at the start."""
    clock = Wall()
    server = await database.open(db_url, clock=clock, ids=Ids(), serving=True)
    webhook_id, _ = await add_webhook(server, ring(), "http://127.0.0.1:9/")
    await server.write(_ended, webhook_id)
    await server.write(lanes.mark)
    before = await server.read(stored_mark)
    await server.close()
    if reboot:
        monkeypatch.setattr(sqlite_file, "boot_id", lambda: "another")
    clock.offset = MONTH
    command = await database.open(db_url, clock=clock, ids=Ids())
    delivery_id = await command.write(replay.one, "d", "system")
    await command.close()
    clock.offset = -MONTH
    server = await database.open(db_url, clock=clock, ids=Ids(), serving=True)
    assert await server.read(_waits, delivery_id) <= 60_000_000
    # Otherwise all that waits for its next try would be due at once.
    assert before <= await server.read(due) < before + 60_000_000
    await server.close()


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "mark",
    ["update outbox_state set due_mark = due_now()", "update lanes set turned_at = due_now()"],
)
async def test_the_due_clock_never_goes_back_across_restarts(db_url: str, mark: str) -> None:
    async def marked(tx: Tx) -> int:
        return await tx.run(mark)

    clock = Wall()
    db = await database.open(db_url, clock=clock, ids=Ids())
    await add_webhook(db, ring(), "http://127.0.0.1:9/")
    first = await db.read(due)
    assert await db.write(marked) == 1
    clock.offset = -30 * 86_400_000_000
    # A jump of the wall clock during the run has no effect.
    assert first <= await db.read(due) < first + 60_000_000
    await db.close()
    db = await database.open(db_url, clock=clock, ids=Ids())
    assert await db.read(due) >= first
    await db.close()


async def test_a_file_that_is_no_database_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "one.db").write_bytes(b"not a database" * 400)
    with pytest.raises(CannotStart, match=r"cannot open the database .*one\.db"):
        await database.open(f"sqlite:///{tmp_path}/one.db", clock=SystemClock(), ids=Ids())


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_a_damaged_file_is_not_served(tmp_path: Path, db_url: str) -> None:
    path = Path(db_url.removeprefix("sqlite:///"))
    with closing(sqlite3.connect(path)) as connection:
        [size] = connection.execute("pragma page_size").fetchone()
        [page] = connection.execute(
            "select rootpage from sqlite_master where name = 'events'"
        ).fetchone()
    content = bytearray(path.read_bytes())
    # The number of cells of a page that no statement reads at the start.
    content[(page - 1) * size + 4] ^= 0x10
    path.write_bytes(content)
    unchecked = await database.open(db_url, clock=SystemClock(), ids=Ids())
    await unchecked.close()
    with pytest.raises(CannotStart, match=r"test\.db is damaged \(.*\); keep a copy") as refused:
        await database.open(db_url, clock=SystemClock(), ids=Ids(), serving=True)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_a_file_that_takes_long_to_check_is_served(
    db_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "CHECK_SECONDS", 0.0)
    with closing(sqlite3.connect(db_url.removeprefix("sqlite:///"))) as connection:
        connection.execute(
            "create table many as with recursive n(i) as (select 1 union all "
            "select i + 1 from n where i < 200000) select i from n"
        )
    db = await database.open(db_url, clock=SystemClock(), ids=Ids(), serving=True)
    await db.close()
