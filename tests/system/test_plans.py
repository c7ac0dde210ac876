"""With statistics from an empty queue, statements still do not scan the tables (B2, R33).

It runs on one version of PostgreSQL. The statistics describe a million kept rows and an empty
queue, as in ordinary running, where the queue is nearly always empty. Buffers are judged rather
than times where possible.
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import asyncpg
import pytest

from outbox import webhooks
from outbox.database.transaction import Database, Tx
from outbox.errors import DatabaseUnavailable
from outbox.queue.drain.fanout import EVENTS_AT_ONCE
from outbox.queue.upkeep import parking
from outbox.webhooks.secrets import KeyRing
from outbox.worker.separate_claimer import SeparateClaimer
from tests.benchmarks.children import child
from tests.benchmarks.figures import quantile, rounded
from tests.support.cluster import UNSYNCED, own_server
from tests.support.databases import PostgresServer, file_copy, memory, with_name
from tests.support.drain import OWNER, add_webhook, drain, make_many, ring
from tests.support.versions import versions
from tests.system.staging import several

BLOCKS = """
select sum(pg_stat_get_xact_blocks_fetched(c.oid)) as blocks
from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'i')
"""


@dataclass(frozen=True)
class Statement:
    """One statement of a unit: its buffers, its duration, rows returned or changed."""

    text: str
    blocks: int
    seconds: float
    rows: int


@dataclass
class Unit:
    """One transaction."""

    name: str
    statements: list[Statement] = field(default_factory=list)


class _Watched:
    """`Tx` that measures its statements."""

    def __init__(self, tx: Tx, unit: Unit) -> None:
        self.__dict__.update(_tx=tx, _unit=unit, _before=0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    def __setattr__(self, name: str, value: Any) -> None:
        # Units set `wake` and the like; only the measurement stays here.
        if name == "_before":
            self.__dict__[name] = value
        else:
            setattr(self._tx, name, value)

    async def start(self) -> None:
        self._before = await self._blocks()

    async def _blocks(self) -> int:
        row = await self._tx.one(BLOCKS)
        return int(row["blocks"] or 0)

    async def _noted(self, name: str, sql: str, *args: Any) -> Any:
        """Run a statement; note its buffers, and the rows returned or changed."""
        began = time.perf_counter()
        found = await getattr(self._tx, name)(sql, *args)
        seconds, now = time.perf_counter() - began, await self._blocks()
        rows = len(found) if isinstance(found, list) else int(found is not None)
        rows = found if name == "run" else rows
        self._unit.statements.append(
            Statement(" ".join(sql.split()), now - self._before, seconds, rows)
        )
        self._before = now
        return found

    async def one(self, sql: str, *args: Any) -> Any:
        return await self._noted("one", sql, *args)

    async def all(self, sql: str, *args: Any) -> Any:
        return await self._noted("all", sql, *args)

    async def run(self, sql: str, *args: Any) -> Any:
        return await self._noted("run", sql, *args)

    async def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> Any:
        return await (self._noted("many", sql, rows) if rows else self._tx.many(sql, rows))


class _Measured:
    """`Database` with measured reads and writes, on any of its connections."""

    def __init__(self, db: Database, seen: list[Unit]) -> None:
        self.__dict__.update(_db=db, _seen=seen)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._db, name, value)

    def apart(self, *args: Any) -> Database:
        return measured(self._db.apart(*args), self._seen)

    async def read(self, unit: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any) -> Any:
        return await self._db.read(_watched(unit, self._seen, args, kwargs))

    async def write(self, unit: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any) -> Any:
        return await self._db.write(_watched(unit, self._seen, args, kwargs))


def _watched(
    unit: Callable[..., Awaitable[Any]], seen: list[Unit], args: Any, kwargs: Any
) -> Callable[[Tx], Awaitable[Any]]:
    async def watched(tx: Tx) -> Any:
        noted = Unit(getattr(unit, "__name__", str(unit)))
        watch = _Watched(tx, noted)
        await watch.start()
        result = await unit(cast(Tx, watch), *args, **kwargs)
        seen.append(noted)
        return result

    return watched


def measured(db: Database, seen: list[Unit]) -> Database:
    """Return `db` with every unit recorded in `seen`, those that scan excepted."""
    return cast(Database, _Measured(db, seen))


LANES = 20
KEPT, READY = 500_000, 100_000
RECORDS = 2_500
CLAIM = 32
CLAIM_BUFFERS = 1_500
BATCH_SECONDS = 0.2
MODES = ("force_custom_plan", "force_generic_plan")
STEP_SECONDS = 60.0

# A million rows load faster when their indexes are built afterwards.
INDEXES = """
select indexname, indexdef from pg_indexes
where schemaname = 'public' and tablename in ('events', 'deliveries')
  and not exists (select 1 from pg_constraint where conname = indexname)
"""
FROZEN = "alter table {} set (autovacuum_enabled = false)"
TABLES = ("events", "deliveries", "attempts", "lanes", "webhooks")
EVENTS = """
insert into events
  (id, seq, owner_id, name, record_id, record_version, occurred_at, body, body_digest)
select lpad(to_hex(n), 24, '0'), n, '{owner}', 'thing.made', '{record}' || n % {records}, 1, 0,
  b.body, encode(sha256(b.body), 'hex')
from generate_series({first}, {last}) n,
  lateral (select convert_to('{{"event":"thing.made","data":{{"n":' || n || '}}}}', 'utf8')) b(body)
"""
DELIVERIES = """
insert into deliveries
  (id, owner_id, event_id, webhook_id, origin, state, retry, next_at, tries, attempts, record_id,
   seq, created_at, finished_at, last_outcome, last_status)
select lpad(to_hex(e.seq * 64 + w.n), 24, '0'), w.owner_id, e.id, w.id, 'event', '{state}',
  {retry}, due_now() - 1000000 + e.seq, 0, 0, e.record_id, e.seq, 0, {finished},
  {outcome}, {status}
from events e, (select row_number() over () as n, id, owner_id from webhooks) w
where e.seq between {first} and {last}
"""
AFTER = """
update outbox_state set seq = {last};
update lanes set due_at = due_now();
"""


@dataclass(frozen=True)
class Bar:
    """Statements of one kind, found by a part of their text, and their buffers per row."""

    name: str
    pattern: re.Pattern[str]
    blocks: Callable[[int], float]


def _per_row(buffers: int) -> Callable[[int], float]:
    """Some pages per statement, and some for each row."""
    return lambda rows: 500 + buffers * rows


BARS = (
    # It records up to as many results as there are slots.
    Bar("turn", re.compile(r"drain_at_once"), lambda rows: 100 * (256 + rows)),
    Bar("settle", re.compile(r"^update deliveries set state = (?!')\w"), _per_row(60)),
    Bar("load", re.compile(r"^select (?=.*\bbody\b).* from deliveries"), _per_row(40)),
    Bar("unseen", re.compile(r"from events where seq is null"), _per_row(20)),
    # It returns one row, whatever the number of events.
    Bar(
        "seq",
        re.compile(r"given as \( update events set seq"),
        lambda _: _per_row(60)(EVENTS_AT_ONCE["postgres"]),
    ),
    Bar(
        "cancel",
        re.compile(r"^update deliveries set state = 'cancelled', reason = (?!'parked')"),
        _per_row(100),
    ),
    # For a page of 500 it searches a newer delivery of each record, however few end.
    Bar(
        "older",
        re.compile(r"^update deliveries set state = 'cancelled', reason = 'parked'"),
        lambda rows: 500 * 25 + 100 * rows,
    ),
    Bar("page", re.compile(r"^select id, next_at, record_id, seq from deliveries"), _per_row(20)),
    # Rows that parking just ended are still in the index and are read.
    Bar("lanes", re.compile(r"^update lanes"), lambda rows: 8_000 + 200 * rows),
)
TAKES = re.compile(r"^update deliveries set state = 'in_flight'|^with .*'in_flight'")
ASKS = re.compile(r"^select .*\bfrom lanes\b")
BATCHES = re.compile(r"^update deliveries set state = 'cancelled'|^select id, next_at")


@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("choice", [min, max], ids=["oldest", "newest"])
async def test_a_queue_that_fills_up_later_keeps_its_plans(choice: Callable[..., int]) -> None:
    """Measure buffers of each kind of statement under both kinds of plan."""
    findings: list[str] = []
    figures: dict[str, Any] = {"version": choice(versions())}
    async with AsyncExitStack() as stack:
        log = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="carteiro-plans-")))
        receiver = stack.enter_context(child("tests.benchmarks.receiver", log=log / "log"))
        cluster = await stack.enter_async_context(
            own_server(UNSYNCED, choice(versions()), memory())
        )
        server = PostgresServer(cluster.url)
        url = f"http://127.0.0.1:{receiver.json()['port']}"
        stale, key = await _staged(server, url)
        for mode in MODES:
            async with _copy(server, stale, mode) as address:
                seen, late = await _driven(address, key)
            told, wrong = judged(seen)
            figures[mode] = told
            findings += [f"{mode}: {what}" for what in late + wrong]
    print(json.dumps(figures))
    assert findings == []


async def _staged(server: PostgresServer, url: str) -> tuple[str, KeyRing]:
    """Create a database with kept rows, statistics of that time, and ready rows after them."""
    address, key = await server.fresh(), ring()
    async with several(address, 1) as [db]:
        for n in range(LANES):
            await add_webhook(db, key, f"{url}/hook/{n}")
    kept, every = KEPT // LANES, (KEPT + READY) // LANES
    connection = await asyncpg.connect(address)
    try:
        for table in TABLES:
            await connection.execute(FROZEN.format(table))
        indexes = await connection.fetch(INDEXES)
        for index in indexes:
            await connection.execute(f"drop index {index['indexname']}")
        span = {"first": 1, "last": kept}
        await connection.execute(EVENTS.format(owner=OWNER, record="kept", records=RECORDS, **span))
        await connection.execute(
            DELIVERIES.format(
                state="delivered", retry=True, finished=1, outcome="'success'", status=200, **span
            )
        )
        for index in indexes:
            await connection.execute(index["indexdef"])
        await connection.execute("analyze")
        span, records = {"first": kept + 1, "last": every}, min(RECORDS, (every - kept) // 2)
        await connection.execute(
            EVENTS.format(owner=OWNER, record="ready", records=records, **span)
        )
        await connection.execute(
            DELIVERIES.format(
                state="ready", retry="e.seq % 10 = 0", finished="null", outcome="null",
                status="null", **span,
            )
        )  # fmt: skip
        await connection.execute(AFTER.format(last=every))
    finally:
        await connection.close()
    return address, key


@asynccontextmanager
async def _copy(server: PostgresServer, address: str, mode: str) -> AsyncIterator[str]:
    """Create a copy whose sessions plan by `mode`."""
    name = urlsplit(address).path[1:] + "_copy"
    connection = await asyncpg.connect(await server.url())
    try:
        plain = file_copy(connection)
        await connection.execute(
            f"create database {name} template {urlsplit(address).path[1:]}{plain}"
        )
        await connection.execute(f"alter database {name} set plan_cache_mode = {mode}")
    finally:
        await connection.close()
    copied = with_name(address, name)
    try:
        yield copied
    finally:
        await server.drop(copied)


async def _driven(address: str, key: KeyRing) -> tuple[list[Unit], list[str]]:
    """Run all operations of the engine on a queue; return its units, and those without an end."""
    seen: list[Unit] = []
    late: list[str] = []

    async def timed(what: str, work: Awaitable[object]) -> None:
        try:
            async with asyncio.timeout(STEP_SECONDS):
                await work
        except (TimeoutError, DatabaseUnavailable) as error:
            late.append(f"{what} did not end: {type(error).__name__} {error}")

    async with several(address, 1) as [plain]:
        db = measured(plain, seen)
        await plain.write(make_many, 500, "b" * 24)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SeparateClaimer, "_turn", _in_parts)
            await timed(f"a drain of {CLAIM} slots", _drain(db, key, CLAIM, 1_500))
        await timed("a drain of 256 slots", _drain(db, key, 256, 4_000))
        hooks = [webhook.id for webhook in await plain.read(webhooks.listed, OWNER)]
        for webhook_id, parked in zip(hooks, parking.CHOICES, strict=False):
            await plain.write(parking.pause, webhook_id)
            await timed(f"activate {parked}", parking.activate(db, webhook_id, parked))
        await timed("remove", parking.remove(db, hooks[-1]))
    return seen, late


async def _in_parts(*_: object) -> None:
    """Leave all of a turn to the units that do it in parts."""


async def _drain(db: Database, key: KeyRing, slots: int, sends: int) -> None:
    """Let a worker send so many deliveries."""
    async with drain(db, key, slots=slots) as running:
        await running.watch.until("delivery_finished", sends, seconds=STEP_SECONDS)


def judged(seen: list[Unit]) -> tuple[dict[str, Any], list[str]]:
    """Return figures of the units, and those that touched too much."""
    told: dict[str, Any] = {}
    wrong: list[str] = []
    claims = [(rows, blocks) for unit in seen for rows, blocks in [_claim(unit)] if rows]
    whole = [(rows, blocks) for rows, blocks in claims if rows == CLAIM]
    told["claims"] = len(claims)
    if not whole:
        wrong.append(f"no claim of {CLAIM}: nothing is shown")
    else:
        told["claim_buffers"] = max(blocks for _, blocks in whole)
        if told["claim_buffers"] > CLAIM_BUFFERS:
            wrong.append(f"a claim of {CLAIM} touched {told['claim_buffers']} buffers")
    statements = [statement for unit in seen for statement in unit.statements]
    for bar in BARS:
        mine = [s for s in statements if bar.pattern.search(s.text) and s.rows]
        if not mine:
            wrong.append(f"no statement of the kind {bar.name}: nothing is shown")
            continue
        worst = max(mine, key=lambda s: s.blocks / bar.blocks(s.rows))
        told[f"{bar.name}_buffers"], told[f"{bar.name}_rows"] = worst.blocks, worst.rows
        if worst.blocks > bar.blocks(worst.rows):
            wrong.append(f"{worst.blocks} buffers for {worst.rows} rows: {worst.text[:160]}")
    batches = [s.seconds for s in statements if BATCHES.search(s.text) and s.rows]
    if batches:
        told["batches"] = len(batches)
        told["batch_p95_ms"] = rounded(quantile(batches, 0.95) * 1000)
        told["batch_worst_ms"] = rounded(max(batches) * 1000)
        if quantile(batches, 0.95) > BATCH_SECONDS:
            wrong.append(f"batches of parking take {told['batch_p95_ms']} ms")
    return told, wrong


def _claim(unit: Unit) -> tuple[int, int]:
    """Return the deliveries that a unit claimed, and the buffers of its claim."""
    taken = [s for s in unit.statements if TAKES.search(s.text)]
    asked = [s for s in unit.statements if ASKS.search(s.text)]
    return sum(s.rows for s in taken), sum(s.blocks for s in [*taken, *asked])


def test_a_claim_that_walks_a_table_is_seen_and_so_is_a_run_without_statements() -> None:
    taken = "update deliveries set state = 'in_flight' where id in (select 1) returning id"
    dear = Unit("take", [Statement(taken, 100_000, 0.1, CLAIM)])
    assert f"a claim of {CLAIM} touched 100000 buffers" in judged([dear])[1]
    wrong = judged([])[1]
    assert len(wrong) > 5
    assert all(what.endswith("nothing is shown") for what in wrong)
