"""Rows that cannot be sent (R19): they end with a reason, and all others are delivered."""

from __future__ import annotations

import asyncio
import hashlib
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from outbox import webhooks
from outbox.database.transaction import Database, Tx
from outbox.ids import Ids
from outbox.queue.upkeep import parking
from outbox.sending.request import new_secret
from outbox.webhooks import Draft
from outbox.webhooks.secrets import KeyRing
from tests.benchmarks.figures import in_ms, quantile
from tests.support.drain import (
    OWNER,
    Inbox,
    add_webhook,
    drain,
    inbox,
    make,
    make_many,
    ring,
    rows,
    worker_for,
)
from tests.support.engines import Engine
from tests.support.waiting import until
from tests.system.staging import opened

EVENT = "poison.made"
HEALTHY = 2
RATE = 50.0
END_SECONDS = 20.0
OF_NONE = 1.5
NOISE_US = 100_000
"""Tolerance of one short phase on a busy machine; all phases together have none."""
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
DELIVERIES: dict[str, int] = {"attempts at the largest number": 2**63 - 1}
"""The damaged number of attempts of the delivery."""
KINDS: tuple[str, ...] = (*WEBHOOKS, *EVENTS, *DELIVERIES)


async def _create(
    tx: Tx, owner: str, url: str, key: KeyRing, spoiled: tuple[str, Value] | None
) -> str:
    """Create a webhook that is damaged from the start."""
    draft, secret = Draft(url=url, events=(EVENT,)), new_secret(Ids().token(32))
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


async def _spoil_attempts(tx: Tx, webhook_id: str, number: int) -> None:
    spoil = "update deliveries set attempts = $2 where webhook_id = $1"
    assert await tx.run(spoil, webhook_id, number) == 1


async def damage(db: Database, key: KeyRing, url: str, kind: str, owner: str = "") -> str:
    """Give the running drain a damaged delivery; return the webhook's id.

    Its `owner` is a new one by default, so that one event is one damaged delivery.
    """
    owner = owner or db.ids.new(db.clock.wall())
    webhook_id = await db.write(_create, owner, url, key, WEBHOOKS.get(kind))
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


@dataclass
class _Beside:
    """The healthy traffic: the commit and the arrival of each event."""

    db: Database
    box: Inbox
    committed: dict[str, int] = field(default_factory=dict)
    arrived: dict[tuple[str, str], int] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.Request) -> web.Response:
        pair = (request.headers["X-Webhook-Id"], request.path)
        self.arrived.setdefault(pair, time.monotonic_ns() // 1000)
        self.changed.set()
        return web.Response()

    async def write(self, seconds: float) -> list[str]:
        """Write events at an even pace; return their ids."""
        loop = asyncio.get_running_loop()
        due, end = loop.time(), loop.time() + seconds
        written = []
        while due < end:
            await asyncio.sleep(due - loop.time())
            began = time.monotonic_ns() // 1000
            written.append(await self.db.write(make, "healthy"))
            self.committed[written[-1]] = began
            due += 1 / RATE
        return written

    async def times(self, events: Sequence[str]) -> list[int]:
        """Return microseconds from commit to arrival, once all have arrived. Raise TimeoutError."""
        pairs = [(event, f"/healthy/{n}") for event in events for n in range(HEALTHY)]
        async with asyncio.timeout(END_SECONDS):
            while not self.arrived.keys() >= set(pairs):
                self.changed.clear()
                await self.changed.wait()
        return [self.arrived[pair] - self.committed[pair[0]] for pair in pairs]


async def run_damage(engine: Engine, seed: int, seconds: float = 3.0) -> dict[str, Any]:
    """Run each kind of damage beside traffic of `seconds`, in an order drawn from `seed`."""
    kinds = list(KINDS)
    random.Random(seed).shuffle(kinds)
    middle = len(kinds) // 2
    phases: list[str | None] = [None, *kinds[:middle], None, *kinds[middle:], None]
    findings: list[str] = []
    none: list[int] = []
    beside: dict[str, list[int]] = {}
    made: dict[str, str] = {}
    async with opened(engine) as db, inbox() as box:
        key = ring()
        for n in range(HEALTHY):
            await add_webhook(db, key, f"{box.url}/healthy/{n}")
        traffic = _Beside(db, box)
        box.answer = traffic.answer
        worker, sender = worker_for(db, key)
        loop = asyncio.create_task(worker.run())
        try:
            await traffic.times(await traffic.write(1.0))
            for phase in phases:
                writing = asyncio.create_task(traffic.write(seconds))
                try:
                    if phase is not None:
                        made[phase] = await damage(db, key, f"{box.url}/damaged", phase)
                        found = await ended(db, made[phase])
                        findings += [f"{phase}: {wrong}" for wrong in wrong_with(found, phase)]
                    taken = await traffic.times(await writing)
                    beside.setdefault(phase, []).extend(taken) if phase else none.extend(taken)
                except TimeoutError:
                    findings.append(f"{phase}: not everything came to its end")
                finally:
                    await writing
                if loop.done():
                    findings.append(f"{phase}: the loop ended: {loop.exception()!r}")
                    break
            for phase, webhook_id in made.items():
                findings += [
                    f"{phase}, at the end: {wrong}"
                    for wrong in wrong_with(await deliveries_of(db, webhook_id), phase)
                    if not any(finding.startswith(f"{phase}: ") for finding in findings)
                ]
        finally:
            await worker.drain(1.0)
            await sender.close()
            loop.cancel()
            await asyncio.gather(loop, return_exceptions=True)
    copies = Counter((got.path, got.headers["X-Webhook-Id"]) for got in box.got)
    repeats = sum(count - 1 for count in copies.values())
    sent = sum(path == "/damaged" for path, _ in copies)
    if repeats:
        findings.append(f"{repeats} repeats at receivers")
    if sent:
        findings.append(f"{sent} damaged deliveries were sent")
    told = {"engine": engine, "seed": seed, "kinds": len(made), "repeats": repeats}
    return _judged(told, none, beside, findings)


def _judged(
    told: dict[str, Any], none: list[int], beside: dict[str, list[int]], findings: list[str]
) -> dict[str, Any]:
    if none and beside:
        without = quantile(none, 0.99)
        pooled = [time for times in beside.values() for time in times]
        told |= {"none_p99_ms": in_ms(without), "damaged_p99_ms": in_ms(quantile(pooled, 0.99))}
        told["of_none"] = round(quantile(pooled, 0.99) / without, 2)
        if told["of_none"] > OF_NONE:
            findings.append(f"p99 beside damage is {told['of_none']} of that without")
        for kind, times in beside.items():
            p99 = quantile(times, 0.99)
            if p99 > max(OF_NONE * without, without + NOISE_US):
                findings.append(f"{kind}: p99 {in_ms(p99)} ms")
    else:
        findings.append("there is nothing to compare")
    return {"pass": not findings, **told, "findings": findings[:30]}


pytestmark = pytest.mark.timed

BESIDE = 20
BIG = 5_000_000


async def enlarge(tx: Tx, event_id: str) -> None:
    """Longer than any possible write."""
    body = b"x" * BIG
    digest = hashlib.sha256(body).hexdigest()
    await tx.run(
        "update events set body = $2, body_digest = $3 where id = $1", event_id, body, digest
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
async def test_a_damaged_row_ends_dead_or_waits_and_holds_up_nobody(
    db: Database, kind: str
) -> None:
    key = ring()
    async with inbox() as box:
        await add_webhook(db, key, f"{box.url}/fine")
        async with drain(db, key) as running:
            damaged = await damage(db, key, f"{box.url}/damaged", kind)
            await db.write(make_many, BESIDE)
            await box.until(BESIDE, "/fine", seconds=8)
            await running.watch.until("attempt", BESIDE)
            assert wrong_with(await ended(db, damaged, seconds=8), kind) == []
            # The loop that met it continues.
            await db.write(make, "after")
            await box.until(BESIDE + 1, "/fine", seconds=8)
        assert wrong_with(await deliveries_of(db, damaged), kind) == []
        assert [got.path for got in box.got] == ["/fine"] * (BESIDE + 1)


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


@pytest.mark.slow
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
            await box.until(BESIDE, "/fine", seconds=8)
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
            await box.until(1, "/fine", seconds=8)
            assert wrong_with(await ended(db, damaged, seconds=8), kind) == []


@pytest.mark.proof
@pytest.mark.timeout(600)
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_damage_beside_traffic(engine: Engine) -> None:
    assert (await run_damage(engine, seed=1))["pass"]


@pytest.mark.slow
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
        [ended] = await _deliveries(db, big)
        # The test's receiver accepts a megabyte; the attempt must be made and logged.
        [attempt] = await db.read(
            rows, "select outcome from attempts where webhook_id = $1 and number = 1", big
        )
        assert ended["finished_at"]
        assert attempt["outcome"] in ("success", "http_4xx", "connect_error", "protocol_error")
        _nothing_else(box)


async def _deliveries(db: Database, webhook_id: str) -> list[Any]:
    return await db.read(rows, "select * from deliveries where webhook_id = $1", webhook_id)


def _nothing_else(box: Inbox) -> None:
    assert {got.path for got in box.got} <= {"/big", "/fine"}
