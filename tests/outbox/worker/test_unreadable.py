"""Keys that are lost while the drain runs: deliveries wait, none ends, all arrive afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from outbox.database.transaction import Database
from outbox.ids import Ids
from outbox.queue.state import policy
from outbox.sending.request import new_secret
from outbox.webhooks import secret_rotation
from outbox.webhooks.key_files import add_key, read_key_file, write_key_file
from tests.support.drain import add_webhook, drain, inbox, make, rows, run

WALL = 1_760_000_000_000_000
SOON = 100_000
OF = "select * from deliveries where webhook_id = $1"


@pytest.fixture(autouse=True)
def _tries_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "UNREADABLE_WAIT", SOON)


class Files:
    """A key file whose older key comes and goes."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "keys"
        write_key_file(self.path, Ids(), WALL)
        self.older = read_key_file(self.path, Ids())
        first = self.path.read_text()
        add_key(self.path, Ids(), WALL + 1, staged=False)
        self._both = self.path.read_text()
        self._newer = self._both.removeprefix(first)
        self.lose()
        self.node = read_key_file(self.path, Ids())

    def lose(self) -> None:
        self.path.write_text(self._newer)

    def put_back(self) -> None:
        self.path.write_text(self._both)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


async def states(db: Database, webhook_id: str) -> set[str]:
    return {row["state"] for row in await db.read(rows, OF, webhook_id)}


async def reason(db: Database, webhook_id: str) -> str | None:
    [row] = await db.read(rows, "select unreadable from webhooks where id = $1", webhook_id)
    return None if row["unreadable"] is None else str(row["unreadable"])


@pytest.mark.slow
async def test_a_damaged_value_waits_for_its_repair(db: Database, files: Files) -> None:
    async with inbox() as box:
        webhook_id, _ = await add_webhook(db, files.node, box.url, headers=(("X-Own", "1"),))
        [stored] = await db.read(rows, "select headers from webhooks")
        for column in ("secret", "headers"):
            [whole] = await db.read(rows, f"select {column} as value from webhooks")
            changed = bytearray(whole["value"])
            changed[-1] ^= 1
            await db.write(run, f"update webhooks set {column} = $1", bytes(changed))
            async with drain(db, files.node) as running:
                await db.write(make, column)
                await running.watch.until("unreadable", 2)
                text = await reason(db, webhook_id) or ""
                assert column in text
                assert "damaged" in text
                await db.write(run, f"update webhooks set {column} = $1", bytes(whole["value"]))
                await running.watch.until("delivery_finished")
        assert stored["headers"]
        assert len(box.got) == 2
    assert await states(db, webhook_id) == {"delivered"}


async def test_a_new_secret_replaces_one_whose_key_is_lost_for_ever(
    db: Database, files: Files
) -> None:
    async with inbox() as box, drain(db, files.node) as running:
        lost, _ = await add_webhook(db, files.older, box.url)
        await db.write(make, "one")
        await running.watch.until("unreadable")
        await db.write(secret_rotation.stage, lost, new_secret(b"s" * 32), files.node)
        assert await db.write(secret_rotation.activate, lost, files.node)
        await box.until(1)
        await running.watch.until("delivery_finished")
    assert await states(db, lost) == {"delivered"}
