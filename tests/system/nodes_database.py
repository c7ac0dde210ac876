"""Several nodes with a failing database, or with foreign locks (R11, R18, R32)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from tests.support.fleet import Fleet, Spell, fleet
from tests.support.ledger import Verdict, query
from tests.system.nodes import WARM_WRITES
from tests.system.nodes_judged import judged, uneven

BACK_SECONDS = 5.0
DELIVERED_SECONDS = 5.0
DOWN_SECONDS = (0.0, 1.0)
PATIENCE = 20.0
TERMINATE = """
select pg_terminate_backend(pid) from pg_stat_activity
where application_name = 'carteiro' and usename like 'node_'
"""
ENDED = "select count(*) from nodes where alive_until < due_now()"
NAMES = "select count(*) from who_is"

# A write as the product makes it: a copy of an existing contact and its event.
CONTACT = """
insert into contacts select copy.* from contacts c,
  jsonb_populate_record(c, jsonb_build_object('id', $1::text, 'name', $2::text)) copy
where c.id = $3
"""
EVENT = """
insert into events overriding user value select copy.* from events e,
  jsonb_populate_record(e, jsonb_build_object(
    'id', $1::text, 'request_id', $2::text, 'record_id', $1::text, 'seq', null)) copy
where e.record_id = $3
"""


async def run_lane_lock(seconds: float, seed: int) -> dict[str, Any]:
    """Lock one webhook's lane from outside: only that webhook waits."""
    async with fleet(seed) as site:
        webhook = site.dice.choice(sorted(site.load.tenants.paths.values()))
        async with site.writing():
            await site.writes(WARM_WRITES, 2 * WARM_WRITES)
            at = time.monotonic()
            lock = f"select 1 from lanes where webhook_id = '{webhook}' for update"
            async with _holding(site, lock):
                await asyncio.sleep(seconds)
            site.spells.append(Spell(at, time.monotonic(), frozenset([webhook])))
            await site.writes(WARM_WRITES, WARM_WRITES)
        return await judged(f"a lane locked for {seconds:.0f} s", site)


async def run_table_lock(table: str, seconds: float, seed: int) -> dict[str, Any]:
    """Lock a whole table from outside: the API responds in time, and leases stay valid."""
    async with fleet(seed) as site:
        async with site.writing():
            await site.writes(WARM_WRITES, 2 * WARM_WRITES)
            async with _holding(site, f"lock table {table} in access exclusive mode"):
                await asyncio.sleep(seconds)
                [(ended,)] = await query(site.url, ENDED)
            await site.writes(WARM_WRITES, WARM_WRITES)
        [(names,)] = await query(site.url, NAMES)

        def more(verdict: Verdict) -> None:
            verdict.find(max(ended, names - len(site.nodes)), "nodes that lost their lease")

        # The backlog goes first, so the delay of each delivery means nothing.
        fault = f"{table} locked for {seconds:.0f} s"
        return await judged(fault, site, unknown_allowed=True, lags=False, more=more)


async def run_crashes(rounds: int, seed: int) -> dict[str, Any]:
    """Stop PostgreSQL at once and start it again, `rounds` times under load."""
    back: list[float] = []
    async with fleet(seed) as site:
        async with site.writing():
            await site.writes(WARM_WRITES, 2 * WARM_WRITES)
            for _ in range(rounds):
                await site.seconds(0.3, 0.8)
                at = time.monotonic()
                await site.cluster.crash()
                await site.seconds(*DOWN_SECONDS)
                await site.cluster.start()
                up = time.monotonic()
                back += await asyncio.gather(
                    *(site.until_acked(node, up, PATIENCE) for node in site.nodes)
                )
                _for_all(site, at)
            await site.writes(WARM_WRITES, WARM_WRITES)

        def more(verdict: Verdict) -> None:
            slow = sum(seconds > BACK_SECONDS for seconds in back)
            verdict.find(slow, f"times that a node was not back in {BACK_SECONDS:.0f} s")
            verdict.figures["back_s"] = round(max(back), 2)

        return await judged(f"{rounds} crashes of postgres", site, unknown_allowed=True, more=more)


async def run_terminated(rounds: int, seed: int) -> dict[str, Any]:
    """Terminate all of the nodes' backends at once, `rounds` times under load."""
    async with fleet(seed) as site:
        async with site.writing():
            await site.writes(WARM_WRITES, 2 * WARM_WRITES)
            for _ in range(rounds):
                await site.seconds(0.2, 0.6)
                await site.cluster.run(TERMINATE)
            await site.writes(WARM_WRITES, WARM_WRITES)
        return await judged(f"{rounds} times pg_terminate_backend", site, unknown_allowed=True)


async def run_late_commit(seconds: float, seed: int) -> dict[str, Any]:
    """Take a low position in `events` in a transaction that commits `seconds` late (R18).

    It blocks nobody, so this run also shows each node's share of the work.
    """
    request, record = f"r{seed}-late", "f" * 24
    async with fleet(seed) as site:
        load = site.load
        async with site.writing():
            await site.writes(WARM_WRITES, 2 * WARM_WRITES)
            model = next(iter(load.acked.values()))
            connection = await asyncpg.connect(site.url)
            try:
                async with connection.transaction():
                    await connection.execute(CONTACT, record, request, model)
                    await connection.execute(EVENT, record, request, model)
                    await asyncio.sleep(seconds)
            finally:
                await connection.close()
            load.acked[request], load.acked_at[request] = record, time.monotonic()
            await site.writes(WARM_WRITES, WARM_WRITES)

        def more(verdict: Verdict) -> None:
            came = [r.at for r in site.there.got if r.event_id == record]
            lag = max(came, default=0.0) - load.acked_at[request]
            verdict.find(not came, "the late event never came")
            verdict.find(lag > DELIVERED_SECONDS, f"the late event came {lag:.1f} s late")
            small = uneven(site)
            verdict.find(len(small), f"nodes with too small a part: {', '.join(small)}")
            verdict.figures["late_event_s"] = round(lag, 2)

        return await judged(f"an event committed {seconds:.0f} s late", site, more=more)


@asynccontextmanager
async def _holding(site: Fleet, statement: str) -> AsyncIterator[None]:
    """Keep a foreign transaction with `statement` open while the block runs."""
    connection = await asyncpg.connect(site.url)
    try:
        async with connection.transaction():
            await connection.execute(statement)
            yield
    finally:
        await connection.close()


def _for_all(site: Fleet, start: float) -> None:
    """Return a fault since `start` that blocked every webhook and has ended."""
    webhooks = frozenset(site.load.tenants.paths.values())
    site.spells.append(Spell(start, time.monotonic(), webhooks))
