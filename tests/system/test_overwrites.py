"""A restore replaces all data beside a cut-off server, which then serves what was restored.

The server stands still and has no connection, so the restore cannot see it. When it goes on, it
serves what was restored: nothing of before the restore comes back, and what waits is sent once.
"""

from __future__ import annotations

import signal
from collections import Counter
from typing import Any

import asyncpg
import pytest

from outbox.ids import Ids
from outbox.webhooks.key_files import read_key_file
from tests.support.chains import walked
from tests.support.deployed import Deployed, deployed
from tests.support.ledger import Verdict, query, until_drained
from tests.support.waiting import until
from tests.system.backups import carteiro, start

WRITES = 30
RATE = 50.0
DRAIN_SECONDS = 60.0
CUT = """
select pg_terminate_backend(pid) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid()
"""
LOCKS = """
select count(*) from pg_locks
where locktype = 'relation' and mode = 'AccessExclusiveLock' and granted
  and relation = to_regclass('contacts')
"""
EVENTS = "select id, request_id from events"
DELIVERIES = "select event_id, webhook_id, state from deliveries"
FROZEN = {"CARTEIRO_SERVER__SHUTDOWN_SECONDS": "5"}


async def run_overwrite(seed: int, *, early: bool) -> dict[str, Any]:
    """Write, back up, write on with open requests, restore beside the frozen server, write again.

    With `early`, the server goes on and connects again while the restore is on its way.
    """
    async with deployed("postgres", seed, settings=FROZEN) as site:
        kept = await _written(site)
        await until_drained(site.url, DRAIN_SECONDS)
        # What waits at the backup: it is sent once after the restore, whatever the server knows.
        site.there.behave(hang=["/"])
        waiting = await _written(site)
        backup = await carteiro("backup", "b", url=site.url, folder=site.folder)
        gone = await _written(site)
        met = len(site.there.got)
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
        left = await until_drained(site.url, DRAIN_SECONDS)
        verdict = Verdict("restore beside a cut-off server", seed, len(site.load.acked))
        verdict.find(backup.status, f"backup: {backup.err}")
        verdict.find(bool(command.returncode), f"restore: {err.decode()}")
        verdict.find(len(refused), "writes accepted while the tables were replaced")
        verdict.find(left, "events and deliveries unfinished")
        await _judged(site, verdict, kept | waiting, gone, late, met)
        return verdict.told()


async def _dropped(site: Deployed) -> bool:
    """Return whether the restore has dropped the tables, in its transaction."""
    [(locks,)] = await query(site.url, LOCKS)
    return bool(locks)


async def _written(site: Deployed) -> set[str]:
    """Write some contacts; return the request ids of those with a 2xx."""
    before = set(site.load.acked)
    async with site.load.writing(site.product.address, rate=RATE):
        await site.more(WRITES)
    return set(site.load.acked) - before


async def _judged(
    site: Deployed, verdict: Verdict, kept: set[str], gone: set[str], late: set[str], met: int
) -> None:
    events = {request: event for event, request in await query(site.url, EVENTS)}
    verdict.rows = len(events)
    verdict.lost += verdict.find(len(kept - set(events)), "writes of before the backup missing")
    verdict.lost += verdict.find(len(late - set(events)), "writes of after the restore missing")
    verdict.unexpected += verdict.find(len(gone & set(events)), "writes that the restore undid")
    verdict.find(not late, "no write succeeded after the restore")
    delivered = Counter(
        (event, webhook)
        for event, webhook, state in await query(site.url, DELIVERIES)
        if state == "delivered"
    )
    expected = len(events) * len(site.load.tenants.webhooks[site.load.owner()])
    verdict.deliveries = delivered.total()
    verdict.lost += verdict.find(expected - len(delivered), "deliveries not delivered")
    paths = site.load.tenants.paths
    again = Counter(
        (receipt.event_id, paths[receipt.path])
        for receipt in site.there.got[met:]
        if receipt.event_id in set(events.values())
    )
    verdict.duplicated = (again - Counter(set(again))).total()
    verdict.unexpected += verdict.find(
        verdict.duplicated, "deliveries sent twice after the restore"
    )
    faulty = await walked(site.url, read_key_file(site.load.tenants.key_file, Ids()))
    verdict.find(len(faulty.faults), f"faults of the chain: {faulty.faults[:3]}")


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("early", [False, True])
async def test_a_server_that_was_cut_off_serves_what_was_restored(early: bool) -> None:
    told = await run_overwrite(1, early=early)
    assert told["pass"], told
