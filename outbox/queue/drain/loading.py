"""Load the events of claimed deliveries and the webhooks that they go to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from outbox.database.sql import IDS, items
from outbox.database.transaction import Row, Tx
from outbox.queue.state.claimed_deliveries import (
    Capacity,
    Claimed,
    ClaimedAttempt,
    Endpoint,
    claimed_of,
)
from outbox.webhooks import signing_keys

SMALL_BODY = 64 * 1024
"""A body of up to this many bytes is loaded with its claim, whatever memory is in use."""

UNCLAIM = """
update deliveries set state = 'ready', claim = null, node_id = null, attempts = attempts - 1
where id = $1 and claim = $2
"""

LOAD = f"""
select d.id, d.owner_id, d.event_id, d.webhook_id, d.origin, d.tries, d.attempts, d.retry,
  d.ordered, d.sequence, d.repeats, (select due_now()) - d.next_at as lag_us,
  /*sqlite 0*/ /*postgres d.next_at - coalesce(e.due_at, d.next_at)*/ as earlier_us,
  e.name, e.record_id, e.record_version, e.occurred_at, e.request_id, e.traceparent, e.body_digest,
  e.about_id, e.erased_at, length(e.body) as size,
  case when length(e.body) <= {SMALL_BODY} then e.body end as body
from deliveries d join events e on e.id = d.event_id
where d.id in {IDS} order by d.retry, d.next_at
"""
LARGE = "select body from events where id = $1"

ENDPOINT = f"""w.id, w.version, w.url, w.timeout_ms, w.schedule, w.headers, w.secret,
  w.staged_secret, w.old_secret, w.old_secret_until, w.failures, w.certificate, w.proxy, w.thin,
  w.oauth2, w.format, case when w.handshake then coalesce(w.rate, 0) end as asks,
  {signing_keys.FOR_WEBHOOK}"""
"""The columns of `webhooks` for `endpoint_of`."""
ENDPOINTS = f"select {ENDPOINT} from webhooks w where w.id in {IDS}"


class Lane(Protocol):
    """A lane: microseconds since its receiver or circuit stopped holding it."""

    open_for: int


async def load(
    tx: Tx,
    ids: Sequence[str],
    capacity: Capacity,
    lanes: Mapping[str, Lane],
    probes: Collection[str],
) -> tuple[list[Claimed], frozenset[str]]:
    """Return the claimed deliveries of these ids with their events, first attempts first.

    Large bodies are loaded while `capacity` has bytes for them; the other deliveries are released.
    The second value names their webhooks. `probes` are the ids that were claimed as probes.
    """
    claims: list[Claimed] = []
    crowded: set[str] = set()
    bytes_left = capacity.body_bytes
    for row in await tx.all(LOAD, items(ids)) if ids else ():
        body, size = row["body"], row["size"] or 0
        if size > SMALL_BODY:
            if size > bytes_left:
                crowded.add(row["webhook_id"])
                await tx.run(UNCLAIM, row["id"], capacity.claim)
                continue
            bytes_left -= size
            large = await tx.one(LARGE, row["event_id"])
            body = None if large is None else large["body"]
        open_for = lanes[row["webhook_id"]].open_for
        attempt = ClaimedAttempt(
            number=row["attempts"],
            tries=row["tries"],
            retry=bool(row["retry"]),
            probe=row["id"] in probes,
            lag_us=min(row["lag_us"], open_for),
            waited_us=min(row["lag_us"] + row["earlier_us"], open_for),
        )
        claims.append(claimed_of(row, capacity.claim, body, attempt))
    return claims, frozenset(crowded)


async def endpoints_of(tx: Tx, webhook_ids: Iterable[str]) -> dict[str, Endpoint]:
    """Return the data for requests to these webhooks."""
    ids = sorted(webhook_ids)
    rows = await tx.all(ENDPOINTS, items(ids)) if ids else []
    return {row["id"]: endpoint_of(row) for row in rows}


def endpoint_of(webhook: Row) -> Endpoint:
    """Return the data for requests to a webhook, of a row with the columns of ENDPOINT."""
    return Endpoint(
        id=webhook["id"], version=webhook["version"], url=webhook["url"],
        timeout_ms=webhook["timeout_ms"], schedule=webhook["schedule"], headers=webhook["headers"],
        secret=webhook["secret"], staged_secret=webhook["staged_secret"],
        old_secret=webhook["old_secret"], old_secret_until=webhook["old_secret_until"],
        failures=webhook["failures"], signing_keys=webhook["signing_keys"],
        certificate=webhook["certificate"], proxy=webhook["proxy"], thin=bool(webhook["thin"]),
        oauth2=webhook["oauth2"], format=webhook["format"], handshake=webhook["asks"],
    )  # fmt: skip
