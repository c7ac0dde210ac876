"""After a copy to PostgreSQL each waiting delivery goes out exactly once (R25)."""

from __future__ import annotations

from pathlib import Path

import pytest

from outbox.database.transaction import Tx
from outbox.events import enqueue
from tests.support.crm_rows import add_contacts
from tests.support.deployed import Deployed, deployed
from tests.support.engines import empty_database
from tests.support.ledger import Verdict, query, until_drained
from tests.support.product import NotStarted, Product
from tests.support.tenants import EVENT
from tests.system.test_backups import DELIVERIES, arrivals, carteiro

SEED = 60260
RECORDS, UNSEEN = 100_000, 3_000
"""Contacts, and events that wait for fan-out."""
DRAIN_SECONDS = 180.0
RETRIES = {"CARTEIRO_RETRY__SCHEDULE": "2,2,2,2,2,2,2,2,2,2,2,2"}
EVENTS = "select id, owner_id from events"
COUNT = "select count(*) from contacts"
FEED = "select id, owner_id from events where seq is not null order by owner_id, seq"


async def run_copy(end: str, records: int, unseen: int, *, careless: bool = False) -> Verdict:
    """Copy contacts and all kinds of waiting deliveries; two nodes then serve the copy.

    `end` is how the old server ended before. `careless` serves the old file beside the copy,
    against the mark: the negative control.
    """
    verdict = Verdict(f"copy after a {end}", SEED)
    async with (
        deployed("sqlite", SEED, owners=8, latency=(0.0, 0.05), settings=RETRIES) as site,
        empty_database("postgres", site.folder) as target,
    ):
        await _use(site, end)
        owners, hooks = [*site.tenants.keys], site.tenants.webhooks
        await site.run(add_contacts, owners[0], records, "")
        await site.run(_announce, owners, unseen)
        states = await query(site.url, DELIVERIES)
        delivered = {(event, hook) for event, hook, state in states if state == "delivered"}
        events = await query(site.url, EVENTS)
        waiting = {(event, hook) for event, owner in events for hook in hooks[owner]} - delivered
        feed, [(contacts,)] = await query(site.url, FEED), await query(site.url, COUNT)
        came = len(site.there.got)
        copied = await carteiro("copy", "--to", target, url=site.url, folder=site.folder)
        assert copied.status == 0, copied.err
        await _serve(verdict, site, target, careless=careless)
        again = arrivals(site.there.got[came:], site.tenants)
        events = await query(target, EVENTS)
        wanted = {(event, hook) for event, owner in events for hook in hooks[owner]}
        new = wanted - delivered - waiting
        verdict.rows, verdict.deliveries, due = len(events), len(wanted), waiting | new
        verdict.lost += verdict.find(len(due - set(again)), "deliveries that never came")
        verdict.unexpected += verdict.find(len(set(again) - due), "deliveries nobody expected")
        verdict.duplicated = verdict.find(again.total() - len(again), "deliveries that came twice")
        verdict.find(len(new) < 60, "too few writes to the copy")
        ready = sum(state == "ready" for *_, state in states)
        verdict.find(ready <= 50, f"only {ready} deliveries waited at the copy")
        ends = {state for *_, state in await query(target, DELIVERIES)}
        verdict.find(ends != {"delivered"}, f"ends other than delivered: {ends}")
        [(there,)] = await query(target, COUNT)
        verdict.find(there < contacts, "records are missing")
        seen = set(feed)
        order = [event for event in await query(target, FEED) if event in seen]
        verdict.find(order != feed, "the feed has another order")
    verdict.acks = len(site.load.acked)
    verdict.figures |= {
        "records": contacts, "waiting": len(waiting), "copy_s": copied.seconds,
        "after_the_copy": again.total(),
    }  # fmt: skip
    return verdict


async def _use(site: Deployed, end: str) -> None:
    """Serve the file: some deliveries arrive, others are refused and wait, or are under way."""
    there, hanging = site.there, [*site.tenants.paths]
    async with site.writing(60.0):
        await site.more(60)
        there.behave(status=503)
        await site.more(100)
        there.behave(status=200, hang=hanging[: len(hanging) // 4])
        await site.more(60)
    if end == "stop":
        await site.product.stop()
    else:
        site.product.kill()
        await site.product.ended()
    there.behave(release=True)


async def _announce(tx: Tx, owners: list[str], count: int) -> None:
    """Make events that no server has seen."""
    for number in range(count):
        enqueue(
            tx, owner_id=owners[number % len(owners)], name=EVENT, record_id=f"{number:024}",
            record_version=1, data={"id": f"{number:024}"},
        )  # fmt: skip


async def _serve(verdict: Verdict, site: Deployed, target: str, *, careless: bool) -> None:
    """Serve the copy by two nodes until nothing is left, and try to serve the old file."""
    key_file, old = site.tenants.key_file, site.node("old")
    nodes = [Product(site.folder, target, key_file, name=name) for name in ("one", "two")]
    try:
        if careless:
            Path(f"{site.url.removeprefix('sqlite:///')}.copied").unlink()
            await old.start()
        else:
            with pytest.raises(NotStarted, match="was copied to"):
                await old.start()
        for node in nodes:
            await node.start()
        async with site.load.writing(nodes[1].address, rate=60.0):
            await site.load.until_sent(site.load.count + 30)
        left = await until_drained(target, DRAIN_SECONDS)
        verdict.find(left, "events and deliveries unfinished")
        if careless:
            await until_drained(site.url, DRAIN_SECONDS)
    finally:
        for product in (old, *nodes):
            await product.close()


@pytest.mark.parametrize("end", ["stop", "kill"])
async def test_each_delivery_goes_out_once(end: str) -> None:
    (await run_copy(end, RECORDS, UNSEEN)).must_hold()


async def test_an_old_file_that_still_serves_is_seen() -> None:
    assert (await run_copy("stop", 1_000, 200, careless=True)).duplicated > 100
