"""A turn of the drain as one statement on PostgreSQL: record results, claim and fan out.

There each statement is a round trip, and so are BEGIN and COMMIT. The function is that of migration
0035, with what later ones have changed. It is for the usual case: successes at webhooks with a
closed circuit, room for all that is due, and new events for few webhooks without conditions, order
or numbers. What is not usual it leaves as it is, and the units of `cycle` do it in parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from types import SimpleNamespace
from typing import Any

import msgspec

from outbox.database.sql import items
from outbox.database.transaction import Tx, alone
from outbox.queue.drain import fanout
from outbox.queue.drain.claim import CROWDED, TURN
from outbox.queue.drain.cycle import has_room
from outbox.queue.drain.fanout import Announced, FannedOut
from outbox.queue.drain.loading import SMALL_BODY, load
from outbox.queue.drain.settle import Settlement, attempt_of, event_digest_of
from outbox.queue.state import attempt_counts, chain, deleted_webhooks
from outbox.queue.state.claimed_deliveries import (
    Capacity,
    Claimed,
    ClaimedAttempt,
    Endpoint,
    Result,
    claimed_of,
)
from outbox.queue.state.policy import DELIVERED

MOST_RESULTS = 512
RECENT = 64
"""Webhooks whose windows the statement is told."""

# The lock of fan-out is taken before the function runs, whose statements see all that its last
# holder has committed.
CALL = f"""
select * from drain_at_once_6(
  cast($1 as json), $2, $3, $4, $5, $6, $7, $8, $9, $10, $11,
  case when cast($12 as boolean) then ({fanout.TURN}) end)
"""
NO_RESULTS: Sequence[Sequence[Any] | None] = (None,) * 10
"""The function reads none of them then; the driver takes long to encode an array."""

_json = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class Turn:
    """What a turn has done; `claimed` has what fan-out claimed, too, which `fanned` has not.

    `settlement` and `fanned` are None where that has to be done in parts, and with `claim_apart`
    a claim has to. `wait_us`: microseconds until a lane is due, None when none is.
    """

    settlement: Settlement | None = None
    fanned: FannedOut | None = None
    claimed: list[Claimed] = field(default_factory=list)
    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)
    claim_apart: bool = False
    fan_apart: bool = False
    large: Sequence[str] = ()
    """Deliveries that are claimed, but whose large bodies are not loaded."""
    waited: bool = False
    """Whether it claimed deliveries that had waited."""
    has_rest: bool = False
    """Whether fan-out left some for which there is room."""
    wait_us: int | None = None


def is_usual(batch: Sequence[Result]) -> bool:
    """Return whether all results are successes for which nothing but their webhook changes."""
    return len(batch) <= MOST_RESULTS and all(
        s.decision is DELIVERED
        and s.permission is None
        and not (s.delivery.ordered or s.delivery.attempt.probe)
        for s in batch
    )


@alone
async def turn(
    tx: Tx,
    batch: Sequence[Result],
    capacity: Capacity,
    windows: Mapping[str, int] | None,
    fan: bool,
) -> Turn:
    """Record results that are usual, claim what is due, and with `fan` fan out new events.

    `windows` has what the webhooks may start of which a send is in flight, and of some others;
    without it, results are recorded and nothing else is done. It waits for no lock.
    """
    health = {s.delivery.webhook_id: s.outcome and s.outcome.status for s in batch}
    plan: dict[str, Any] = {
        "now": tx.now, "claim": capacity.claim, "node": capacity.node_id, "slots": capacity.slots,
        "id": tx.new_id(), "step": attempt_counts.STEP, "health": list(health.items()),
        "figures": attempt_counts.rows_of(attempt_counts.of_results(batch, tx.now)),
    }  # fmt: skip
    if windows is not None:
        plan["windows"] = windows
    columns: Sequence[Sequence[Any] | None] = NO_RESULTS
    if batch:
        columns = list(zip(*map(_columns, batch), strict=True))
    rows = await tx.all(CALL, _json.encode(plan).decode(), *columns, fan)
    done = msgspec.json.decode(rows[0]["turn"])
    if done["settled"] == "parts":
        return Turn()
    claims = [
        claimed_of(
            row, capacity.claim, row["body"],
            ClaimedAttempt(
                number=row["attempts"], tries=row["tries"], retry=row["retry"],
                lag_us=row["lag_us"], waited_us=row["waited_us"],
            ),
        )
        for row in rows[1:] if row["size"] is None or row["size"] <= SMALL_BODY
    ]  # fmt: skip
    fanned = _fanned(done)
    has_rest = (
        fanned is not None
        and bool(fanned.ready)
        and has_room(capacity, replace(fanned, claimed=claims))
    )
    return Turn(
        Settlement(frozenset(s.delivery.id for s in batch), [], done["wait"]),
        fanned, claims,
        {values[0]: _endpoint(values) for values in done["webhooks"] or ()},
        claim_apart=windows is None or done["claimed"] == "parts",
        fan_apart=done["fanned"] == "parts",
        large=[row["id"] for row in rows[1:] if (row["size"] or 0) > SMALL_BODY],
        waited=done["waited"], has_rest=has_rest, wait_us=done["wait"],
    )  # fmt: skip


async def load_large(
    tx: Tx, ids: Sequence[str], capacity: Capacity, webhook_ids: Sequence[str]
) -> list[Claimed]:
    """Load claimed deliveries with large bodies; release those for which there is no memory."""
    lanes = dict(zip(webhook_ids, repeat(SimpleNamespace(open_for=0))))
    loaded, crowded = await load(tx, ids, capacity, lanes, ())
    if crowded:
        # Their webhook may have been deleted since the claim, and nothing else would end them.
        await deleted_webhooks.end_left(tx, ids)
        await tx.run(TURN, items([(webhook_id, 0, CROWDED) for webhook_id in sorted(crowded)]))
    return loaded


def _columns(s: Result) -> tuple[Any, ...]:
    """Return the values of a result for the function, in the order of its arguments."""
    assert s.outcome is not None
    values = attempt_of(s, s.outcome)
    headers, body = values[chain.HEADERS], values[chain.BODY]
    content = (
        *values[: chain.HEADERS],
        chain.answer_of(headers, body).hex(),
        *values[chain.BODY + 1 :],
    )
    return (
        s.delivery.webhook_id, s.delivery.id, s.delivery.claim, s.delivery.attempt.tries + 1,
        s.decision.reason, _json.encode(content).decode(), s.delivery.event.body_digest,
        event_digest_of(s).hex(), headers, body,
    )  # fmt: skip


def _fanned(done: Mapping[str, Any]) -> FannedOut | None:
    if done["fanned"] == "parts":
        return None
    announced = [Announced(*values) for values in done["events"] or ()]
    created: Counter[str] = Counter()
    for event in announced:
        created[event.name] += event.deliveries
    return FannedOut(
        Counter(event.name for event in announced), created,
        more=done["more"], turned_away=done["fanned"] == "away", noted=done["noted"],
        announced=announced, ready=dict(done["waiting"] or ()),
    )  # fmt: skip


def _endpoint(values: Sequence[Any]) -> Endpoint:
    (
        webhook_id, version, url, timeout_ms, schedule, headers, secret, staged, old, old_until,
        failures, keys, certificate, proxy, thin, oauth2, form, asks,
    ) = values  # fmt: skip
    return Endpoint(
        id=webhook_id,
        version=version,
        url=url,
        timeout_ms=timeout_ms,
        schedule=schedule,
        headers=_bytes(headers),
        secret=bytes.fromhex(secret),
        staged_secret=_bytes(staged),
        old_secret=_bytes(old),
        old_secret_until=old_until,
        failures=failures,
        signing_keys=keys,
        certificate=_bytes(certificate),
        proxy=proxy,
        thin=thin,
        oauth2=_bytes(oauth2),
        format=form,
        handshake=asks,
    )


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)
