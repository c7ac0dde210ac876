"""A backup under load is one moment and serves elsewhere; a restore replaces all data (R25)."""

from __future__ import annotations

import asyncio
import json
import resource
import signal
import sqlite3
import sys
import tempfile
import time
from asyncio.subprocess import PIPE
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import asyncpg
import pytest

from outbox.ids import Ids
from outbox.webhooks.key_files import read_key_file
from tests.support.chains import walked
from tests.support.crm_rows import add_contacts
from tests.support.databases import SqliteFiles
from tests.support.deployed import Deployed, deployed
from tests.support.engines import Engine, empty_database
from tests.support.faults import ENGINES, shows
from tests.support.ledger import Verdict, query, until_drained
from tests.support.process import environment
from tests.support.product import Product
from tests.support.recipients import Receipt
from tests.support.tenants import Tenants
from tests.support.waiting import until

DELIVERIES = "select event_id, webhook_id, state from deliveries"


@dataclass(frozen=True)
class Ended:
    """A command that ran to its end."""

    status: int
    err: str
    seconds: float


async def carteiro(*words: str, url: str, folder: Path, broken: str = "") -> Ended:
    """Run one command in its own process."""
    began = time.monotonic()
    process = await start(*words, url=url, folder=folder, broken=broken)
    async with asyncio.timeout(300):
        _, err = await process.communicate()
    seconds = round(time.monotonic() - began, 2)
    return Ended(process.returncode or 0, err.decode(), seconds)


async def start(
    *words: str, url: str, folder: Path, broken: str = ""
) -> asyncio.subprocess.Process:
    """Start one command."""
    module = "tests.system.broken_serve" if broken else "gateway"
    settings = {
        "CARTEIRO_DATABASE__URL": url, "BROKEN": broken,
        "CARTEIRO_SECRETS__KEY_FILE": str(folder / "carteiro.key"),
    }  # fmt: skip
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, *words, cwd=folder, stdout=PIPE, stderr=PIPE,
        env=environment(folder, **settings),
    )  # fmt: skip


def arrivals(got: list[Receipt], tenants: Tenants) -> Counter[tuple[str, str]]:
    """Count requests by event and webhook."""
    return Counter((receipt.event_id, tenants.paths[receipt.path]) for receipt in got)


SEED = 50260
ROWS = 50_000
"""Contacts that are there before, so that the backup takes a while."""
CONTACTS = "select id, owner_id, name from contacts where name <> 'Contact'"
EVENTS = "select id, owner_id, record_id, request_id, seq from events order by seq"
ATTEMPTS = "select event_id, webhook_id from attempts"
TALLIES = "select owner_id, kind, cast(sum(n) as integer) from tallies group by owner_id, kind"
COUNTED = "select owner_id, 'contacts', count(*) from contacts group by owner_id"
SEQ = "select seq from outbox_state"


async def run_backup_under_load(
    engine: Engine, restored_on: Engine, seed: int, *, broken: str = ""
) -> Verdict:
    """Back up beside load, kill the server, restore elsewhere, serve, and join all of it."""
    verdict = Verdict(f"backup under load, {engine} to {restored_on}", seed)
    async with (
        deployed(engine, seed, latency=(0.0, 0.1)) as site,
        _elsewhere(restored_on) as (target, home),
    ):
        load, folder = site.load, site.folder
        await site.run(add_contacts, next(iter(site.tenants.keys)), ROWS, "")
        async with site.writing(60.0):
            await site.more(60)
            before = set(load.acked)
            made = await carteiro("backup", "b", url=site.url, folder=folder, broken=broken)
            after = load.sent
            await site.more(20)
        site.product.kill()
        await site.product.ended()
        verdict.find(made.status != 0, f"backup: {made.err}")
        verdict.find(len(load.refused), "writes refused beside the backup")
        verdict.acks = len(load.acked)
        verdict.times(load.milliseconds)
        restored = await carteiro("restore", "b", url=target, folder=folder)
        verdict.find(restored.status != 0, f"restore: {restored.err}")
        if restored.status == 0:
            await _whole(verdict, site, target, before, after)
        if verdict.kept:
            await _served(verdict, site, target, home)
    verdict.figures |= {"backup_s": made.seconds, "writes_meanwhile": len(after) - len(before)}
    return verdict


@asynccontextmanager
async def _elsewhere(engine: Engine) -> AsyncIterator[tuple[str, Path]]:
    """Yield the address of an empty database, and its folder."""
    with tempfile.TemporaryDirectory(prefix="carteiro-restored-") as home:
        async with empty_database(engine, Path(home)) as url:
            yield url, Path(home)


async def _whole(
    verdict: Verdict, site: Deployed, url: str, before: set[str], after: set[str]
) -> None:
    """Check that the restored tables are those of one moment, between the two sets of writes."""
    contacts = {row[0]: row[1:] for row in await query(url, CONTACTS)}
    events, deliveries = await query(url, EVENTS), await query(url, DELIVERIES)
    verdict.rows, verdict.deliveries = len(events), len(deliveries)
    there = {request for _, _, _, request, _ in events}
    verdict.lost += verdict.find(len(before - there), "writes of before the backup are missing")
    verdict.unexpected += verdict.find(len(there - after), "writes of after the backup")
    by_event = {record: (owner, request) for _, owner, record, request, _ in events}
    verdict.find(by_event != contacts, "records and their events are of different moments")
    seqs = [seq for *_, seq in events if seq is not None]
    [(last,)] = await query(url, SEQ)
    verdict.find(seqs != list(range(1, last + 1)), "places in the feed are missing")
    hooks = site.tenants.webhooks
    wanted = {(event, hook) for event, owner, *_, seq in events if seq for hook in hooks[owner]}
    pairs = Counter((event, hook) for event, hook, _ in deliveries)
    verdict.find(set(pairs) != wanted or pairs.total() != len(wanted), "deliveries do not match")
    tried = Counter(await query(url, ATTEMPTS))
    torn = sum((s == "delivered") != (tried[event, hook] > 0) for event, hook, s in deliveries)
    verdict.find(torn, "deliveries and their attempts are of different moments")
    held = sum(state == "in_flight" for *_, state in deliveries)
    verdict.find(held, "claims of a node that is gone")
    apart = set(await query(url, COUNTED)) != set(await query(url, TALLIES))
    verdict.find(apart, "running totals that differ from the tables")


async def _served(verdict: Verdict, site: Deployed, url: str, home: Path) -> None:
    """Serve the restored database: what was unfinished goes out, what was finished does not."""
    hooks, load, came = site.tenants.webhooks, site.load, len(site.there.got)
    finished = {(e, h) for e, h, state in await query(url, DELIVERIES) if state == "delivered"}
    owners = {event: owner for event, owner, *_ in await query(url, EVENTS)}
    left = {(e, h) for e, owner in owners.items() for h in hooks[owner]} - finished
    product = Product(home, url, site.tenants.key_file, name="restored")
    try:
        await product.start()
        known = set(load.acked)
        async with load.writing(product.address, rate=60.0):
            await load.until_sent(load.count + 20)
        verdict.find(await until_drained(url, 30.0), "events and deliveries unfinished")
    finally:
        await product.close()
    verdict.find(len(set(load.acked) - known) < 20, "new writes were not accepted")
    new = {
        (event, hook)
        for event, owner, _, request, _ in await query(url, EVENTS)
        if request not in known and event not in owners
        for hook in hooks[owner]
    }
    again = arrivals(site.there.got[came:], site.tenants)
    verdict.lost += verdict.find(len((left | new) - set(again)), "deliveries that never came")
    verdict.unexpected += verdict.find(len(set(again) - left - new), "deliveries nobody expected")
    verdict.duplicated = verdict.find(again.total() - len(again), "deliveries that came twice")
    verdict.figures["unfinished_in_the_backup"] = len(left)


@ENGINES
@pytest.mark.parametrize("on", ["sqlite", "postgres"])
async def test_a_backup_under_load_restores_to_one_moment(engine: Engine, on: Engine) -> None:
    (await run_backup_under_load(engine, on, SEED)).must_hold()


@ENGINES
async def test_a_backup_without_a_snapshot_is_seen(engine: Engine) -> None:
    torn = partial(run_backup_under_load, engine, "sqlite", broken="torn_backup")
    assert await shows(torn, SEED, "findings")


WRITES = 30
CUT = """
select pg_terminate_backend(pid) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid()
"""
LOCKS = """
select count(*) from pg_locks
where locktype = 'relation' and mode = 'AccessExclusiveLock' and granted
  and relation = to_regclass('contacts')
"""


@pytest.mark.parametrize("early", [False, True])
async def test_a_server_that_was_cut_off_serves_what_was_restored(early: bool) -> None:
    """The server stands still and has no connection, so the restore cannot see it.

    When it goes on, nothing of before the restore comes back, and what waits is sent once. With
    `early`, it goes on and connects again while the restore is on its way.
    """
    settings = {"CARTEIRO_SERVER__SHUTDOWN_SECONDS": "5"}
    async with deployed("postgres", SEED, settings=settings) as site:
        kept = await _written(site)
        await until_drained(site.url, 60)
        # What waits at the backup: it is sent once after the restore, whatever the server knows.
        site.there.behave(hang=["/"])
        kept |= await _written(site)
        backup = await carteiro("backup", "b", url=site.url, folder=site.folder)
        gone, met = await _written(site), len(site.there.got)
        site.product.send(signal.SIGSTOP)
        connection = await asyncpg.connect(site.url)
        try:
            await connection.execute(CUT)
        finally:
            await connection.close()
        command = await start("restore", "b", "--overwrite", url=site.url, folder=site.folder)
        refused: set[str] = set()
        if early:
            await until(lambda: _dropped(site))
            command.send_signal(signal.SIGSTOP)
            site.product.send(signal.SIGCONT)
            refused = await _written(site)
            command.send_signal(signal.SIGCONT)
        _, err = await command.communicate()
        site.product.send(signal.SIGCONT)
        site.there.behave(release=True)
        late = await _written(site)
        left = await until_drained(site.url, 60)
        verdict = Verdict("restore beside a cut-off server", SEED, len(site.load.acked))
        events = {request: event for event, _, _, request, _ in await query(site.url, EVENTS)}
        delivered = [one for one in await query(site.url, DELIVERIES) if one[2] == "delivered"]
        chain = await walked(site.url, read_key_file(site.tenants.key_file, Ids()))
    verdict.find(backup.status, f"backup: {backup.err}")
    verdict.find(bool(command.returncode), f"restore: {err.decode()}")
    verdict.find(len(refused), "writes accepted while the tables were replaced")
    verdict.find(left, "events and deliveries unfinished")
    verdict.lost += verdict.find(len((kept | late) - set(events)), "writes that are missing")
    verdict.unexpected += verdict.find(len(gone & set(events)), "writes that the restore undid")
    verdict.find(not late, "no write succeeded after the restore")
    verdict.lost += verdict.find(3 * len(events) - len(delivered), "deliveries not delivered")
    there = set(events.values())
    again = arrivals([one for one in site.there.got[met:] if one.event_id in there], site.tenants)
    verdict.unexpected += verdict.find(again.total() - len(again), "deliveries sent twice")
    verdict.find(len(chain.faults), f"faults of the chain: {chain.faults[:3]}")
    verdict.must_hold()


async def _dropped(site: Deployed) -> bool:
    """Return whether the restore has dropped the tables, in its transaction."""
    [(locks,)] = await query(site.url, LOCKS)
    return bool(locks)


async def _written(site: Deployed) -> set[str]:
    """Write some contacts; return the request ids of those with a 2xx."""
    before = set(site.load.acked)
    async with site.writing():
        await site.more(WRITES)
    return set(site.load.acked) - before


MIB = 1_024
BYTES_EACH = 2_600
"""Size of a record with its event, delivery and attempt, with their indexes."""
CPU_PER_GIB = 60.0
_ID = "printf('%012x', 1700000000000 + c.n) || substr(lower(hex(randomblob(6))), 1, 12)"
_CONTENT = (
    f"""
insert into contacts (id, owner_id, version, created_at, name, email, tags, source, folded,
  sort_name, notes)
with recursive c (n) as (select 1 union all select n + 1 from c where n < ?)
select {_ID}, printf('%024d', c.n % 50), 1, c.n, 'Maria ' || c.n, c.n || '@example.com',
  '[]', 'api', 'maria ' || c.n, 'maria ' || c.n, hex(randomblob(100)) from c
""",
    """
insert into events (id, seq, owner_id, name, record_id, record_version, occurred_at, request_id,
  body, body_digest)
select id, rowid, owner_id, 'contact.created', id, 1, created_at, id,
  cast('{"event":"contact.created","data":{"name":"' || name || '","email":"' || email ||
    '","notes":"' || notes || '"}}' as blob), lower(hex(randomblob(32))) from contacts
""",
    """
insert into deliveries (id, owner_id, event_id, webhook_id, origin, state, retry, next_at, tries,
  attempts, record_id, seq, created_at, finished_at)
select id, owner_id, id, printf('%024d', seq % 100), 'event',
  case when seq % 20 then 'delivered' else 'ready' end, false, 1, 1, 1, record_id, seq, 1, 1
from events order by id
""",
    """
insert into attempts (owner_id, delivery_id, webhook_id, event_id, number, kind, outcome, status,
  started_at, total_us, address, url, request_headers, response_headers, response_body, truncated,
  node_id)
select owner_id, id, webhook_id, event_id, 1, 'event', 'delivered', 200, 1, 1, '203.0.113.7',
  'https://example.com/hook', '[["Content-Type","application/json"],["X-Webhook-Id","' || id ||
    '"],["X-Webhook-Signature","sha256=' || hex(randomblob(32)) || '"]]',
  '[["Server","nginx"]]', cast(hex(randomblob(100)) as blob), false, 'node' from deliveries
""",
)


@pytest.mark.timeout(1_800)
async def test_a_gibibyte_is_backed_up_and_restored_in_time() -> None:
    """Its time is that of the processor: others may use the machine, too."""
    with tempfile.TemporaryDirectory(prefix="carteiro-size-") as home:
        folder, count = Path(home), MIB * 2**20 // BYTES_EACH
        url = await SqliteFiles().fresh(folder)
        file = Path(url.removeprefix("sqlite:///"))
        await asyncio.to_thread(_make, file, count)
        size, cpu = file.stat().st_size / 2**30, _cpu()
        made = await carteiro("backup", "b", url=url, folder=folder)
        assert made.status == 0, made.err
        told = {"database_mib": round(size * 1024), "backup_s": made.seconds}
        told["backup_cpu_s"] = round(_cpu() - cpu, 1)
        for engine in ("sqlite", "postgres"):
            (folder / engine).mkdir()
            async with empty_database(engine, folder / engine) as target:
                cpu = _cpu()
                restored = await carteiro("restore", "b", url=target, folder=folder)
                assert restored.status == 0, restored.err
                assert await query(target, "select count(*) from attempts") == [(count,)]
            told |= {f"restore_{engine}_s": restored.seconds}
            told |= {f"restore_{engine}_cpu_s": round(_cpu() - cpu, 1)}
            assert _cpu() - cpu < CPU_PER_GIB * size, told
    print(json.dumps(told))


def _make(file: Path, count: int) -> None:
    db = sqlite3.connect(file, isolation_level=None)
    try:
        db.execute("pragma synchronous = off")
        db.execute("begin")
        for number, text in enumerate(_CONTENT):
            db.execute(text, () if number else (count,))
        db.execute("commit")
    finally:
        db.close()


def _cpu() -> float:
    """Return the CPU seconds of all ended children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
