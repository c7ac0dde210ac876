"""Encrypting stored secrets again, beside changes and damage."""

import asyncio
from pathlib import Path

import pytest

from outbox.database.transaction import Database, Tx
from outbox.ids import Ids
from outbox.sending.client_certificates import ClientCertificate
from outbox.sending.client_credentials import ClientCredentials
from outbox.sending.request import new_secret
from outbox.webhooks import resealing, secret_rotation
from outbox.webhooks.key_files import add_key, read_key_file, write_key_file
from outbox.webhooks.secrets import KeyRing
from tests.support.drain import add_webhook, rows

WALL = 1_760_000_000_000_000
URL = "http://127.0.0.1:9/"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "keys"
    write_key_file(path, Ids(), WALL)
    return path


async def all_pages(db: Database, ring: KeyRing, limit: int) -> tuple[int, int]:
    done = broken = 0
    after: str | None = ""
    while after is not None:
        page = await db.write(resealing.reseal, ring, after, limit)
        after, done, broken = page.last, done + page.done, broken + page.broken
    return done, broken


async def test_every_value_is_encrypted_again_in_pages(db: Database, file: Path) -> None:
    old = read_key_file(file, Ids())
    secrets = {}
    for number in range(5):
        webhook_id, secret = await add_webhook(
            db, old, URL, headers=(("X-Number", str(number)),),
            certificate=ClientCertificate(f"pem {number}", WALL),
            oauth2=ClientCredentials(URL, "crm", f"secret {number}"),
        )  # fmt: skip
        secrets[webhook_id] = secret
    staged = new_secret(b"s" * 32)
    await db.write(secret_rotation.stage, webhook_id, staged, old)
    add_key(file, Ids(), WALL + 1_000_000, staged=False)
    ring = read_key_file(file, Ids())
    assert await db.read(resealing.unfinished, ring)
    assert await all_pages(db, ring, 2) == (21, 0)
    assert not await db.read(resealing.unfinished, ring)
    assert await all_pages(db, ring, 2) == (0, 0)
    for row in await db.read(rows, "select * from webhooks"):
        assert ring.open(bytes(row["secret"]), row["id"]) == secrets[row["id"]].encode()
        assert row["version"] == (2 if row["id"] == webhook_id else 1)
        for name in resealing.COLUMNS:
            assert row[name] is None or not ring.stale(bytes(row[name]))


async def test_a_value_that_changes_meanwhile_is_not_overwritten(db: Database, file: Path) -> None:
    old = read_key_file(file, Ids())
    webhook_id, _ = await add_webhook(db, old, URL)
    await db.write(secret_rotation.stage, webhook_id, new_secret(b"s" * 32), old)
    add_key(file, Ids(), WALL + 1_000_000, staged=False)
    ring = read_key_file(file, Ids())
    await asyncio.gather(
        *(db.write(resealing.reseal, ring, "", 10) for _ in range(3)),
        db.write(secret_rotation.activate, webhook_id),
    )
    await all_pages(db, ring, 10)
    [row] = await db.read(rows, "select * from webhooks")
    assert ring.open(bytes(row["secret"]), webhook_id) == new_secret(b"s" * 32).encode()
    assert row["staged_secret"] is None
    assert not await db.read(resealing.unfinished, ring)


async def test_a_value_that_no_key_opens_is_counted_and_holds_up_nothing(
    db: Database, file: Path
) -> None:
    old = read_key_file(file, Ids())
    await add_webhook(db, old, URL)
    damaged, _ = await add_webhook(db, old, URL)

    async def damage(tx: Tx) -> None:
        await tx.run("update webhooks set secret = $2 where id = $1", damaged, b"\x01" * 40)

    await db.write(damage)
    add_key(file, Ids(), WALL + 1_000_000, staged=False)
    assert await all_pages(db, read_key_file(file, Ids()), 1) == (1, 1)
