"""The ledger: responses to clients × rows in the database × requests at receivers.

Joined by event id (an event has the request id of the write that caused it). A promise holds when
`lost` and `unexpected` are 0.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import asyncpg

from tests.support.load import UNKNOWN, Load
from tests.support.recipients import Receipt
from tests.support.tenants import Tenants
from tests.support.waiting import in_time

Pair = tuple[str, str]
"""(event id, webhook id)"""
Held = dict[Pair, str]
"""Deliveries in flight, and their claims."""

CONTACTS = "select id, owner_id, name from contacts"
EVENTS = "select id, owner_id, record_id, request_id from events"
DELIVERIES = "select event_id, webhook_id, state from deliveries where origin = 'event'"
IN_FLIGHT = "select event_id, webhook_id, claim from deliveries where state = 'in_flight'"
UNFINISHED = """
select (select count(*) from events where seq is null)
  + (select count(*) from deliveries where finished_at is null)
"""
# Webhooks whose deliveries have not the numbers from 1 to the last one, each of them once.
HOLES = """
select count(*) from sequences q where q.last <> (
    select count(distinct d.sequence) from deliveries d
    where d.webhook_id = q.webhook_id and d.sequence >= 1 and d.sequence <= q.last)
  or exists (
    select 1 from deliveries d where d.webhook_id = q.webhook_id and d.origin = 'event'
      and (d.sequence is null or d.sequence > q.last))
"""


@dataclass
class Rows:
    """The rows of the database."""

    contacts: list[tuple[str, str, str]]
    events: list[tuple[str, str, str, str]]
    deliveries: list[tuple[str, str, str]]


async def query(url: str, sql: str) -> list[Any]:
    """Read the rows of one statement beside the product, without touching its files."""
    if url.startswith("sqlite"):
        return await asyncio.to_thread(_query_sqlite, url.removeprefix("sqlite:///"), sql)
    connection = await asyncpg.connect(url)
    try:
        return [tuple(row) for row in await connection.fetch(sql)]
    finally:
        await connection.close()


def _query_sqlite(path: str, sql: str) -> list[Any]:
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


async def read_rows(url: str) -> Rows:
    """The inputs of the judgement."""
    return Rows(await query(url, CONTACTS), await query(url, EVENTS), await query(url, DELIVERIES))


async def held(url: str) -> Held:
    """Return deliveries in flight: after a death, those of the dead process."""
    return {(event, webhook): claim for event, webhook, claim in await query(url, IN_FLIGHT)}


async def holes(url: str) -> int:
    """Return at how many numbered webhooks the deliveries are not numbered from 1 on."""
    [(count,)] = await query(url, HOLES)
    return int(count)


def newly(met: Held, earlier: Iterable[Held]) -> Held:
    """Return what `met` has under claims that no `earlier` death had met already."""
    known = {claim for before in earlier for claim in before.values()}
    return {pair: claim for pair, claim in met.items() if claim not in known}


async def until_drained(url: str, seconds: float) -> int:
    """Wait until nothing is left to deliver; return how much was left at the end (0: all done)."""
    left = 1

    async def drained() -> bool:
        nonlocal left
        [(left,)] = await query(url, UNFINISHED)
        return not left

    await in_time(drained, seconds)
    return left


@dataclass
class Verdict:
    """The printed figures of one run."""

    fault: str
    seed: int
    acks: int = 0
    rows: int = 0
    deliveries: int = 0
    lost: int = 0
    unexpected: int = 0
    duplicated: int = 0
    recovered: int = 0
    unknown: int = 0
    """Writes answered with outcome_unknown, with existing rows."""
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    max_ms: float = 0.0
    rss_mib: float = 0.0
    figures: dict[str, Any] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)
    """The findings, one line each (the first twenty)."""

    @property
    def kept(self) -> bool:
        """Whether nothing was lost, nothing is unexpected, and there is no finding."""
        return not self.lost and not self.unexpected and not self.findings

    def told(self) -> dict[str, Any]:
        """Return the run as one flat record with its `pass`; print it as a JSON line."""
        record = asdict(self)
        figures = record.pop("figures")
        record |= figures
        record = {"pass": self.kept, **record}
        print(json.dumps(record), flush=True)
        return record

    def must_hold(self) -> None:
        """Fail unless nothing was found."""
        record = self.told()
        assert self.kept, record

    def times(self, milliseconds: Iterable[float]) -> None:
        """Take the figures of some times."""
        times = sorted(milliseconds)
        if times:
            self.p50_ms, self.p99_ms, self.max_ms = (
                round(times[min(int(len(times) * share), len(times) - 1)], 1)
                for share in (0.5, 0.99, 1)
            )

    def find(self, count: int, what: str) -> int:
        """Record `count` faults (a bool counts as 0 or 1); return `count`."""
        if count and len(self.findings) < 20:
            self.findings.append(what if count is True else f"{count} {what}")
        return count


def judge(
    fault: str,
    load: Load,
    rows: Rows,
    got: Iterable[Receipt],
    *,
    in_flight: Iterable[Held] = (),
    unknown_allowed: bool = False,
    rss: float = 0.0,
) -> Verdict:
    """Join the three. `in_flight` is the set that each kill met: only these may arrive twice.

    `unknown_allowed`: a write answered with outcome_unknown may exist, as COMMITs may get no reply;
    one answered with unavailable never exists. Call this when nothing is left to deliver and
    receivers responded 2xx to everything.
    """
    verdict = Verdict(fault, load.seed, acks=len(load.acked), rss_mib=rss)
    verdict.rows = len(rows.events)
    tenants = load.tenants
    _records(verdict, load, rows, unknown_allowed)
    events = {event: owner for event, owner, _, _ in rows.events}
    wanted = {(event, hook) for event, owner in events.items() for hook in tenants.webhooks[owner]}
    _deliveries(verdict, rows, wanted)
    _arrivals(verdict, tenants, wanted, list(got), list(in_flight))
    verdict.times(load.milliseconds)
    return verdict


def _records(verdict: Verdict, load: Load, rows: Rows, unknown_allowed: bool) -> None:
    """Compare writes with rows: every 2xx has one, refused writes have none."""
    by_request: dict[str, list[str]] = {}
    for _, _, record, request in rows.events:
        by_request.setdefault(request, []).append(record)
    by_name: dict[str, list[str]] = {}
    for record, _, name in rows.contacts:
        by_name.setdefault(name, []).append(record)
    verdict.lost += verdict.find(
        sum(by_name.get(request) != [record] for request, record in load.acked.items()),
        "acknowledged writes without their one record",
    )
    verdict.lost += verdict.find(
        sum(by_request.get(request) != [record] for request, record in load.acked.items()),
        "acknowledged writes without their one event",
    )
    verdict.unexpected += verdict.find(
        sum(by_name.get(name) != records for name, records in by_request.items())
        + sum(name not in by_request for name in by_name),
        "records and events that do not stand for each other",
    )
    verdict.unexpected += verdict.find(
        sum(len(records) > 1 for records in by_request.values()), "writes that took place twice"
    )
    sent = load.sent
    verdict.unexpected += verdict.find(
        sum(request not in sent for request in by_request), "writes that nobody asked for"
    )
    there = [request for request in load.refused if request in by_request]
    if unknown_allowed:
        verdict.unknown = sum(load.refused[r].code == UNKNOWN for r in there)
    verdict.unexpected += verdict.find(
        len(there) - verdict.unknown, "refused writes that took place"
    )
    verdict.recovered = sum(request in by_request for request in load.broken)


def _deliveries(verdict: Verdict, rows: Rows, wanted: set[Pair]) -> None:
    """Compare events with deliveries: one finished delivery per subscribed webhook."""
    had = Counter((event, webhook) for event, webhook, _ in rows.deliveries)
    verdict.deliveries = len(rows.deliveries)
    verdict.lost += verdict.find(len(wanted - set(had)), "deliveries never made")
    verdict.lost += verdict.find(
        sum(state != "delivered" for _, _, state in rows.deliveries), "deliveries not delivered"
    )
    verdict.unexpected += verdict.find(
        len(set(had) - wanted) + sum(n > 1 for n in had.values()), "deliveries that should not be"
    )


def by_delivery(got: Iterable[Receipt], tenants: Tenants) -> dict[Pair, list[Receipt]]:
    """Return the requests of each delivery."""
    came: dict[Pair, list[Receipt]] = {}
    for receipt in got:
        pair = (receipt.event_id, tenants.paths.get(receipt.path, receipt.path))
        came.setdefault(pair, []).append(receipt)
    return came


def _arrivals(
    verdict: Verdict, tenants: Tenants, wanted: set[Pair], got: list[Receipt],
    in_flight: list[Held],
) -> None:  # fmt: skip
    """Compare deliveries with arrivals: each got a 2xx, repeated only after a kill, same bytes."""
    came = by_delivery(got, tenants)
    answered = {pair for pair, receipts in came.items() if any(r.answered for r in receipts)}
    verdict.lost += verdict.find(len(wanted - answered), "deliveries that no receiver has")
    verdict.unexpected += verdict.find(
        len(set(came) - wanted), "arrivals without an event and a delivery in the database"
    )
    verdict.duplicated = sum(len(receipts) - 1 for receipts in came.values())
    allowed: Mapping[Pair, int] = Counter(pair for pairs in in_flight for pair in pairs)
    verdict.unexpected += verdict.find(
        sum(max(len(rs) - 1 - allowed.get(pair, 0), 0) for pair, rs in came.items()),
        "arrivals repeated although no kill met them",
    )
    bodies: dict[str, set[str]] = {}
    for receipt in got:
        bodies.setdefault(receipt.event_id, set()).add(receipt.digest)
    verdict.unexpected += verdict.find(
        sum(len(digests) > 1 for digests in bodies.values()), "events whose bytes changed"
    )
