"""Rotation of a signing secret while deliveries are sent, as receivers see it."""

import asyncio
import hashlib

from msgspec.structs import replace
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from outbox.database.transaction import Database, Tx
from outbox.queue.drain.loading import endpoints_of
from outbox.queue.state.policy import Schedule
from outbox.sending.request import new_secret, sign_body
from outbox.webhooks import secret_rotation
from outbox.worker.request_building import RequestBuilder
from tests.support.drain import Got, add_webhook, claimed, drain, inbox, make, ring, rows

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


async def test_the_replaced_secret_ends_after_the_overlap(db: Database) -> None:
    key = ring()
    async with inbox() as box:
        webhook_id, old = await add_webhook(db, key, box.url)
        await db.write(secret_rotation.stage, webhook_id, NEW, key)
        await db.write(secret_rotation.activate, webhook_id)
        async with drain(db, key):
            await db.write(make, "0-0")
            [got] = await box.until(1)
            assert trio(got, old)
            assert trio(got, NEW)
        assert (await db.read(secret_rotation.standing, webhook_id)).old_until
        await db.write(end_overlap)
        assert await db.read(secret_rotation.standing, webhook_id) == secret_rotation.RotationState(
            False, None
        )
        async with drain(db, key):
            await db.write(make, "0-1")
            await box.until(2)
    signatures = box.got[1].headers["webhook-signature"].split(" ")
    assert len(signatures) == 1
    assert plain(box.got[1], NEW)


async def test_a_clock_that_was_ahead_for_a_moment_ends_no_overlap(db: Database) -> None:
    key = ring()
    webhook_id, old = await add_webhook(db, key, "http://127.0.0.1:9/")
    await db.write(secret_rotation.stage, webhook_id, NEW, key)
    await db.write(secret_rotation.activate, webhook_id)
    endpoint = (await db.read(endpoints_of, [webhook_id]))[webhook_id]
    until = endpoint.old_secret_until
    assert until is not None
    builder, delivery = RequestBuilder(key, 15.0, Schedule()), claimed(webhook_id)
    delivery.event = replace(delivery.event, body_digest=hashlib.sha256(b"").hexdigest())
    for now, secrets in ((until, (NEW,)), (until - 1, (NEW, old)), (until, (NEW,))):
        request, _ = builder.request(delivery, endpoint, now)
        assert request.secrets == secrets


async def test_of_two_rotations_at_once_one_wins(db: Database) -> None:
    key = ring()
    webhook_id, _ = await add_webhook(db, key, "http://127.0.0.1:9/")
    secrets = [new_secret(bytes([n]) * 32) for n in range(5)]
    done = await asyncio.gather(
        *(db.write(secret_rotation.stage, webhook_id, secret, key) for secret in secrets)
    )
    assert sorted(done) == [False] * 4 + [True]
    [row] = await db.read(rows, "select staged_secret from webhooks")
    assert key.open(bytes(row["staged_secret"]), webhook_id) == secrets[done.index(True)].encode()
    assert sorted(
        await asyncio.gather(*(db.write(secret_rotation.activate, webhook_id) for _ in range(3)))
    ) == [False, False, True]
