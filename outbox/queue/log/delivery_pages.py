"""Read the deliveries of one webhook or several as one list, with filters.

Each webhook's log is read by its own index and merged, so a list costs the same however long the
logs are. A filter that no index serves is judged row by row, and a page then ends after a number of
rows: it may be short and still have a next page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from outbox.database.index_plans import by_index
from outbox.database.sql import IDS, items
from outbox.database.transaction import Tx
from outbox.ids import first_at
from outbox.queue.log.delivery_log import COLUMNS, delivery_of
from outbox.queue.log.delivery_types import (
    FAILED,
    FAILURES,
    NO_TIME,
    WAITING,
    Delivery,
    DeliveryQuery,
    StateFilter,
)
from outbox.queue.state import lanes

SCANNED = 5_000
"""Rows that one page examines at most when no index serves a filter."""
TERMS = 50
"""Parts of one statement; SQLite allows 500."""


class Logged(Protocol):
    """A webhook with a log: one that is there, or a deleted one."""

    @property
    def id(self) -> str: ...
    @property
    def state(self) -> str: ...


Key = tuple[int, str]
"""The place of a delivery in the list: when it is due (0 in lists of the newest), and its id."""
_Read = tuple[list[Key], Key | None]
"""What matched, and where the first part ended that has more rows."""

ENDED = "d.state in ('exhausted', 'gone', 'cancelled', 'dead') and d.state = '{}'"
# SQLite is told the index, because without statistics it may read the whole log for a rare state.
RANGES: dict[StateFilter, tuple[str, str]] = {
    "all": ("deliveries_log", "d.state is not null"),
    **{state: ("deliveries_ended", ENDED.format(state)) for state in (*FAILED, "cancelled")},
    "retrying": ("deliveries_failed", "d.state = 'ready' and d.last_outcome is not null"),
}
NEWEST = """
select * from (
  select d.id, 0 as due, {hit} as hit from deliveries d /*sqlite indexed by {index}*/
  where d.webhook_id = {webhook} and d.id < $1 and d.id >= $2 and {state}
  order by d.id desc limit $3) as {name}
"""
# Sorted by an expression, so that PostgreSQL does not walk the whole log in the order of ids.
FEW = """
select * from (
  select d.id, 0 as due, {hit} as hit from deliveries d /*sqlite indexed by {index}*/
  where d.state = '{state}' and d.webhook_id in {webhooks} and d.id < $1 and d.id >= $2
  order by d.id || '' desc limit $3) as few
"""
FEW_INDEXES: dict[StateFilter, str] = {
    "in_flight": "deliveries_claimed",
    "held": "deliveries_held",
}
SOONEST = """
select * from (
  select d.id, d.next_at as due, {hit} as hit
  from deliveries d /*sqlite indexed by deliveries_ready*/
  where d.webhook_id = {webhook} and d.state = 'ready' and d.retry = {retry}
    and d.next_at >= $2 and (d.next_at > $2 or d.id > $1) and d.next_at <= {end}
  order by d.next_at, d.id limit $3) as {name}
"""
# An array, so that PostgreSQL looks up each id, whatever its statistics say.
GIVEN = f"/*sqlite in*/ /*postgres = any (array*/ {IDS} /*postgres )*/"
BY_ID = f"""
select {COLUMNS} from deliveries d left join events e on e.id = d.event_id where d.id {GIVEN}
"""
HELD = f"""
select count(*) as held from (
  select 1 as one from deliveries /*sqlite indexed by deliveries_held*/
  where state = 'held' and webhook_id {GIVEN} limit $2) as held
"""


@dataclass(frozen=True, slots=True)
class DeliveryPage:
    """One page; `after` is where the next one starts, None at the end.

    `searched` means that the page ended before it was full, because many rows did not match.
    """

    deliveries: Sequence[Delivery]
    after: str | None
    searched: bool = False


@dataclass(slots=True)
class _Terms:
    """The parts of a union, each with an order and a limit of its own."""

    texts: list[str]
    values: list[Any]

    def value(self, value: Any) -> str:
        self.values.append(value)
        return f"${len(self.values)}"


async def page(
    tx: Tx, webhooks: Sequence[Logged], query: DeliveryQuery, after: str = "", size: int = 50,
    scanned: int = SCANNED,
) -> DeliveryPage:  # fmt: skip
    """Return a page of the matching deliveries: newest first, or waiting ones by due time.

    `after` is the end of the previous page; an invalid value starts at the beginning. About
    `scanned` rows are examined when no index serves a filter.
    """
    await by_index(tx)
    waiting = query.only == "waiting" or query.only in WAITING
    if waiting and query.only != "waiting":
        parked = query.only == "parked"
        webhooks = [webhook for webhook in webhooks if (webhook.state != "active") == parked]
    keys: list[Key] = []
    horizon: Key | None = None
    for start in range(0, len(webhooks), TERMS):
        some = webhooks[start : start + TERMS]
        hits, end = await (_soonest if waiting else _newest)(tx, some, query, after, size, scanned)
        keys += hits
        horizon = _nearer(horizon, end, waiting)
    if horizon is not None:
        keys = [key for key in keys if (key <= horizon if waiting else key >= horizon)]
    keys.sort(reverse=not waiting)
    shown = keys[:size]
    last = shown[-1] if len(keys) > size else horizon
    cursor = None if last is None else f"{last[0]}-{last[1]}" if waiting else last[1]
    return DeliveryPage(
        await by_ids(tx, [key[1] for key in shown]), cursor, cursor is not None and len(keys) < size
    )


async def by_ids(tx: Tx, ids: Sequence[str]) -> list[Delivery]:
    """Return the deliveries with these ids, in this order."""
    if not ids:
        return []
    rows = {row["id"]: row for row in await tx.all(BY_ID, items(ids))}
    return [delivery_of(rows[one]) for one in ids if one in rows]


async def _newest(
    tx: Tx, webhooks: Sequence[Logged], query: DeliveryQuery, after: str, size: int, scanned: int
) -> _Read:
    before = min(after or "~", first_at(query.until))
    terms = _Terms([], [before, first_at(query.since), 0])
    if query.only == "in_flight" or (
        query.only == "held" and await _few_held(tx, webhooks, scanned)
    ):
        hit = _hit(terms, query, ())
        ids = ", ".join(terms.value(webhook.id) for webhook in webhooks)
        index = FEW_INDEXES[query.only]
        terms.texts.append(FEW.format(hit=hit, index=index, state=query.only, webhooks=f"({ids})"))
        return await _read(tx, terms, hit, size, scanned, False)
    groups: dict[StateFilter, Sequence[StateFilter]] = {"failed": FAILED, "failures": FAILURES}
    states = groups.get(query.only, (query.only,))
    conditions = []
    if query.only not in RANGES and query.only not in groups:
        # No index has them in the order of the log.
        conditions.append(f"d.state = '{query.only}'")
        states = ("all",)
    hit = _hit(terms, query, conditions)
    for webhook in webhooks:
        place = terms.value(webhook.id)
        for state in states:
            index, condition = RANGES[state]
            name = f"t{len(terms.texts)}"
            terms.texts.append(
                NEWEST.format(hit=hit, index=index, webhook=place, state=condition, name=name)
            )
    return await _read(tx, terms, hit, size, scanned, False)


async def _few_held(tx: Tx, webhooks: Sequence[Logged], most: int) -> bool:
    """Return whether at most so many deliveries are held, so that all of them can be sorted."""
    row = await tx.one(HELD, items([webhook.id for webhook in webhooks]), most + 1)
    return row is not None and int(row["held"]) <= most


async def _soonest(
    tx: Tx, webhooks: Sequence[Logged], query: DeliveryQuery, after: str, size: int, scanned: int
) -> _Read:
    moment, _, last = after.partition("-")
    start = int(moment) if moment.isascii() and moment.isdigit() and len(moment) < 19 else 0
    end = NO_TIME
    if query.only in ("ready", "scheduled"):
        due = await lanes.due_now(tx)
        if query.only == "ready":
            end = due
        elif start <= due:
            start, last = due + 1, ""
    terms = _Terms([], [last, start, 0])
    conditions = []
    if query.since > 0 or query.until < NO_TIME:
        conditions.append(f"d.created_at >= {terms.value(query.since)}")
        conditions.append(f"d.created_at < {terms.value(query.until)}")
    hit = _hit(terms, query, conditions)
    bound = terms.value(end)
    for webhook in webhooks:
        place = terms.value(webhook.id)
        for retry in ("false", "true"):
            name = f"t{len(terms.texts)}"
            terms.texts.append(
                SOONEST.format(hit=hit, webhook=place, retry=retry, end=bound, name=name)
            )
    return await _read(tx, terms, hit, size, scanned, True)


def _hit(terms: _Terms, query: DeliveryQuery, conditions: Sequence[str]) -> str:
    """Return what is 1 for a matching row; `1` alone when an index has judged already."""
    judged = list(conditions)
    if query.status is not None:
        judged.append(f"d.last_status = {terms.value(query.status)}")
    if query.event:
        named = terms.value(query.event)
        judged.append(f"(select e.name from events e where e.id = d.event_id) = {named}")
    return f"case when {' and '.join(judged)} then 1 else 0 end" if judged else "1"


async def _read(tx: Tx, terms: _Terms, hit: str, size: int, scanned: int, rising: bool) -> _Read:
    if not terms.texts:
        return [], None
    most = size + 1 if hit == "1" else max(size + 1, scanned // len(terms.texts))
    terms.values[2] = most
    marked = (
        text.replace("select * from (", f"select {number} as part, * from (", 1)
        for number, text in enumerate(terms.texts)
    )
    rows = await tx.all(" union all ".join(marked), *terms.values)
    counts: dict[int, int] = {}
    ends: dict[int, Key] = {}
    hits: list[Key] = []
    for row in rows:
        key = (int(row["due"]), str(row["id"]))
        part = row["part"]
        counts[part] = counts.get(part, 0) + 1
        ends[part] = key
        if row["hit"]:
            hits.append(key)
    horizon: Key | None = None
    for part, count in counts.items():
        if count == most:
            horizon = _nearer(horizon, ends[part], rising)
    return hits, horizon


def _nearer(one: Key | None, other: Key | None, rising: bool) -> Key | None:
    """Return which of two ends a list reaches first."""
    if one is None or other is None:
        return other if one is None else one
    return min(one, other) if rising else max(one, other)
