"""Rotation of a signing secret while deliveries are sent, as receivers see it."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from outbox.database.transaction import Database, Tx
from outbox.sending.request import new_secret, sign_body
from outbox.webhooks import rotation
from tests.support.drain import Got, add_webhook, drain, inbox, make, ring, rows

NEW = new_secret(b"n" * 32)


async def end_overlap(tx: Tx) -> None:
    """The duty that deletes the secret has not run yet."""
    await tx.run("update webhooks set old_secret_until = $1", tx.now - 1)


def trio(got: Got, secret: str) -> bool:
    """Return whether the library of Standard Webhooks accepts the request."""
    try:
        Webhook(secret).verify(got.body, got.headers)
    except WebhookVerificationError:
        return False
    return True


def plain(got: Got, secret: str) -> bool:
    return got.headers["X-Webhook-Signature"] == sign_body(secret, got.body)


def phase_of(got: Got) -> int:
    return int(json.loads(got.body)["data"]["id"].partition("-")[0])


@pytest.mark.slow
async def test_no_receiver_refuses_a_request_while_its_secret_is_rotated(db: Database) -> None:
    key = ring()
    async with inbox() as box, drain(db, key):
        webhook_id, old = await add_webhook(db, key, box.url)
        phase, written, ended = 0, 0, False

        async def write() -> None:
            nonlocal written
            while not ended:
                await db.write(make, f"{phase}-{written}")
                written += 1

        writing = asyncio.create_task(write())
        await box.until(20)
        assert await db.write(rotation.stage, webhook_id, NEW, key)
        phase = 1
        await box.until(len(box.got) + 40)
        before = len(box.got)
        assert all(plain(got, old) for got in box.got)
        assert await db.write(rotation.activate, webhook_id)
        phase = 2
        await box.until(before + 60)
        ended = True
        await writing
        await box.until(written)
    assert {phase_of(got) for got in box.got} == {0, 1, 2}
    for got in box.got:
        assert trio(got, old)
        assert plain(got, old) != plain(got, NEW)
        if phase_of(got) > 0:
            assert trio(got, NEW)
        if phase_of(got) == 2:
            assert plain(got, NEW)


async def test_the_replaced_secret_ends_after_the_overlap(db: Database) -> None:
    key = ring()
    async with inbox() as box:
        webhook_id, old = await add_webhook(db, key, box.url)
        await db.write(rotation.stage, webhook_id, NEW, key)
        await db.write(rotation.activate, webhook_id)
        async with drain(db, key):
            await db.write(make, "0-0")
            [got] = await box.until(1)
            assert trio(got, old)
            assert trio(got, NEW)
        assert (await db.read(rotation.standing, webhook_id)).old_until
        await db.write(end_overlap)
        assert await db.read(rotation.standing, webhook_id) == rotation.Standing(False, None)
        async with drain(db, key):
            await db.write(make, "0-1")
            await box.until(2)
    signatures = box.got[1].headers["webhook-signature"].split(" ")
    assert len(signatures) == 1
    assert plain(box.got[1], NEW)


async def test_a_cancelled_secret_signs_nothing(db: Database) -> None:
    key = ring()
    async with inbox() as box, drain(db, key):
        webhook_id, old = await add_webhook(db, key, box.url)
        await db.write(rotation.stage, webhook_id, NEW, key)
        assert (await db.read(rotation.standing, webhook_id)).staged
        assert await db.write(rotation.cancel, webhook_id)
        await db.write(make, "0-0")
        [got] = await box.until(1)
    assert (trio(got, old), trio(got, NEW), plain(got, old)) == (True, False, True)
    assert await db.read(rotation.standing, webhook_id) == rotation.Standing(False, None)


async def test_of_two_rotations_at_once_one_wins(db: Database) -> None:
    key = ring()
    webhook_id, _ = await add_webhook(db, key, "http://127.0.0.1:9/")
    secrets = [new_secret(bytes([n]) * 32) for n in range(5)]
    done = await asyncio.gather(
        *(db.write(rotation.stage, webhook_id, secret, key) for secret in secrets)
    )
    assert sorted(done) == [False] * 4 + [True]
    [row] = await db.read(rows, "select staged_secret from webhooks")
    assert key.open(bytes(row["staged_secret"]), webhook_id) == secrets[done.index(True)].encode()
    assert sorted(
        await asyncio.gather(*(db.write(rotation.activate, webhook_id) for _ in range(3)))
    ) == [False, False, True]


@pytest.mark.parametrize("unit", [rotation.activate, rotation.cancel])
async def test_without_a_staged_secret_nothing_changes(
    db: Database, unit: Callable[[Tx, str], Coroutine[Any, Any, bool]]
) -> None:
    key = ring()
    webhook_id, old = await add_webhook(db, key, "http://127.0.0.1:9/")
    assert not await db.write(unit, webhook_id)
    [row] = await db.read(rows, "select secret, old_secret, version from webhooks")
    assert key.open(bytes(row["secret"]), webhook_id) == old.encode()
    assert (row["old_secret"], row["version"]) == (None, 1)
