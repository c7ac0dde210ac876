"""Takes a person out of the responses that are stored for repeated requests.

Each response is read and searched once, page by page, outside the transactions that shorten some.
Responses that are stored meanwhile come in no order of keys, so they are searched afterwards, by
their time.
"""

from collections.abc import Sequence
from typing import Any

from msgspec import MsgspecError, Struct, json

from gateway.domain.contacts import person_erasures
from gateway.domain.contacts.person_erasures import Erasure, Person
from gateway.domain.privacy.apart import apart
from gateway.domain.privacy.automaton import Automaton
from gateway.domain.privacy.page_sizes import SIZE, PageSize
from gateway.domain.privacy.traces import Traces
from outbox.database.transaction import DUTIES, Database, Row, Tx
from outbox.durations import MINUTE
from outbox.ids import is_id

LATE = MINUTE
"""What a transaction may be open, and clocks of nodes may differ."""
TOGETHER = 32
"""Responses that are searched together, of a page that has the person."""
_SIZE = SIZE.format("outcome")
_PAGED = """
select t.key, t.operation, t.outcome, t.created_at, p.size from (
  select key, operation, size,
    sum(size) over (order by {order}) - size as earlier from (
    select key, operation, created_at, coalesce({size}, 0) as size from idempotency
    where owner_id = $1 and {where} order by {order} limit {limit}
  ) as sizes
) as p join idempotency t
  on t.owner_id = $1 and t.key = p.key and t.operation = p.operation
where p.earlier < {limit_bytes} order by {sorted}
"""
_NEXT = _PAGED.format(
    order="key, operation", sorted="t.key, t.operation", size=_SIZE,
    where="(key, operation) > ($2, $3)", limit="$4", limit_bytes="$5",
)  # fmt: skip
_SINCE = _PAGED.format(
    order="created_at, key, operation", sorted="t.created_at, t.key, t.operation", size=_SIZE,
    where="(created_at, key, operation) > ($2, $3, $4)", limit="$5", limit_bytes="$6",
)  # fmt: skip
_ONE = "where owner_id = $1 and key = $2 and operation = $3 and created_at = $4"
_SHORTEN = f"update idempotency set outcome = $5 {_ONE}"
_DELETE = f"delete from idempotency {_ONE}"


class Place(Struct, frozen=True):
    """How far an erasure is with the stored responses of its owner.

    `since`: when it began; from `at` on, by time, responses are searched that came meanwhile.
    """

    key: str = ""
    operation: str = ""
    since: int = 0
    at: int | None = None


class Change(Struct, frozen=True):
    """What becomes of a response: its outcome, or None to delete it."""

    key: str
    operation: str
    created_at: int
    outcome: str | None


def place_of(erasure: Erasure, now: int) -> Place:
    """Return the place that an erasure stores; a former version stored a key and an operation."""
    if not erasure.place:
        return Place(since=now - LATE)
    if erasure.place.startswith("["):
        key, operation = json.decode(erasure.place, type=tuple[str, str])
        return Place(key, operation, erasure.requested_at)
    return json.decode(erasure.place, type=Place)


async def move_on(db: Database, erasure: Erasure, size: PageSize) -> PageSize:
    """Search a page of responses and shorten those with the person, or end the stage.

    So a repeated request still makes nothing twice. A response whose key holds the person is
    deleted. Return the size of the next page.
    """
    assert erasure.person is not None
    place = place_of(erasure, db.clock.wall())
    rows = await db.scan(DUTIES, page, erasure.owner_id, place, size)
    changes = await apart(_changes, rows, erasure.person)
    await db.write(_change, erasure.id, place, _after(place, rows), changes)
    return size.after(len(rows), sum(int(row["size"]) for row in rows))


async def page(tx: Tx, owner_id: str, place: Place, size: PageSize) -> list[Row]:
    """Return the next responses of an owner, in the order of their keys, then of their times."""
    if place.at is None:
        return await tx.all(_NEXT, owner_id, place.key, place.operation, size.rows, size.bytes)
    return await tx.all(
        _SINCE, owner_id, place.at, place.key, place.operation, size.rows, size.bytes
    )


def _after(place: Place, rows: Sequence[Row]) -> Place | None:
    """Return where to go on after these rows, or None at the end."""
    if rows:
        last = rows[-1]
        at = None if place.at is None else int(last["created_at"])
        return Place(last["key"], last["operation"], place.since, at)
    return Place(since=place.since, at=place.since) if place.at is None else None


async def _change(
    tx: Tx, erasure_id: str, before: Place, after: Place | None, changes: Sequence[Change]
) -> None:
    """Change responses that are still those that were searched; store how far the erasure is."""
    erasure = await person_erasures.one(tx, erasure_id, lock=True)
    if erasure is None or erasure.person is None or erasure.stage != "responses":
        return
    count = 0
    for change in changes:
        which = (erasure.owner_id, change.key, change.operation, change.created_at)
        if change.outcome is None:
            count += await tx.run(_DELETE, *which)
        else:
            count += await tx.run(_SHORTEN, *which, change.outcome)
    await person_erasures.save(
        tx, erasure, stage="log" if after is None else "responses", person=erasure.person,
        place="" if after is None else json.encode(after).decode(),
        erased={"storedResponses": count},
    )  # fmt: skip


def _changes(rows: Sequence[Row], person: Person) -> list[Change]:
    """Return what becomes of the responses that hold the person."""
    traces, ids = Traces(person), Automaton(person.ids)
    changes = []
    for row in _holding(rows, traces, ids):
        in_key = traces.within_key(f"{row['key']}\n{row['operation']}")
        outcome = None if in_key else _short(row["outcome"] or "")
        if outcome != (row["outcome"] or ""):
            changes.append(Change(row["key"], row["operation"], row["created_at"], outcome))
    return changes


def _holding(rows: Sequence[Row], traces: Traces, ids: Automaton) -> list[Row]:
    """Return the rows that hold the person: most pages have none, so they are searched whole."""
    text = "\n".join(f"{row['key']}\n{row['operation']}\n{row['outcome'] or ''}" for row in rows)
    if not (ids.within(text) or _holds(text, traces)):
        return []
    if len(rows) == 1:
        return [*rows]
    part = TOGETHER if len(rows) > TOGETHER else 1
    parts = (rows[start : start + part] for start in range(0, len(rows), part))
    return [row for some in parts for row in _holding(some, traces, ids)]


def _holds(text: str, traces: Traces) -> bool:
    return traces.within_coded(text, close=False)


def _short(outcome: str) -> str | None:
    """Return an outcome that has no more than ids, or None for one that cannot be shortened."""
    if is_id(outcome):
        # Of an item of a batch.
        return outcome
    try:
        status, headers, body = json.decode(outcome, type=tuple[int, dict[str, str], str])
        bare = _bare(json.decode(body))
    except (MsgspecError, KeyError, TypeError):
        return None
    return json.encode((status, headers, json.encode(bare).decode())).decode()


def _bare(whole: Any) -> Any:
    """Return the ids of a response: of its record, or of each item of a batch."""
    if "results" in whole:
        shown = ("index", "status", "id", "code")
        return {"results": [{k: one[k] for k in shown if k in one} for one in whole["results"]]}
    return {"id": whole["id"]}
