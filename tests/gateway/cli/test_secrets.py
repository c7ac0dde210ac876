"""`carteiro secrets rotate` beside a running server, on both engines."""

import asyncio
from pathlib import Path

import pytest

from gateway.domain.storefront.payments import payment_secrets
from outbox import database
from outbox.clock import SystemClock
from outbox.database.transaction import Database
from outbox.ids import Ids
from outbox.webhooks.key_files import add_key, read_key_file
from outbox.webhooks.secrets import parse_keys
from tests.gateway.cli.test_cli import add_user, one_line
from tests.gateway.cli.test_serve import CONTACT, key_for
from tests.gateway.domain.storefront.payments.test_payment_secrets import store_of, valid
from tests.support.databases import PostgresServer
from tests.support.drain import Inbox, add_webhook, inbox
from tests.support.process import Serving, carteiro, command, serving_process

LOOPBACK = {"CARTEIRO_EGRESS__ALLOW_HTTP": "true", "CARTEIRO_EGRESS__ALLOW": "127.0.0.0/8"}


async def opened(folder: Path, url: str = "") -> Database:
    return await database.open(
        url or f"sqlite:///{folder / 'carteiro.db'}", clock=SystemClock(), ids=Ids()
    )


async def post(serving: Serving, key: dict[str, str], box: Inbox, count: int) -> None:
    """Write a contact, and wait for `count` requests in all."""
    status, body, _ = await asyncio.to_thread(
        serving.ask, "/api/contacts", method="POST", body=CONTACT, headers=key
    )
    assert status == 201, body
    await box.until(count)


@pytest.mark.proof
async def test_the_key_is_replaced_beside_a_running_server(tmp_path: Path) -> None:
    await asyncio.to_thread(add_user, tmp_path)
    async with inbox() as box:
        with serving_process(tmp_path, **LOOPBACK) as serving:
            key = await asyncio.to_thread(key_for, tmp_path)
            file = tmp_path / "carteiro.key"
            first = read_key_file(file, Ids())
            db = await opened(tmp_path)
            [owner] = await db.read(lambda tx: tx.all("select id from users"))
            made = await add_webhook(db, first, box.url, "contact.created", owner=owner["id"])
            await post(serving, key, box, 1)
            done = await asyncio.to_thread(carteiro, "secrets", "rotate", folder=tmp_path)
            assert done.returncode == 0, done.stderr
            assert "Encrypted again: 2 values." in done.stdout
            ring = read_key_file(file, Ids())
            assert ring.newest != first.newest
            [row] = await db.read(lambda tx: tx.all("select id, secret from webhooks"))
            assert not ring.stale(bytes(row["secret"]))
            assert (row["id"], ring.open(bytes(row["secret"]), row["id"])) == (
                made[0], made[1].encode(),
            )  # fmt: skip
            # With a new key and a webhook that the server has not opened before.
            await add_webhook(db, ring, box.url, "contact.created", owner=owner["id"])
            await post(serving, key, box, 3)
            age = next(
                line for line in serving.ask("/metrics")[1].decode().splitlines()
                if line.startswith('secret_age_seconds{kind="encryption"}')
            )  # fmt: skip
            assert float(age.split()[1]) < 600
            await db.close()


def test_an_interrupted_rotation_is_finished(tmp_path: Path) -> None:
    add_user(tmp_path)
    command("secrets", "init", folder=tmp_path)
    file = tmp_path / "carteiro.key"

    async def webhook() -> None:
        db = await opened(tmp_path)
        await add_webhook(db, read_key_file(file, Ids()), "http://127.0.0.1:9/")
        await db.close()

    asyncio.run(webhook())
    add_key(file, Ids(), SystemClock().wall() + 1_000_000, staged=False)
    done = command("secrets", "rotate", folder=tmp_path)
    assert "finished now" in done.stdout
    assert "Encrypted again: 1 value." in done.stdout
    assert len(read_key_file(file, Ids()).key_ids) == 2
    again = command("secrets", "rotate", folder=tmp_path)
    assert "Encrypted again: 1 value." in again.stdout
    assert len(read_key_file(file, Ids()).key_ids) == 3


def test_on_postgresql_the_nodes_get_the_key_first(
    tmp_path: Path, postgres_server: PostgresServer
) -> None:
    url = asyncio.run(postgres_server.fresh())
    file = tmp_path / "data" / "carteiro.key"

    def run(*words: str, status: int = 0) -> str:
        done = command(*words, folder=tmp_path, CARTEIRO_DATABASE__URL=url)
        assert done.returncode == status, done.stderr
        return done.stdout + done.stderr

    run("secrets", "init")
    one_line(run("secrets", "rotate", status=1), "--stage")
    before = read_key_file(file, Ids())
    run("secrets", "rotate", "--stage")
    staged = read_key_file(file, Ids())
    assert (staged.newest, len(staged.staged_ids)) == (before.newest, 1)
    assert "staged already" in run("secrets", "rotate", "--stage")
    run("secrets", "rotate")
    assert read_key_file(file, Ids()).newest == staged.staged_ids[0]
    run("secrets", "rotate", "--only-node")
    assert len(read_key_file(file, Ids()).key_ids) == 3
    asyncio.run(postgres_server.drop(url))


def test_keys_of_the_environment_are_not_changed(tmp_path: Path) -> None:
    add_user(tmp_path)
    command("secrets", "init", folder=tmp_path)
    keys = (tmp_path / "carteiro.key").read_text().strip()
    done = command("secrets", "rotate", folder=tmp_path, CARTEIRO_SECRETS__KEYS=keys)
    assert done.returncode == 1
    one_line(done.stderr, "secrets.keys")


def test_payment_secrets_get_the_new_key(tmp_path: Path) -> None:
    add_user(tmp_path)
    command("secrets", "init", folder=tmp_path)
    file = tmp_path / "carteiro.key"

    async def sealed() -> str:
        """Create a payment secret of a new store; return the id of the store."""
        db = await opened(tmp_path)
        actor, store_id = await store_of(db)
        ring = read_key_file(file, Ids())
        await db.write(payment_secrets.stage, actor, store_id, "whsec_a", ring)
        await db.close()
        return store_id

    async def valid_with_the_newest(store_id: str) -> list[str]:
        newest = file.read_text().strip().splitlines()[-1]
        db = await opened(tmp_path)
        found = await valid(db, store_id, parse_keys(newest, Ids(), "the newest key"))
        await db.close()
        return found

    store_id = asyncio.run(sealed())
    assert "Encrypted again: 1 value." in command("secrets", "rotate", folder=tmp_path).stdout
    assert asyncio.run(valid_with_the_newest(store_id)) == ["whsec_a"]
