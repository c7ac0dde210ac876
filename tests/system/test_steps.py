"""SIGKILL at each system call of a delivery."""

from __future__ import annotations

import asyncio
import tempfile
import time
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from outbox.queue.state.policy import MOST_RESCUES
from tests.support.engines import Engine, empty_database, state_after_kill
from tests.support.injecting import let_go
from tests.support.ledger import Held, judge, newly, query, read_rows, until_drained
from tests.support.load import Load
from tests.support.product import Product
from tests.support.recipients import recipients
from tests.support.requirements import need
from tests.support.tenants import settle_in

CALLS = {
    "sqlite": ("fdatasync", "pwrite64", "write", "sendto", "connect", "sendmsg"),
    "postgres": ("write", "sendto", "connect", "sendmsg"),
}
"""The system calls of a delivery to disks and peers."""
MOST_OF_ONE = 40
QUIET_SECONDS = 3.0
RESTART_SECONDS = 3.0
WORN = f"""
select count(*) from deliveries
where rescues >= {MOST_RESCUES // 2} and state in ('ready', 'in_flight')
"""


async def run_steps(kills: int, engine: Engine, seed: int) -> dict[str, Any]:
    """Kill at the 1st, 2nd, … of each kind of call, `kills` times in all; return the record.

    A kind is complete when one whole delivery makes fewer calls than its number.
    """
    for tool in ("linux", "root", "strace"):
        need(tool)
    with tempfile.TemporaryDirectory(prefix="carteiro-steps-") as home:
        folder = Path(home)
        async with empty_database(engine, folder) as url:
            async with recipients(2, seed=seed) as there:
                tenants = await settle_in(url, folder, there.ports, owners=1, webhooks=2)
                product = Product(folder, url, tenants.key_file)
                load = Load(tenants, seed)
                in_flight: list[Held] = []
                hit: dict[str, int] = {}
                starts: list[float] = []
                damaged = 0
                try:
                    waiting = list(CALLS[engine])
                    while waiting and sum(hit.values()) < kills:
                        call = waiting.pop(0)
                        starts.append(await product.start())
                        if (await query(url, WORN))[0][0]:
                            # After ten deaths the engine gives a delivery up; this one may end.
                            await until_drained(url, QUIET_SECONDS)
                        await _write_under(product, load, url, call, hit.get(call, 0) + 1)
                        if product.running:
                            # One delivery makes fewer calls of this kind.
                            product.kill()
                        elif hit.get(call, 0) < MOST_OF_ONE:
                            hit[call] = hit.get(call, 0) + 1
                            waiting.append(call)
                        await product.ended()
                        met, integrity = await state_after_kill(url)
                        in_flight.append(newly(met, in_flight))
                        damaged += integrity != "ok"
                    await product.start()
                    left = await until_drained(url, 20 if engine == "sqlite" else 45)
                    rows = await read_rows(url)
                    verdict = judge(
                        f"kill at each system call, {engine}",
                        load,
                        rows,
                        there.got,
                        in_flight=in_flight,
                        rss=product.rss(),
                    )
                finally:
                    await product.close()
    verdict.find(left, "events and deliveries unfinished")
    verdict.find(damaged, "files damaged")
    verdict.find(sum(s > RESTART_SECONDS for s in starts), "starts slower than 3 s")
    verdict.find(not hit, "strace killed nothing")
    verdict.figures |= {"kills": hit, "slowest_start_s": round(max(starts), 2)}
    return verdict.told()


async def _write_under(product: Product, load: Load, url: str, call: str, number: int) -> None:
    """Write once while strace waits to kill at that call; return after the kill or the end."""
    strace = await asyncio.create_subprocess_exec(
        need("strace"), "-f", "-p", str(product.pid), "-o", "/dev/null", "-e", f"trace={call}",
        "-e", f"inject={call}:signal=SIGKILL:when={number}",
        stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE,
    )  # fmt: skip
    try:
        assert strace.stderr is not None
        async with asyncio.timeout(30):
            # "Process N attached", once for the process and once for each of its threads.
            await strace.stderr.readline()
        async with aiohttp.ClientSession(product.address) as http:
            await load.write(http)
        end = time.monotonic() + QUIET_SECONDS
        while product.running and time.monotonic() < end:
            if not await _unfinished(url):
                return
            await asyncio.sleep(0.05)
    finally:
        await let_go(strace)
        if _is_dead(product.pid):
            # Its parent learns that only when its tracer has let go.
            await product.ended()


def _is_dead(pid: int) -> bool:
    """Return whether a process has ended, with its status collected or not."""
    try:
        # The name, in brackets, may contain spaces.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


async def _unfinished(url: str) -> int:
    sql = "select count(*) from events where seq is null"
    [(unseen,)] = await query(url, sql)
    [(open_,)] = await query(url, "select count(*) from deliveries where finished_at is null")
    return int(unseen) + int(open_)


@pytest.mark.proof
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_a_kill_at_each_system_call(engine: Engine) -> None:
    told = await run_steps(60, engine, 80260)
    assert told["pass"], told
