"""Read the log of one delivery: itself, its event, its attempts; and the health of a webhook."""

from dataclasses import fields
from typing import Any, TypeVar

from outbox.database.index_plans import by_index
from outbox.database.transaction import Row, Tx
from outbox.queue.log.delivery_types import (
    COUNTED,
    Announced,
    Attempt,
    Delivery,
    FailedAttempt,
    Health,
)
from outbox.sending.request import restored
from outbox.sending.response_body import stored_headers

T = TypeVar("T")
LATEST = 25
"""Attempts of a delivery that are read in full: a receiver that is down gets hundreds of probes."""

COLUMNS = """d.id, d.owner_id, d.event_id, e.name as event, d.webhook_id, d.origin, d.state,
  d.reason, d.retry, d.tries, d.attempts, d.record_id, d.created_at, d.finished_at, d.last_outcome,
  d.last_status, d.replayed_by, d.next_at, d.next_at - due_now() as due_in"""
_ONE = f"select {COLUMNS} from deliveries d left join events e on e.id = d.event_id where d.id = $1"
# Without statistics SQLite may read more than the latest, so it is told the index.
_LATEST = f"""
select {COLUMNS} from deliveries d /*sqlite indexed by deliveries_log*/
left join events e on e.id = d.event_id
where d.webhook_id = $1 order by d.id desc limit $2
"""
_WAITING = """
select count(*) as waiting from (
  select 1 as one from deliveries /*sqlite indexed by deliveries_ready*/
  where webhook_id = $1 and state = 'ready' limit $2) as ready
"""


async def one(tx: Tx, delivery_id: str) -> Delivery | None:
    """Return the delivery of this id, of any owner."""
    row = await tx.one(_ONE, delivery_id)
    return None if row is None else delivery_of(row)


def delivery_of(row: Row) -> Delivery:
    """Return the delivery of a row with COLUMNS."""
    return _from_row(Delivery, row)


async def event(tx: Tx, event_id: str) -> Announced | None:
    """Return the event of this id; None after retention has removed it."""
    row = await tx.one(f"select {_EVENT} from events where id = $1", event_id)
    return None if row is None else _from_row(Announced, row)


# Named columns, so that a newer schema does not change the result.
_EVENT = ", ".join(column.name for column in fields(Announced))
_ATTEMPT = ", ".join(column.name for column in fields(Attempt))


async def attempts(tx: Tx, delivery_id: str) -> list[Attempt]:
    """Return the LATEST attempts of a delivery, the last one first."""
    rows = await tx.all(
        f"select event_id, {_ATTEMPT} from attempts where delivery_id = $1"
        f" order by number desc limit {LATEST}",
        delivery_id,
    )
    return [_from_row(Attempt, row) for row in rows]


_FAILED = f"""
select a.*, e.name as event, d.record_id
from (
  select delivery_id, event_id, {_ATTEMPT} from attempts /*sqlite indexed by attempts_failed*/
  where webhook_id = $1 and outcome <> 'success' order by started_at desc limit $2) as a
left join deliveries d on d.id = a.delivery_id left join events e on e.id = a.event_id
order by a.started_at desc
"""


async def failed_attempts(tx: Tx, webhook_id: str, most: int) -> list[FailedAttempt]:
    """Return the latest attempts of a webhook that failed, the last one first."""
    await by_index(tx)
    return [
        FailedAttempt(row["delivery_id"], row["event"], row["record_id"], _from_row(Attempt, row))
        for row in await tx.all(_FAILED, webhook_id, most)
    ]


async def attempted(tx: Tx, delivery_id: str) -> int:
    """Return how many attempts of a delivery the log has."""
    row = await tx.one("select count(*) as count from attempts where delivery_id = $1", delivery_id)
    return 0 if row is None else int(row["count"])


async def siblings(tx: Tx, delivery: Delivery) -> list[Delivery]:
    """Return other deliveries of the event to the same webhook: the original and the replays."""
    rows = await tx.all(
        f"""
        select {COLUMNS} from deliveries d left join events e on e.id = d.event_id
        where d.id <> $3 and d.id in (
          select id from deliveries
          where event_id = $1 and webhook_id = $2 and origin = 'event'
          union all
          select id from deliveries
          where event_id = $1 and webhook_id = $2 and origin <> 'event')
        order by d.id desc limit 20
        """,
        delivery.event_id,
        delivery.webhook_id,
        delivery.id,
    )
    return [delivery_of(row) for row in rows]


async def health(tx: Tx, webhook_id: str, latest: int = 30) -> Health:
    """Return the number of waiting deliveries and the `latest` deliveries of a webhook."""
    waiting = await tx.one(_WAITING, webhook_id, COUNTED)
    rows = await tx.all(_LATEST, webhook_id, latest)
    return Health(0 if waiting is None else int(waiting["waiting"]), tuple(map(delivery_of, rows)))


def _from_row(kind: type[T], row: Row) -> T:
    columns = fields(kind)  # type: ignore[arg-type] # each of them is a dataclass
    values: dict[str, Any] = {column.name: row[column.name] for column in columns}
    for name in ("retry", "truncated"):
        if name in values:
            values[name] = bool(values[name])
    if "response_headers" in values:
        values["response_headers"] = stored_headers(values["response_headers"])
        values["request_headers"] = restored(
            row["request_headers"], row["event_id"], row["number"], row["started_at"]
        )
    return kind(**values)
