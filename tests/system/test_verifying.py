"""A log of some size is walked within its time, and a change of it is found.

tests/outbox/queue/state/test_chain.py has each kind of change.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping, Sequence

from outbox.clock import Clock
from outbox.database.transaction import Database, Tx
from outbox.queue.drain.claim import claim
from outbox.queue.drain.fanout import fan_out
from outbox.queue.drain.settle import settle
from outbox.queue.state.claimed_deliveries import Capacity, Claimed, Endpoint, Result
from outbox.queue.state.policy import DELIVERED, Decision, Schedule
from outbox.sending.outcome import Outcome
from outbox.sending.request import compose, kept
from outbox.webhooks.secrets import KeyRing
from outbox.worker.request_building import RequestBuilder
from tests.support.chains import walked
from tests.support.drain import OWNER, add_webhook, make, ring, run
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
CHANGE = "update attempts set status = status + 1 where webhook_id = $1 and place = $2"


@ENGINES
async def test_a_change_in_a_long_log_is_found_in_a_minute_of_the_processor(engine: Engine) -> None:
    keys = ring()
    async with address(engine) as url, several(url, 1) as [db]:
        webhooks = [
            (await add_webhook(db, keys, f"http://127.0.0.1/{number}"))[0]
            for number in range(WEBHOOKS)
        ]
        count = await Recorder(db, keys, webhooks, SEED).record(ATTEMPTS)
        used = time.process_time()
        verdict = await walked(url, keys)
        used = time.process_time() - used
        print(json.dumps({"engine": engine, "attempts": count, "cpu_seconds": round(used, 2)}))
        assert (verdict.faults, verdict.attempts) == ([], count)
        assert verdict.judge.signed == {"right": count}
        assert used <= SECONDS
        changed = random.Random(SEED).choice(webhooks), count // WEBHOOKS // 2
        assert await db.write(run, CHANGE, *changed) == 1
        faults = (await walked(url, keys)).faults
        assert [(fault.webhook_id, fault.place) for fault in faults] == [changed]
