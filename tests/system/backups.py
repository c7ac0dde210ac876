"""A backup under load, restored and served (R25): nothing torn, nothing lost, nothing twice."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from asyncio.subprocess import PIPE
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outbox import database
from outbox.clock import SystemClock
from outbox.ids import Ids
from tests.architecture.tree import ROOT
from tests.support.crm_rows import add_contacts
from tests.support.engines import Engine, empty_database
from tests.support.ledger import Verdict, query, until_drained
from tests.support.load import Load
from tests.support.product import Product
from tests.support.recipients import Receipt, Recipients, recipients
from tests.support.tenants import Tenants, settle_in

RECEIVERS = 6
RATE = 60.0
LATENCY = (0.0, 0.1)
DRAIN_SECONDS = 30.0
COMMAND_SECONDS = 300.0

CONTACTS = "select id, owner_id, name from contacts where name <> 'Contact'"
EVENTS = "select id, owner_id, record_id, request_id, seq from events order by seq"
DELIVERIES = "select event_id, webhook_id, state, attempts, tries from deliveries"
ATTEMPTS = "select event_id, webhook_id, outcome from attempts"
TALLIES = "select owner_id, kind, sum(n) from tallies group by owner_id, kind"
COUNTED = "select owner_id, 'contacts', count(*) from contacts group by owner_id"
SEQ = "select seq from outbox_state"


@dataclass(frozen=True)
class Ended:
    """A command that ran to its end."""

    status: int
    out: str
    err: str
    seconds: float


async def carteiro(
    *words: str,
    url: str,
    folder: Path,
    module: str = "gateway",
    settings: Mapping[str, str] | None = None,
) -> Ended:
    """Run one command in its own process."""
    began = time.monotonic()
    process = await start(*words, url=url, folder=folder, module=module, settings=settings)
    async with asyncio.timeout(COMMAND_SECONDS):
        out, err = await process.communicate()
    seconds = round(time.monotonic() - began, 2)
    return Ended(process.returncode or 0, out.decode(), err.decode(), seconds)


async def start(
    *words: str,
    url: str,
    folder: Path,
    module: str = "gateway",
    settings: Mapping[str, str] | None = None,
) -> asyncio.subprocess.Process:
    """Start one command."""
    base = {name: value for name, value in os.environ.items() if not name.startswith("CARTEIRO_")}
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, *words,
        cwd=folder, stdout=PIPE, stderr=PIPE,
        env=base | {
            "PYTHONPATH": str(ROOT),
            "CARTEIRO_DATABASE__URL": url,
            "CARTEIRO_SECRETS__KEY_FILE": str(folder / "carteiro.key"),
        } | dict(settings or {}),
    )  # fmt: skip


async def run_backup_under_load(
    engine: Engine, restored_on: Engine, seed: int, *, rows: int = 50_000, module: str = "gateway"
) -> dict[str, Any]:
    """Back up beside load, kill the server, restore elsewhere, serve, and join all of it.

    `rows` contacts are there before, so that the backup takes a while. `module` replaces the
    program that makes the backup: the negative control.
    """
    verdict = Verdict(f"backup under load, {engine} to {restored_on}", seed)
    with tempfile.TemporaryDirectory(prefix="carteiro-backup-") as home:
        folder = Path(home)
        (folder / "new").mkdir()
        async with (
            empty_database(engine, folder) as url,
            empty_database(restored_on, folder / "new") as target,
            recipients(RECEIVERS, seed=seed, latency=LATENCY) as there,
        ):
            tenants = await settle_in(url, folder, there.ports, owners=RECEIVERS)
            await _more_contacts(url, tenants, rows)
            load = Load(tenants, seed)
            before, after = await _back_up(url, folder, load, tenants, module, verdict)
            restored = await carteiro("restore", "b", url=target, folder=folder)
            verdict.find(restored.status != 0, f"restore: {restored.err}")
            verdict.figures["restore_s"] = restored.seconds
            if restored.status == 0:
                await _whole(verdict, target, tenants, before, after)
            if verdict.kept:
                await _served(verdict, target, folder, load, there)
    return verdict.told()


async def _more_contacts(url: str, tenants: Tenants, rows: int) -> None:
    db = await database.open(url, clock=SystemClock(), ids=Ids())
    try:
        [owner, *_] = tenants.keys
        await db.apart("migration").write(add_contacts, owner, rows, "")
    finally:
        await db.close()


async def _back_up(
    url: str, folder: Path, load: Load, tenants: Tenants, module: str, verdict: Verdict
) -> tuple[set[str], set[str]]:
    """Return the writes acknowledged before the backup, and those sent before its end."""
    product = Product(folder, url, tenants.key_file)
    try:
        await product.start()
        async with load.writing(product.address, rate=RATE):
            await load.until_sent(60)
            before = set(load.acked)
            made = await carteiro("backup", "b", url=url, folder=folder, module=module)
            after = load.sent
            await load.until_sent(load.count + 20)
    finally:
        await product.close()
    verdict.find(made.status != 0, f"backup: {made.err}")
    verdict.find(len(load.refused), "writes refused beside the backup")
    verdict.acks = len(load.acked)
    slowest = sorted(load.milliseconds)
    verdict.p99_ms, verdict.max_ms = (
        round(slowest[int(len(slowest) * 0.99)], 1),
        round(slowest[-1], 1),
    )
    verdict.figures |= {
        "backup_s": made.seconds,
        "backup_mib": round((folder / "b").stat().st_size / 2**20, 1) if not made.status else 0,
        "writes_meanwhile": len(after) - len(before),
    }
    return before, after


async def _whole(
    verdict: Verdict, url: str, tenants: Tenants, before: set[str], after: set[str]
) -> None:
    """Check that the restored tables are those of one moment, between the two sets of writes."""
    contacts = {row[0]: row[1:] for row in await query(url, CONTACTS)}
    events = await query(url, EVENTS)
    deliveries = await query(url, DELIVERIES)
    verdict.rows, verdict.deliveries = len(events), len(deliveries)
    there = {request for _, _, _, request, _ in events}
    verdict.lost += verdict.find(len(before - there), "writes of before the backup are missing")
    verdict.unexpected += verdict.find(len(there - after), "writes of after the backup")
    by_event = {record: (owner, request) for _, owner, record, request, _ in events}
    verdict.find(by_event != contacts, "records and their events are of different moments")
    seqs = [seq for *_, seq in events if seq is not None]
    [(last,)] = await query(url, SEQ)
    verdict.find(seqs != list(range(1, last + 1)), "places in the feed are missing")
    wanted = {
        (event, hook)
        for event, owner, _, _, seq in events
        if seq is not None
        for hook in tenants.webhooks[owner]
    }
    pairs = Counter((event, hook) for event, hook, *_ in deliveries)
    verdict.find(set(pairs) != wanted or pairs.total() != len(wanted), "deliveries do not match")
    tried = Counter((event, hook) for event, hook, _ in await query(url, ATTEMPTS))
    torn = sum(
        (state == "delivered") != (tried[event, hook] > 0)
        for event, hook, state, _, _ in deliveries
    )
    verdict.find(torn, "deliveries and their attempts are of different moments")
    held = sum(state == "in_flight" for _, _, state, _, _ in deliveries)
    verdict.find(held, "claims of a node that is gone")
    counted = set(await query(url, COUNTED))
    verdict.find({(o, k, int(n)) for o, k, n in await query(url, TALLIES)} != counted, "tallies")


async def _served(verdict: Verdict, url: str, folder: Path, load: Load, there: Recipients) -> None:
    """Serve the restored database: what was unfinished goes out, what was finished does not."""
    tenants = load.tenants
    finished = {(e, h) for e, h, state, *_ in await query(url, DELIVERIES) if state == "delivered"}
    owners = {event: owner for event, owner, *_ in await query(url, EVENTS)}
    left = {(e, h) for e, owner in owners.items() for h in tenants.webhooks[owner]} - finished
    came = len(there.got)
    product = Product(folder, url, tenants.key_file, name="restored")
    try:
        await product.start()
        known = set(load.acked)
        async with load.writing(product.address, rate=RATE):
            await load.until_sent(load.count + 20)
        verdict.find(await until_drained(url, DRAIN_SECONDS), "events and deliveries unfinished")
    finally:
        await product.close()
    verdict.find(len(set(load.acked) - known) < 20, "new writes were not accepted")
    new = {
        (event, hook)
        for event, owner, _, request, _ in await query(url, EVENTS)
        if request not in known and event not in owners
        for hook in tenants.webhooks[owner]
    }
    again = arrivals(there.got[came:], tenants)
    verdict.lost += verdict.find(len((left | new) - set(again)), "deliveries that never came")
    verdict.unexpected += verdict.find(len(set(again) - left - new), "deliveries nobody expected")
    verdict.duplicated = verdict.find(again.total() - len(again), "deliveries that came twice")
    verdict.figures |= {"unfinished_in_the_backup": len(left)}


def arrivals(got: list[Receipt], tenants: Tenants) -> Counter[tuple[str, str]]:
    """Count requests by event and webhook."""
    return Counter((receipt.event_id, tenants.paths[receipt.path]) for receipt in got)
