"""The engine alone: a process without a web server delivers events of another process."""

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from outbox import database
from outbox.clock import SystemClock
from outbox.database.migrate import migrate
from outbox.ids import Ids
from outbox.webhooks.key_files import read_key_file, write_key_file
from tests.support.databases import SOURCES
from tests.support.drain import add_webhook, inbox, make

pytestmark = pytest.mark.slow


async def test_a_process_without_a_web_server_delivers(tmp_path: Path) -> None:
    clock, ids = SystemClock(), Ids()
    url, keys = f"sqlite:///{tmp_path}/app.db", tmp_path / "app.key"
    write_key_file(keys, ids, clock.wall())
    # Not serving: this side only writes, as a command beside a server would.
    db = await database.open(url, clock=clock, ids=ids)
    await migrate(db, SOURCES[:1])
    async with inbox() as box:
        await add_webhook(db, read_key_file(keys, ids), box.url)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "outbox", url, str(keys), "--allow-http",
            "--allow", "127.0.0.0/8", stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert process.stdout is not None
        assert b"draining" in await process.stdout.readline()
        event_id = await db.write(make, "r1")
        [got] = await box.until(1)
        assert got.headers["X-Webhook-Id"] == event_id
        process.send_signal(signal.SIGHUP)
        assert await process.wait() == 0
    await db.close()


async def test_a_missing_key_file_is_one_clear_line(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "outbox", f"sqlite:///{tmp_path}/app.db", f"{tmp_path}/no.key",
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    _, errors = await process.communicate()
    assert process.returncode == 1
    assert "no.key does not exist; create one with:" in errors.decode()
    assert errors.count(b"\n") == 1
