"""A log of some size: each change of it is found, and retention and erasure leave it whole."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping, Sequence
from typing import Any

from outbox.clock import Clock
from outbox.database import sql
from outbox.database.transaction import Database, Row, Tx
from outbox.queue.drain.claim import claim
from outbox.queue.drain.fanout import fan_out
from outbox.queue.drain.settle import settle
from outbox.queue.state.chain import COVERED, LINK
from outbox.queue.state.claimed_deliveries import Capacity, Claimed, Endpoint, Result
from outbox.queue.state.policy import DELIVERED, Decision, Schedule
from outbox.queue.upkeep import erasure_requests, retention
from outbox.queue.upkeep.erasure import Erasure
from outbox.sending.outcome import Outcome
from outbox.sending.request import compose, kept
from outbox.webhooks.secrets import KeyRing
from outbox.worker.request_building import RequestBuilder
from tests.support.chains import walked
from tests.support.drain import OWNER, add_webhook, make, ring, rows
from tests.support.engines import Engine
from tests.support.faults import ENGINES
from tests.system.staging import address, several

FAILED = Decision("ready", "http_5xx", 0, None, False, "keep", True, True)
AT_ONCE = 400
RECORDS = 50
BODIES = 16 * 1024 * 1024
ANSWER = b'{"received":true}'


class Recorder:
    """Records attempts with real signatures; about one in five fails and is tried again."""

    def __init__(self, db: Database, keys: KeyRing, webhooks: Sequence[str], seed: int) -> None:
        self._db = db
        self._random = random.Random(seed)
        self._opened = RequestBuilder(keys, 15.0, Schedule())
        self._count = len(webhooks)
        windows = dict.fromkeys(webhooks, 2 * AT_ONCE)
        self._room = Capacity("node", "claim", AT_ONCE, AT_ONCE, AT_ONCE, windows, BODIES)

    async def record(self, attempts: int) -> int:
        """Record at least so many attempts, and end all deliveries; return how many it was."""
        done = 0
        while done < attempts:
            await self._db.write(_events, max(AT_ONCE // self._count, 1), self._random.random())
            fanned = await self._db.write(fan_out, self._room)
            done += await self._settle(fanned.claimed, fanned.endpoints)
            done += await self._again()
        while more := await self._again():
            done += more
        return done

    async def _again(self) -> int:
        taken = await self._db.write(claim, self._room, {})
        return await self._settle(taken.claimed, taken.endpoints)

    async def _settle(self, some: Sequence[Claimed], endpoints: Mapping[str, Endpoint]) -> int:
        results = [self._result(one, endpoints[one.webhook_id], self._db.clock) for one in some]
        self._random.shuffle(results)
        if results:
            settlement = await self._db.write(settle, results)
            assert len(settlement.held) == len(results)
        return len(results)

    def _result(self, one: Claimed, endpoint: Endpoint, clock: Clock) -> Result:
        now = clock.wall()
        request, _ = self._opened.request(one, endpoint, now)
        headers = compose(request, service="Carteiro", now_wall=now, span_id="")
        right = self._random.random() < 0.8
        outcome = Outcome(
            outcome="success" if right else "http_5xx", status=200 if right else 500,
            address="192.0.2.1", first_byte_us=900, total_us=1_000 + self._random.randrange(5_000),
            response_headers=[("Content-Type", "application/json")], response_body=ANSWER,
            reused=True,
        )  # fmt: skip
        decision = DELIVERED if right else FAILED
        return Result(one, decision, outcome, now, kept(headers), endpoint.url, "node")


async def _events(tx: Tx, count: int, start: float) -> None:
    for number in range(count):
        await make(tx, f"record-{(int(start * 1e6) + number) % RECORDS}", owner=OWNER)


SEED, ATTEMPTS = 70261, 50_000
WEBHOOKS = 20
SECONDS = 60.0
COLUMNS = (*COVERED, *LINK, "answer_digest")
ERASED = ("record-1", "record-2", "record-3")
KEY = "delivery_id = $2 and number = $3"
DELETE = "delete from attempts where delivery_id = $1 and number = $2"


@ENGINES
async def test_each_change_of_a_log_is_found(engine: Engine) -> None:
    dice, keys, findings = random.Random(SEED), ring(), list[str]()
    figures: dict[str, object] = {"engine": engine}
    async with address(engine) as url, several(url, 1) as [db]:
        webhooks = [
            (await add_webhook(db, keys, f"http://127.0.0.1/{number}"))[0]
            for number in range(WEBHOOKS)
        ]
        count = await Recorder(db, keys, webhooks, SEED).record(ATTEMPTS)
        began, used = time.monotonic(), time.process_time()
        verdict = await walked(url, keys)
        seconds = time.monotonic() - began
        figures |= {
            "attempts": verdict.attempts, "seconds": round(seconds, 2),
            "cpu_seconds": round(time.process_time() - used, 2),
            "signatures": verdict.judge.signed["right"],
        }  # fmt: skip
        _need(findings, verdict.faults == [], f"untouched: {verdict.faults[:1]}")
        _need(findings, verdict.attempts == count, "attempts were passed over")
        _need(findings, verdict.judge.signed == {"right": count}, "signatures were passed over")
        _need(
            findings, time.process_time() - used <= SECONDS, "more than a minute of the processor"
        )
        figures["changes_found"] = await _change_each(db, url, keys, webhooks, dice, findings)
        figures["rows_missed"] = await _remove_some(db, url, keys, webhooks, dice, findings)
        figures["erased"] = await _erase(db, url, keys, findings)
        figures["deleted"] = await _expire(db, url, keys, dice, findings)
    print(json.dumps(figures))
    assert findings == []


async def _change_each(
    db: Database, url: str, keys: KeyRing, webhooks: list[str], dice: random.Random,
    findings: list[str],
) -> int:  # fmt: skip
    """Change each column of some row, walk its chain, and change it back."""
    found = 0
    for column in COLUMNS:
        row = await _some(db, dice.choice(webhooks), dice)
        other = _other(column, row[column])
        change = f"update attempts set {column} = $1 where {KEY}"
        await _run(db, change, other, row["delivery_id"], row["number"])
        verdict = await walked(url, keys, row["webhook_id"])
        keyed = [other if column == name else row[name] for name in ("delivery_id", "number")]
        await _run(db, change, row[column], *keyed)
        right = [fault.place for fault in verdict.faults] == [row["place"]]
        _need(findings, right, f"{column} of place {row['place']}: {verdict.faults[:1]}")
        found += right
    return found


async def _remove_some(
    db: Database, url: str, keys: KeyRing, webhooks: list[str], dice: random.Random,
    findings: list[str],
) -> int:  # fmt: skip
    """Delete a row, look for it, and put it back: the first, the last and some between."""
    found = 0
    for where in ("first", "last", "between", "between"):
        webhook_id = dice.choice(webhooks)
        row = await _some(db, webhook_id, dice, where)
        await _run(db, DELETE, row["delivery_id"], row["number"])
        verdict = await walked(url, keys, webhook_id)
        await db.write(_put_back, row)
        right = [(f.place, f.missing) for f in verdict.faults] == [(row["place"], True)]
        _need(findings, right, f"the {where} row: {verdict.faults[:1]}")
        found += right
    return found


async def _erase(db: Database, url: str, keys: KeyRing, findings: list[str]) -> int:
    async def ask(tx: Tx) -> None:
        await erasure_requests.request(tx, OWNER, ERASED)

    await db.write(ask)
    await Erasure(db).run_once()
    verdict = await walked(url, keys)
    _need(findings, verdict.faults == [], f"after an erasure: {verdict.faults[:1]}")
    [left] = await db.read(
        rows, "select count(*) as had from attempts where answer_digest is not null"
    )
    _need(findings, left["had"] > 0, "nothing was erased")
    _need(findings, verdict.judge.signed["no_body"] == left["had"], "erased ones not counted")
    return int(left["had"])


async def _expire(
    db: Database, url: str, keys: KeyRing, dice: random.Random, findings: list[str]
) -> int:
    """Delete half of the deliveries as retention does, those that are older rather than others."""
    ids = [row["id"] for row in await db.read(rows, "select id from deliveries order by id")]
    count = len(ids) // 2
    gone = [one for place, one in enumerate(ids) if place < count * 2 * dice.random()]
    left = list(gone)
    while left:
        done, _, _ = await db.write(retention.purge_deliveries, left[:500], 2**62, db.clock)
        left = left[done:]
    verdict = await walked(url, keys)
    _need(findings, verdict.faults == [], f"after retention: {verdict.faults[:1]}")
    return len(gone)


async def _some(db: Database, webhook_id: str, dice: random.Random, where: str = "between") -> Row:
    places = await db.read(
        rows, "select place from attempts where webhook_id = $1 order by place", webhook_id
    )
    place = {"first": places[0], "last": places[-1]}.get(where) or dice.choice(places[1:-1])
    [row] = await db.read(
        rows, "select * from attempts where webhook_id = $1 and place = $2", webhook_id,
        place["place"],
    )  # fmt: skip
    return row


def _other(column: str, value: Any) -> Any:
    """Return another value of the type of a column: one bit or one sign of it is different."""
    if column in ("digest", "body_digest", "answer_digest", "event_digest", "response_body"):
        old = bytes(value) if value is not None else bytes(32)
        return bytes([old[0] ^ 1]) + old[1:] if value is not None else old
    if column == "truncated":
        return not value
    if column == "kind":
        return "replay"
    if isinstance(value, str):
        return value[:-1] + ("x" if value[-1:] != "x" else "y")
    if column in ("error", "address"):
        return "x"
    if column == "number":
        # No other attempt of the delivery has it.
        return value + 1_000
    return 1 if value is None else value + 1


async def _put_back(tx: Tx, row: Row) -> None:
    await sql.insert(tx, "attempts", COLUMNS, [[row[name] for name in COLUMNS]])


async def _run(db: Database, statement: str, *args: object) -> None:
    async def unit(tx: Tx) -> None:
        await tx.run(statement, *args)

    await db.write(unit)


def _need(findings: list[str], holds: bool, what: str) -> None:
    if not holds:
        findings.append(what)
