"""Fill a database with finished deliveries of the past, with chains as the engine makes them."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence

from outbox.database import sql
from outbox.database.transaction import Database, Tx
from outbox.durations import DAY
from outbox.ids import Ids
from outbox.queue.state import chain

MINUTE = 60_000_000
AT_ONCE = 2_000
PER_EVENT = 10
RECORD = "old"
REQUEST = '["contact.created","1","sha256=' + "0" * 64 + '","Carteiro-Webhook/1.0","1","v1,"]'
ANSWER = '[["Content-Type","application/json"],["Server","nginx"]]'
DELIVERY = (
    "id", "owner_id", "event_id", "webhook_id", "origin", "state", "retry", "next_at", "tries",
    "attempts", "record_id", "seq", "created_at", "finished_at", "last_outcome", "last_status",
)  # fmt: skip
EVENT = (
    "id", "seq", "owner_id", "name", "record_id", "record_version", "occurred_at", "body",
    "body_digest",
)  # fmt: skip
ATTEMPT = (*chain.COVERED, *chain.LINK)
BODY = b'{"event":"contact.created","timestamp":1,"data":{"id":"old"}}'
DIGEST = hashlib.sha256(BODY).hexdigest()
# Nobody knows the secret that signed these rows.
SIGNED_BEFORE = "update webhooks set secret_since = $1"
HEAD = "update lanes set chain_place = $2, chain_digest = $3 where webhook_id = $1"
FAR = 2**61


class OldRows:
    """Adds rows at the webhooks of an owner, in any number of calls."""

    def __init__(self, db: Database, owner_id: str, webhooks: Sequence[str], seed: int) -> None:
        self._db = db
        self._owner = owner_id
        self._webhooks = webhooks
        self._random = random.Random(seed)
        self._ids = Ids()
        self._heads: dict[str, chain.Head] = dict.fromkeys(webhooks, (0, ""))
        self._seq = 0

    async def add(self, count: int, days: float, *, finished: bool = True) -> None:
        """Add deliveries that were made so many days ago; those not finished are due far ahead."""
        now = self._db.clock.wall()
        for start in range(0, count, AT_ONCE):
            # The time goes on from one transaction to the next.
            at = now - round(days * DAY) + start * MINUTE // AT_ONCE
            await self._db.write(self._some, min(AT_ONCE, count - start), at, finished)

    async def _some(self, tx: Tx, count: int, at: int, finished: bool) -> None:
        events, deliveries, attempts = [], [], []
        event_id = ""
        for number in range(count):
            if number % PER_EVENT == 0:
                event_id = self._ids.new(at)
                self._seq += 1
                events.append(
                    (event_id, self._seq, self._owner, "contact.created", RECORD, 1, at,
                     BODY, DIGEST)
                )  # fmt: skip
            delivery_id, webhook_id = self._ids.new(at), self._random.choice(self._webhooks)
            deliveries.append((
                delivery_id, self._owner, event_id, webhook_id, "replay",
                "delivered" if finished else "ready", False, FAR, 1, 1, RECORD, self._seq, at,
                at + MINUTE if finished else None, "success", 200,
            ))  # fmt: skip
            attempts.append((
                self._owner, delivery_id, webhook_id, event_id, 1, "event", "success", 200, None,
                at, None, None, None, 900, 1_500, "192.0.2.1", "https://example.com/hook", REQUEST,
                ANSWER, b'{"received":true}', False, "node",
            ))  # fmt: skip
        # Results come in another order than deliveries were made.
        self._random.shuffle(attempts)
        before = {one: f"{place} {digest}" for one, (place, digest) in self._heads.items()}
        linked, heads = chain.link([(row, DIGEST, None, None) for row in attempts], before)
        self._heads |= heads
        await sql.insert(tx, "events", EVENT, events)
        await sql.insert(tx, "deliveries", DELIVERY, deliveries)
        await sql.insert(tx, "attempts", ATTEMPT, linked)
        for webhook_id, head in heads.items():
            await tx.run(HEAD, webhook_id, *head)
        await tx.run(SIGNED_BEFORE, tx.now)
        await tx.run("update outbox_state set seq = $1", self._seq)
