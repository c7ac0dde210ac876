"""Kill -9 under load, and at each system call of a delivery (R1, R2).

No acknowledged write is lost, and only deliveries in flight repeat.
"""

from __future__ import annotations

import asyncio
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import aiohttp

from outbox.queue.state.policy import MOST_RESCUES
from tests.support.deployed import DRAIN_SECONDS, Deployed, deployed
from tests.support.engines import Engine
from tests.support.faults import ENGINES, shows
from tests.support.ledger import UNFINISHED, Held, Pair, Verdict, holes, query, until_drained
from tests.support.product import Product
from tests.support.requirements import need
from tests.support.waiting import in_time

ATTACH_SECONDS = 30.0
LET_GO_SECONDS = 5.0


@dataclass
class Injection:
    """A fault that waits for its call."""

    trace: Path

    @property
    def hits(self) -> int:
        """The calls so far that met the fault."""
        text = self.trace.read_text(errors="replace")
        return text.count("(INJECTED)") + text.count("(DELAYED)")

    async def until_hit(self, seconds: float) -> bool:
        """Wait for the first such call; return whether there was one in time."""
        return await in_time(lambda: self.hits > 0, seconds)


@asynccontextmanager
async def injected(
    pids: Sequence[int], call: str, fault: str, folder: Path
) -> AsyncIterator[Injection]:
    """Let `call` meet `fault`, which is written as in strace(1), such as `error=EIO:when=3`."""
    for tool in ("linux", "root", "strace"):
        need(tool)
    trace = folder / "trace.txt"
    trace.write_text("")
    strace = await asyncio.create_subprocess_exec(
        need("strace"), "-f", *(word for pid in pids for word in ("-p", str(pid))),
        "-o", str(trace), "-e", f"trace={call}", "-e", f"inject={call}:{fault}",
        stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE,
    )  # fmt: skip
    try:
        assert strace.stderr is not None
        async with asyncio.timeout(ATTACH_SECONDS):
            # "Process N attached", once for each process and each of its threads.
            await strace.stderr.readline()
        yield Injection(trace)
    finally:
        await let_go(strace)


async def let_go(strace: Process) -> None:
    """End strace, by force when it misses the signal: that happens just before it waits."""
    for end in (strace.terminate, strace.kill):
        if strace.returncode is None:
            end()
        with suppress(TimeoutError):
            await asyncio.wait_for(strace.communicate(), LET_GO_SECONDS)
            return


SEED = 20260
KILLS = 5
WRITES = (20, 80)
"""The kill comes at a write between these two of its round: 0.4 to 1.6 s of load."""
LATENCY = (0.0, 0.08)
"""Response time of a receiver in seconds: some sends are always in flight."""
ATTEMPTS_PER_ROUND = 16
"""A kill counts when it meets a write and a send; on SQLite that is about one in five."""
FIRST_ATTEMPT_SECONDS = 5.0
LEASE_SECONDS = 30.0
CALLS = {
    "sqlite": ("fdatasync", "pwrite64", "write", "sendto", "connect", "sendmsg"),
    "postgres": ("write", "sendto", "connect", "sendmsg"),
}
"""The system calls of a delivery to disks and peers."""
CALL_KILLS = 30
QUIET_SECONDS = 3.0
RESTART_SECONDS = 3.0
WORN = f"""
select count(*) from deliveries
where rescues >= {MOST_RESCUES // 2} and state in ('ready', 'in_flight')
"""


@dataclass
class Kill:
    """The state at one kill, and how the next start continued."""

    at: float
    writes: int
    sends: int
    met: Held
    restarted: float = 0.0
    ready: float = 0.0
    """How long a start takes is the machine's; what follows is the product's."""


async def run_kills(rounds: int, engine: Engine, seed: int, *, broken: str = "") -> Verdict:
    """Make `rounds` kills that meet a write and a send, then the ledger over all of them."""
    async with deployed(
        engine, seed, owners=20, latency=LATENCY, broken=broken, sequenced=True
    ) as site:
        kills: list[Kill] = []
        counted = 0
        while counted < rounds and len(kills) < rounds * ATTEMPTS_PER_ROUND:
            kills.append(await _kill(site))
            kills[-1].restarted = time.monotonic()
            await site.product.start()
            kills[-1].ready = time.monotonic()
            counted += kills[-1].writes > 0 and kills[-1].sends > 0
        async with site.writing():
            await site.more(WRITES[0])
        verdict = await site.verdict("kill -9")
        verdict.find(await holes(site.url), "webhooks whose deliveries are not numbered 1 to n")
    _timings(verdict, site, kills)
    cut = sum(kill.writes for kill in kills)
    verdict.find(rounds - counted, "rounds that met no write or no send")
    verdict.find(max(verdict.recovered - cut, 0), "writes recovered beyond those under way")
    verdict.find(len(site.load.refused), "writes refused")
    verdict.figures |= {"kills": len(kills), "writes_cut": cut}
    return verdict


async def _kill(site: Deployed) -> Kill:
    """Run load, and send SIGKILL at a random moment of a write."""
    load, got = site.load, site.there.got
    usual = sorted(load.milliseconds)[len(load.milliseconds) // 2] if load.milliseconds else 5.0
    moment = load.count + site.dice.randint(*WRITES)
    async with site.writing():
        await load.until_sent(moment - 1)
        before = len(load.broken)
        await load.until_sent(moment)
        # Sleep in a thread: the loop's own timers are too coarse for a write that takes 3 ms.
        wait = site.dice.uniform(0.0, usual / 1000)
        at = await asyncio.to_thread(_kill_after, wait, site.product)
    met = await site.died()
    # The loop notices a connection that the kill closed a moment later.
    await site.there.until(
        lambda got: not any(r.open_at(at) and r.answered is None and r.gone is None for r in got)
    )
    return Kill(at, len(load.broken) - before, sum(receipt.open_at(at) for receipt in got), met)


def _kill_after(seconds: float, product: Product) -> float:
    time.sleep(seconds)
    return product.kill()


def _timings(verdict: Verdict, site: Deployed, kills: list[Kill]) -> None:
    """Check that sending continued soon after each restart, and deliveries in flight came again."""
    got, sqlite = site.there.got, site.engine == "sqlite"
    firsts: list[float] = []
    rescues: list[float] = []
    for kill in kills:
        after = [r.at for r in got if r.at > kill.restarted]
        verdict.find(not after, "nothing was sent after a restart")
        firsts += [min(after) - kill.ready] if after else []
        again: dict[Pair, float] = {}
        for receipt in got:
            if receipt.at > kill.at:
                pair = (receipt.event_id, site.tenants.paths.get(receipt.path, ""))
                again.setdefault(pair, receipt.at)
        since = kill.ready if sqlite else kill.at
        rescues += [again[pair] - since for pair in kill.met if pair in again]
    limit = FIRST_ATTEMPT_SECONDS + (0.0 if sqlite else LEASE_SECONDS)
    verdict.find(sum(s > FIRST_ATTEMPT_SECONDS for s in firsts), "first attempts later than 5 s")
    verdict.find(sum(s > limit for s in rescues), f"rescued later than {limit:.0f} s")
    verdict.figures |= {
        "first_attempt_s": round(max(firsts, default=0.0), 2),
        "rescued_s": round(max(rescues, default=0.0), 2),
    }


@ENGINES
async def test_kills_lose_nothing(engine: Engine) -> None:
    (await run_kills(KILLS, engine, SEED)).must_hold()


async def test_settling_before_sending_is_seen() -> None:
    assert await shows(partial(run_kills, 1, "sqlite", broken="sends_after_recording"), SEED)


@ENGINES
async def test_a_kill_at_each_system_call(engine: Engine) -> None:
    """Kill at the 1st, 2nd, … of each kind of call.

    A kind is complete when one whole delivery makes fewer calls than its number.
    """
    for tool in ("linux", "root", "strace"):
        need(tool)
    async with deployed(engine, SEED, owners=1, webhooks=2, started=False) as site:
        product, hit, starts = site.product, dict.fromkeys(CALLS[engine], 0), list[float]()
        waiting = [*hit]
        while waiting and sum(hit.values()) < CALL_KILLS:
            call = waiting.pop(0)
            # The wait for a processor is the machine's.
            starts.append(await product.start() - product.queued_seconds())
            if (await query(site.url, WORN))[0][0]:
                # After ten deaths the engine gives a delivery up; this one may end.
                await until_drained(site.url, QUIET_SECONDS)
            await _write_under(site, call, hit[call] + 1)
            if product.running:
                # One delivery makes fewer calls of this kind.
                await site.kill()
            else:
                hit[call] += 1
                waiting.append(call)
                await site.died()
        await product.start()
        verdict = await site.verdict("kill at each call", seconds=DRAIN_SECONDS[engine])
    verdict.find(sum(s > RESTART_SECONDS for s in starts), "starts slower than 3 s")
    verdict.find(not any(hit.values()), "strace killed nothing")
    verdict.figures |= {"kills": hit, "slowest_start_s": round(max(starts), 2)}
    verdict.must_hold()


async def _write_under(site: Deployed, call: str, number: int) -> None:
    """Write once while strace waits to kill at that call; return after the kill or the end."""
    product = site.product
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
        async with aiohttp.ClientSession() as http:
            await site.load.write(http, product.address)
        end = time.monotonic() + QUIET_SECONDS
        while product.running and time.monotonic() < end:
            if not (await query(site.url, UNFINISHED))[0][0]:
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
