"""Rows that cannot be sent (R19): they end with a reason, and all others are delivered."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from outbox import webhooks
from outbox.database.transaction import Database, Tx
from outbox.ids import Ids
from outbox.queue.upkeep import parking
from outbox.sending.request import new_secret
from outbox.webhooks import Draft
from outbox.webhooks.conditions import Condition
from outbox.webhooks.secrets import KeyRing
from tests.support.drain import OWNER, add_webhook, drain, inbox, make, make_many, ring, rows
from tests.support.engines import Engine
from tests.support.faults import ENGINES
from tests.support.waiting import until
from tests.system.staging import opened

EVENT = "poison.made"
END_SECONDS = 60.0
NOT_FOR_OWNERS = re.compile(r"Error|Exception|Traceback|0x|None|<")

Value = Callable[[KeyRing, str], Any]


def _sealed(plain: bytes) -> Value:
    return lambda key, webhook_id: key.seal(plain, webhook_id)


def _plain(value: object) -> Value:
    return lambda key, webhook_id: value


WEBHOOKS: dict[str, tuple[str, Value]] = {
    "schedule is a number": ("schedule", _plain("5")),
    "schedule is a word": ("schedule", _plain('"x"')),
    "schedule holds null": ("schedule", _plain("[null]")),
    "schedule is not JSON": ("schedule", _plain("not JSON")),
    "secret is not sealed": ("secret", _plain(b"not sealed")),
    "secret is empty": ("secret", _plain(b"")),
    "secret of another row": ("secret", lambda key, _: key.seal(b"whsec_YWJjZA==", "0" * 24)),
    "secret is not whsec_": ("secret", _sealed(b"YWJjZA==")),
    "secret is not base64": ("secret", _sealed(b"whsec_%%%")),
    "secret is not text": ("secret", _sealed(b"\xff\xfe")),
    "headers are not sealed": ("headers", _plain(b"not sealed")),
    "headers are not JSON": ("headers", _sealed(b"not JSON")),
    "headers are a number": ("headers", _sealed(b"5")),
    "headers are single words": ("headers", _sealed(b'[["X-One"]]')),
    "headers are numbers": ("headers", _sealed(b"[[1, 2]]")),
    "events is not JSON": ("events", _plain("not JSON")),
    "events is a number": ("events", _plain("5")),
    "conditions are not JSON": ("conditions", _plain("not JSON")),
    "conditions are numbers": ("conditions", _plain("[[1, 2]]")),
}
"""The damaged column of a webhook, and its damaged value."""
WAITING = frozenset({
    "secret is not sealed", "secret is empty", "secret of another row", "headers are not sealed",
})  # fmt: skip
"""What cannot be decrypted waits for its key or its repair; all else ends."""
EVENTS: dict[str, bytes | None] = {
    "body is null": None,
    "body was changed": b'{"event":"poison.made","timestamp":"2026-01-01T00:00:00Z","data":{}}',
}
"""The damaged body of the event."""
JUDGED: dict[str, bytes] = {
    "value is not UTF-8": b'{"data":{"id":"damage\xe4"}}',
    "name is not UTF-8": b'{"data":{"i\xe4":"damaged"}}',
}
"""The damaged body of an event that conditions judge at its fan-out."""
DELIVERIES: dict[str, int] = {"attempts at the largest number": 2**63 - 1}
"""The damaged number of attempts of the delivery."""
KINDS: tuple[str, ...] = (*WEBHOOKS, *EVENTS, *JUDGED, *DELIVERIES)


async def _create(tx: Tx, owner: str, url: str, key: KeyRing, kind: str) -> str:
    """Create a webhook that is damaged from the start, or has a condition."""
    spoiled = WEBHOOKS.get(kind)
    conditions = (Condition("id", "damaged"),) if kind in JUDGED else ()
    draft = Draft(url=url, events=(EVENT,), conditions=conditions)
    secret = new_secret(Ids().token(32))
    webhook_id = await webhooks.create(tx, owner_id=owner, draft=draft, secret=secret, ring=key)
    if spoiled is not None:
        column, value = spoiled
        done = await tx.run(
            f"update webhooks set {column} = $2 where id = $1", webhook_id, value(key, webhook_id)
        )
        assert done == 1
    return webhook_id


async def _spoil_body(tx: Tx, event_id: str, body: bytes | None) -> None:
    assert await tx.run("update events set body = $2 where id = $1", event_id, body) == 1


async def _make_spoiled(tx: Tx, owner: str, body: bytes) -> None:
    """Write an event that is damaged before its fan-out."""
    await _spoil_body(tx, await make(tx, "damaged", EVENT, owner), body)


async def _spoil_attempts(tx: Tx, webhook_id: str, number: int) -> None:
    spoil = "update deliveries set attempts = $2 where webhook_id = $1"
    assert await tx.run(spoil, webhook_id, number) == 1


async def damage(db: Database, key: KeyRing, url: str, kind: str, owner: str = "") -> str:
    """Give the running drain a damaged delivery; return the webhook's id.

    Its `owner` is a new one by default, so that one event is one damaged delivery.
    """
    owner = owner or db.ids.new(db.clock.wall())
    webhook_id = await db.write(_create, owner, url, key, kind)
    if kind in JUDGED:
        await db.write(_make_spoiled, owner, JUDGED[kind])
        return webhook_id
    if kind in WEBHOOKS:
        await db.write(make, "damaged", EVENT, owner)
        return webhook_id
    # An event is damaged between its fan-out and its claim.
    await db.write(parking.pause, webhook_id)
    event_id = await db.write(make, "damaged", EVENT, owner)
    await until(lambda: deliveries_of(db, webhook_id))
    if kind in EVENTS:
        await db.write(_spoil_body, event_id, EVENTS[kind])
    else:
        await db.write(_spoil_attempts, webhook_id, DELIVERIES[kind])
    await parking.activate(db, webhook_id, "all")
    return webhook_id


async def deliveries_of(db: Database, webhook_id: str) -> Sequence[Any]:
    return await db.read(
        rows,
        """
        select d.state, d.reason, d.attempts, d.finished_at,
          (select w.unreadable from webhooks w where w.id = d.webhook_id) as unreadable,
          (select count(*) from attempts a where a.delivery_id = d.id) as logged
        from deliveries d where d.webhook_id = $1
        """,
        webhook_id,
    )


async def ended(db: Database, webhook_id: str, seconds: float = END_SECONDS) -> Sequence[Any]:
    """Return the deliveries of a damaged webhook, once they have ended or wait for its repair.

    Raise TimeoutError.
    """

    async def all_ended() -> Sequence[Any]:
        found = await deliveries_of(db, webhook_id)
        done = (row["finished_at"] is not None or row["unreadable"] for row in found)
        return found if all(done) else ()

    return await until(all_ended, seconds)


def wrong_with(found: Sequence[Any], kind: str) -> list[str]:
    """Return the faults in the final state of a damaged webhook's one delivery."""
    if len(found) != 1:
        return [f"{len(found)} deliveries instead of one"]
    [row] = found
    wrong = []
    if row["state"] not in (("ready", "in_flight") if kind in WAITING else ("dead",)):
        wrong.append(f"it ended {row['state']}")
    reason = (row["unreadable"] if kind in WAITING else row["reason"]) or ""
    if len(reason.split()) < 2 or len(reason) > 200 or NOT_FOR_OWNERS.search(reason):
        wrong.append(f"its reason is not for an owner: {reason!r}")
    spoiled = row["attempts"] >= max(DELIVERIES.values()) - 1
    if (row["attempts"] > 1 and not spoiled) or row["logged"] > 1:
        wrong.append(f"it was claimed {row['attempts']} and tried {row['logged']} times")
    return wrong


@ENGINES
async def test_each_damage_ends_and_others_arrive(engine: Engine) -> None:
    """Each kind of damage, one after another, with an event for a healthy webhook behind each."""
    key = ring()
    async with opened(engine) as db, inbox() as box:
        await add_webhook(db, key, f"{box.url}/healthy")
        async with drain(db, key) as running:
            made = {}
            for number, kind in enumerate(KINDS, 1):
                made[kind] = await damage(db, key, f"{box.url}/damaged", kind)
                await db.write(make, "healthy")
                await box.until(number, "/healthy")
            for kind, webhook_id in made.items():
                assert wrong_with(await ended(db, webhook_id), kind) == [], kind
            assert "restarted" not in running.watch.counts
    copies = Counter((got.path, got.headers["X-Webhook-Id"]) for got in box.got)
    assert max(copies.values()) == 1, "repeats at receivers"
    assert {path for path, _ in copies} == {"/healthy"}, "damaged deliveries were sent"


BESIDE = 20
BIG = 5_000_000


SPOILED = {
    "schedule": "update webhooks set schedule = cast(x'5bff5d' as text) where owner_id = $1",
    "events": "update webhooks set events = cast(x'5bff5d' as text) where owner_id = $1",
    "url": "update webhooks set url = cast(x'68747470ff' as text) where owner_id = $1",
    "event's name": "update events set name = cast(x'ff' as text) where owner_id = $1",
    "record's id": "update events set record_id = cast(x'ff' as text) where owner_id = $1",
}
"""Text after a bit flip; PostgreSQL has no such text."""


async def spoil(tx: Tx, what: str, owner: str) -> None:
    assert await tx.run(SPOILED[what], owner) == 1


@pytest.mark.parametrize("what", SPOILED)
@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_text_that_is_not_utf8_any_more_holds_up_nobody(db: Database, what: str) -> None:
    key, owner = ring(), "1" * 24
    async with inbox() as box:
        damaged, _ = await add_webhook(db, key, f"{box.url}/damaged", owner=owner)
        await add_webhook(db, key, f"{box.url}/fine")
        await db.write(make, "damaged", owner=owner)
        await db.write(spoil, what, owner)
        await db.write(make_many, BESIDE)
        async with drain(db, key) as running:
            await box.until(BESIDE, "/fine")
            await running.watch.until("attempt", BESIDE)
            for row in await deliveries_of(db, damaged):
                assert row["attempts"] <= 6
            assert "restarted" not in running.watch.counts
            assert "claimed error" not in running.watch.counts


async def test_one_webhook_that_cannot_be_read_leaves_its_owner_the_others(db: Database) -> None:
    key = ring()
    async with inbox() as box:
        await add_webhook(db, key, f"{box.url}/fine", EVENT)
        async with drain(db, key):
            kind = "events is not JSON"
            damaged = await damage(db, key, f"{box.url}/damaged", kind, OWNER)
            await box.until(1, "/fine")
            assert wrong_with(await ended(db, damaged), kind) == []


async def enlarge(tx: Tx, event_id: str) -> None:
    """Longer than any possible write."""
    body = b"x" * BIG
    digest = hashlib.sha256(body).hexdigest()
    await tx.run(
        "update events set body = $2, body_digest = $3 where id = $1", event_id, body, digest
    )


async def test_five_megabytes_hold_up_nobody(db: Database) -> None:
    key = ring()
    async with inbox() as box:
        big, _ = await add_webhook(db, key, f"{box.url}/big", "big.made")
        await db.write(enlarge, await db.write(make, "r", "big.made"))
        await add_webhook(db, key, f"{box.url}/fine")
        await db.write(make_many, BESIDE)
        async with drain(db, key) as running:
            await box.until(BESIDE, "/fine")
            await running.watch.until("delivery_finished", BESIDE + 1)
        [finished] = await deliveries_of(db, big)
        # The test's receiver accepts a megabyte; the attempt must be made and logged.
        [attempt] = await db.read(
            rows, "select outcome from attempts where webhook_id = $1 and number = 1", big
        )
        assert finished["finished_at"]
        assert attempt["outcome"] in ("success", "http_4xx", "connect_error", "protocol_error")
        assert {got.path for got in box.got} <= {"/big", "/fine"}
