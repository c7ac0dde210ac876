"""After a copy to PostgreSQL each waiting delivery goes out exactly once."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from outbox import database
from outbox.clock import SystemClock
from outbox.database.transaction import Tx
from outbox.events import enqueue
from outbox.ids import Ids
from tests.support.crm_rows import add_contacts
from tests.support.engines import empty_database, state_after_kill
from tests.support.faults import sizes
from tests.support.ledger import Held, Pair, Verdict, query, until_drained
from tests.support.load import Load
from tests.support.product import NotStarted, Product
from tests.support.recipients import Recipients, recipients
from tests.support.tenants import EVENT, Tenants, settle_in
from tests.system.backups import arrivals, carteiro

OWNERS = 8
RATE = 60.0
REFUSED_SECONDS = 120.0
DRAIN_SECONDS = 180.0
RETRIES = {"CARTEIRO_RETRY__SCHEDULE": "2,2,2,2,2,2,2,2,2,2,2,2"}
STATES = "select event_id, webhook_id, state from deliveries"
EVENTS = "select id, owner_id from events"
COUNT = "select count(*) from contacts"
FEED = "select id, owner_id from events where seq is not null order by owner_id, seq"


@dataclass
class _Source:
    """What the SQLite file held at the copy."""

    delivered: set[Pair] = field(default_factory=set)
    waiting: set[Pair] = field(default_factory=set)
    in_flight: Held = field(default_factory=dict)
    feed: list[Any] = field(default_factory=list)
    states: dict[str, int] = field(default_factory=dict)
    contacts: int = 0


async def run_copy(
    seed: int,
    *,
    records: int = 100_000,
    unseen: int = 3_000,
    end: Literal["stop", "kill"] = "stop",
    careless: bool = False,
) -> dict[str, Any]:
    """Copy `records` contacts and all kinds of waiting deliveries; two nodes then serve the copy.

    `unseen` events wait for fan-out. `end` is how the old server ended before. `careless` serves
    the old file beside the copy, against the mark: the negative control.
    """
    verdict = Verdict(f"copy after a {end}", seed)
    with tempfile.TemporaryDirectory(prefix="carteiro-copy-") as home:
        folder = Path(home)
        async with (
            empty_database("sqlite", folder) as url,
            empty_database("postgres", folder) as target,
            recipients(OWNERS, seed=seed, latency=(0.0, 0.05)) as there,
        ):
            tenants = await settle_in(url, folder, there.ports, owners=OWNERS)
            load = Load(tenants, seed)
            await _use(url, folder, load, there, end)
            await _add(url, tenants, records, unseen)
            source = await _state(url, tenants)
            came = len(there.got)
            copied = await carteiro("copy", "--to", target, url=url, folder=folder)
            verdict.find(copied.status != 0, f"copy: {copied.err}")
            if copied.status == 0:
                await _serve(verdict, url, target, folder, load, there, careless=careless)
                await _judge(verdict, target, source, load, there, came)
            verdict.acks = len(load.acked)
            verdict.figures |= {
                "records": source.contacts,
                "waiting": len(source.waiting),
                "states": source.states,
                "copy_s": copied.seconds,
            }
    return verdict.told()


async def _use(
    url: str, folder: Path, load: Load, there: Recipients, end: Literal["stop", "kill"]
) -> None:
    """Serve the file: some deliveries arrive, others are refused and wait, or are under way."""
    product = Product(folder, url, load.tenants.key_file, name="sqlite", environment=RETRIES)
    try:
        await product.start()
        async with load.writing(product.address, rate=RATE):
            await load.until_sent(60)
            there.behave(status=503)
            await load.until_sent(160)
            hanging = load.tenants.paths
            there.behave(status=200, hang=[*hanging][: len(hanging) // 4])
            await load.until_sent(220)
        if end == "stop":
            await product.stop()
    finally:
        await product.close()
    there.behave(release=True)


async def _add(url: str, tenants: Tenants, records: int, unseen: int) -> None:
    """Add records, and events that no server has seen."""
    db = await database.open(url, clock=SystemClock(), ids=Ids())
    try:
        [owner, *_] = tenants.keys
        await db.write(add_contacts, owner, records, "")
        await db.write(_announce, [*tenants.keys], unseen)
    finally:
        await db.close()


async def _announce(tx: Tx, owners: list[str], count: int) -> None:
    for number in range(count):
        enqueue(
            tx, owner_id=owners[number % len(owners)], name=EVENT, record_id=f"{number:024}",
            record_version=1, data={"id": f"{number:024}"},
        )  # fmt: skip


async def _state(url: str, tenants: Tenants) -> _Source:
    source = _Source()
    source.in_flight, _ = await state_after_kill(url)
    deliveries = await query(url, STATES)
    for event, hook, state in deliveries:
        source.states[state] = source.states.get(state, 0) + 1
        if state == "delivered":
            source.delivered.add((event, hook))
    wanted = {
        (event, hook)
        for event, owner in await query(url, EVENTS)
        for hook in tenants.webhooks[owner]
    }
    source.waiting = wanted - source.delivered
    source.states["unseen"] = len(wanted) - len(deliveries)
    source.feed = await query(url, FEED)
    [(source.contacts,)] = await query(url, COUNT)
    return source


async def _serve(
    verdict: Verdict,
    url: str,
    target: str,
    folder: Path,
    load: Load,
    there: Recipients,
    *,
    careless: bool,
) -> None:
    """Serve the copy by two nodes until nothing is left, and try to serve the old file."""
    key_file = load.tenants.key_file
    old = Product(folder, url, key_file, name="old")
    nodes = [Product(folder, target, key_file, name=name) for name in ("one", "two")]
    try:
        if careless:
            Path(f"{url.removeprefix('sqlite:///')}.copied").unlink()
            await old.start()
        else:
            try:
                await old.start()
                verdict.find(True, "the old file still serves")
            except NotStarted as refusal:
                verdict.find("was copied to" not in str(refusal), f"refused with: {refusal}")
        for node in nodes:
            await node.start()
        async with load.writing(nodes[1].address, rate=RATE):
            await load.until_sent(load.count + 30)
        left = await until_drained(target, DRAIN_SECONDS)
        verdict.find(left, "events and deliveries unfinished")
        if careless:
            await until_drained(url, DRAIN_SECONDS)
    finally:
        for product in (old, *nodes):
            await product.close()


async def _judge(
    verdict: Verdict, target: str, source: _Source, load: Load, there: Recipients, came: int
) -> None:
    tenants = load.tenants
    again = arrivals(there.got[came:], tenants)
    events = await query(target, EVENTS)
    wanted = {(event, hook) for event, owner in events for hook in tenants.webhooks[owner]}
    new = wanted - source.delivered - source.waiting
    verdict.rows, verdict.deliveries = len(events), len(wanted)
    due = source.waiting | new
    verdict.lost += verdict.find(len(due - set(again)), "deliveries that never came")
    verdict.unexpected += verdict.find(len(set(again) - due), "deliveries nobody expected")
    verdict.duplicated = verdict.find(again.total() - len(again), "deliveries that came twice")
    verdict.find(len(new) < 60, "too few writes to the copy")
    states = {state for *_, state in await query(target, STATES)}
    verdict.find(states != {"delivered"}, f"ends other than delivered: {states}")
    [(contacts,)] = await query(target, COUNT)
    verdict.find(contacts < source.contacts, "records are missing")
    feed = await query(target, FEED)
    seen = set(source.feed)
    verdict.find([e for e in feed if e in seen] != source.feed, "the feed has another order")
    verdict.figures["after_the_copy"] = again.total()


SEED = 60260


@sizes("records, unseen", small=(5_000, 500), large=(100_000, 3_000))
@pytest.mark.parametrize("end", ["stop", "kill"])
async def test_each_delivery_goes_out_once(
    end: Literal["stop", "kill"], records: int, unseen: int
) -> None:
    told = await run_copy(SEED, records=records, unseen=unseen, end=end)
    assert told["pass"], told
    assert told["states"]["ready"] > 50, told


@pytest.mark.proof
@pytest.mark.timeout(300)
async def test_an_old_file_that_still_serves_is_seen() -> None:
    told = await run_copy(SEED, records=1_000, unseen=200, careless=True)
    assert told["duplicated"] > 100, told
