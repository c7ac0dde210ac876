"""Several nodes whose database fails them all, or where a stranger holds locks (R11, R18, R32)."""

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

# A write as the product would make it: a contact and its event, copied from ones that are there.
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
    """A stranger locks one webhook's lane: that webhook waits, nobody else does."""
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
    """A stranger locks a whole table: the API answers in time, and leases hold."""
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

        # What has piled up goes first, so how late each delivery is tells nothing.
        fault = f"{table} locked for {seconds:.0f} s"
        return await judged(fault, site, unknown_allowed=True, lags=False, more=more)


async def run_crashes(rounds: int, seed: int) -> dict[str, Any]:
    """PostgreSQL stopped at once and started again, `rounds` times under load."""
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
    """All of the nodes' backends terminated at once, `rounds` times under load."""
    async with fleet(seed) as site:
        async with site.writing():
            await site.writes(WARM_WRITES, 2 * WARM_WRITES)
            for _ in range(rounds):
                await site.seconds(0.2, 0.6)
                await site.cluster.run(TERMINATE)
            await site.writes(WARM_WRITES, WARM_WRITES)
        return await judged(f"{rounds} times pg_terminate_backend", site, unknown_allowed=True)


async def run_late_commit(seconds: float, seed: int) -> dict[str, Any]:
    """A transaction takes a low position in `events` and commits `seconds` late (R18).

    It hinders nobody, so it is the run that shows what part of the work each node does, too.
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
    """A stranger's transaction that has run `statement`, open while the block runs."""
    connection = await asyncpg.connect(site.url)
    try:
        async with connection.transaction():
            await connection.execute(statement)
            yield
    finally:
        await connection.close()


def _for_all(site: Fleet, start: float) -> None:
    """A fault since `start` that held every webhook up, and is over."""
    webhooks = frozenset(site.load.tenants.paths.values())
    site.spells.append(Spell(start, time.monotonic(), webhooks))
