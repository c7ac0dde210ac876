"""Receivers that are hostile, names that do not resolve: attempts end by name, nobody waits.

Five hundred webhooks of ten owners go to the modes of `tests.support.hostile_house` (R7); those of
four owners to a hundred hosts whose look-ups fail (R21). As many others go where attempts end well
or at once, which is what the run is compared with. tests/outbox/sending/test_receivers_hostile.py
has the modes one at a time.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from dnslib import QTYPE, RCODE, RR, A, DNSRecord

from outbox.clock import SystemClock
from tests.benchmarks.children import child
from tests.benchmarks.figures import quantile
from tests.support.deployed import Deployed, deployed
from tests.support.engines import Engine
from tests.support.faults import ENGINES
from tests.support.hostile_house import FINE, modes
from tests.support.ledger import Verdict, query
from tests.support.load import Load
from tests.support.requirements import need
from tests.support.waiting import in_time

ADDRESS = "127.0.0.153"
SLOW_SECONDS = 10.0
FAULTS = ("hang", "servfail", "nxdomain", "slow")
MOUNT = 'mount --bind "$0" /etc/resolv.conf && exec "$@"'


@dataclass
class Names(asyncio.DatagramProtocol):
    """The server; `prefix` runs a command whose look-ups go to it."""

    prefix: Sequence[str]
    asked: Counter[str] = field(default_factory=Counter)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        question = DNSRecord.parse(data)
        name = str(question.q.qname)
        kind = name.partition(".")[0].rstrip("0123456789")
        self.asked[kind] += 1
        if kind == "hang":
            return
        answer = question.reply()
        if kind in ("servfail", "nxdomain"):
            answer.header.rcode = getattr(RCODE, kind.upper())
        elif question.q.qtype == QTYPE.A:
            answer.add_answer(RR(name, QTYPE.A, rdata=A("127.0.0.1"), ttl=1))
        wait = SLOW_SECONDS if kind == "slow" else 0.0
        asyncio.get_running_loop().call_later(wait, self._answer, answer.pack(), addr)

    def _answer(self, data: bytes, addr: tuple[str, int]) -> None:
        if not self._transport.is_closing():
            self._transport.sendto(data, addr)


@asynccontextmanager
async def names(folder: Path) -> AsyncIterator[Names]:
    """Run the server; resolv.conf knows no other port than 53, hence an address of its own."""
    for tool in ("linux", "root", "unshare"):
        need(tool)
    settings = folder / "resolv.conf"
    settings.write_text(f"nameserver {ADDRESS}\noptions timeout:5 attempts:2\n")
    prefix = (need("unshare"), "--mount", "sh", "-c", MOUNT, str(settings))
    transport, server = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: Names(prefix), local_addr=(ADDRESS, 53)
    )
    try:
        yield server
    finally:
        transport.close()


SEED = 71260
SECONDS = 60.0
OF_NONE = 1.5
COST_OF_NONE = 3.0
"""They keep no connection, some speak TLS, some say 64 KiB before they are cut."""
WITHIN_MS = 1_000.0
NOISE_MS = 300.0
LAG_MS = 50.0
QUIET_SHARE = 0.05
"""Above this share of a phase, the loop waited for a processor: its times tell of the machine."""
MORE_MIB = 64.0
SETTLED_SECONDS = 40.0
LATENCIES = """
select (a.started_at + a.total_us - e.occurred_at) / 1000.0, e.occurred_at
from attempts a join events e on e.id = a.event_id join webhooks w on w.id = a.webhook_id
where w.url like '%/owner%' and a.outcome = 'success'
"""
OUTCOMES = """
select a.url, a.outcome, count(*), max(total_us) from attempts a
join webhooks w on w.id = a.webhook_id where w.url not like '%/owner%' group by a.url, a.outcome
"""
ATTEMPTS = "select count(*) from attempts where started_at >= {}"
GONE = "select count(*) from webhooks where state = 'disabled' and disabled_reason is not null"
LAGS = re.compile(r'^event_loop_lag_seconds_bucket\{le="([^"]+)"\} (\S+)$', re.MULTILINE)


@dataclass
class Phase:
    """What the healthy owners met while others had their events."""

    writes: list[float]
    deliveries: list[float]
    lag_ms: float
    rss: float
    cpu_ms: float
    """Processor time of the product by attempts."""
    quiet: bool


async def phase(site: Deployed, others: Load, rate: float) -> Phase:
    """Write for a while beside writes of `others`."""
    product, load = site.product, site.load
    first, before, began = SystemClock().wall(), len(load.milliseconds), time.monotonic()
    lags = await _lags(site)
    spent, queued = product.cpu_seconds(), product.queued_seconds()
    async with others.writing(product.address, rate=rate):
        await others.until_sent(2)
        async with site.writing():
            await site.more(round(50 * SECONDS), SECONDS * 3 + 60)
        now = await _lags(site)
        await site.until_own(SETTLED_SECONDS)
    # The upper bound of the bucket that holds 99 of 100 delays.
    counts = {bound: now[bound] - lags.get(bound, 0.0) for bound in sorted(now)}
    lag = next(bound for bound, n in counts.items() if n >= 0.99 * counts[max(counts)])
    rows = await query(site.url, LATENCIES)
    [(attempts,)] = await query(site.url, ATTEMPTS.format(first))
    waited = (product.queued_seconds() - queued) / (time.monotonic() - began)
    return Phase(
        load.milliseconds[before:], [float(ms) for ms, at in rows if at >= first], lag * 1000,
        max(site.rss[-1], product.rss()), (product.cpu_seconds() - spent) * 1000 / attempts,
        waited < QUIET_SHARE,
    )  # fmt: skip


async def _lags(site: Deployed) -> dict[float, float]:
    """Return the buckets of the event loop's delay."""
    found = LAGS.findall((await site.product.get("/metrics"))[1])
    assert found, "there are no delays of the loop on the metrics page"
    return {float(bound): float(count) for bound, count in found}


def compare(verdict: Verdict, none: Phase, beside: Phase) -> None:
    """Find what is worse beside the faults."""
    for what, alone, together in (
        ("write", none.writes, beside.writes), ("delivery", none.deliveries, beside.deliveries),
    ):  # fmt: skip
        before, after = quantile(alone, 0.99), quantile(together, 0.99)
        late = after > max(OF_NONE * before, before + NOISE_MS) or after > max(WITHIN_MS, before)
        verdict.find(
            beside.quiet and late,
            f"the p99 of a {what} is {after:.0f} ms beside them and {before:.0f} ms without",
        )
        verdict.figures |= {
            f"{what}_none_p99_ms": round(before, 1), f"{what}_p99_ms": round(after, 1)
        }  # fmt: skip
    lagging = beside.lag_ms > max(LAG_MS, none.lag_ms)
    verdict.find(beside.quiet and lagging, f"the loop's p99 delay is {beside.lag_ms:.0f} ms")
    dear = beside.cpu_ms > COST_OF_NONE * none.cpu_ms
    verdict.find(dear, f"an attempt takes {beside.cpu_ms:.2f} ms, without {none.cpu_ms:.2f}")
    verdict.find(beside.rss - none.rss > MORE_MIB, f"it takes {beside.rss:.0f} MiB of memory")
    verdict.figures |= {
        "lag_p99_ms": beside.lag_ms, "lag_none_p99_ms": none.lag_ms, "quiet": beside.quiet,
        "cpu_of_none": round(beside.cpu_ms / none.cpu_ms, 2),
        "more_mib": round(beside.rss - none.rss, 1),
    }  # fmt: skip


@ENGINES
async def test_all_hostile_receivers_at_once_hold_up_nobody_else(
    engine: Engine, tmp_path: Path
) -> None:
    # As few attempts as in the run that this is compared with.
    settings = {"CARTEIRO_RETRY__SCHEDULE": "60"}
    with child("tests.support.hostile_house", log=tmp_path / "house.log") as house:
        urls: dict[str, str] = house.json()
        async with deployed(engine, SEED, started=False, settings=settings) as site:

            async def owners_of(first: int, kinds: Sequence[str]) -> Load:
                places = [
                    [f"{urls[kinds[(n + 50 * m) % len(kinds)]]}/{m}/{n}" for n in range(50)]
                    for m in range(10)
                ]
                return Load(await site.newcomers(first, places), SEED + first)

            fine = await owners_of(1_000, [FINE])
            bad = await owners_of(2_000, [name for name in modes() if name != FINE])
            await site.product.start()
            async with site.writing():
                await site.more(50)
            none = await phase(site, fine, 1.0)
            beside = await phase(site, bad, 1.0)
            verdict = await site.verdict("all hostile receivers", strangers=True)
            found = await query(site.url, OUTCOMES)
            [(gone,)] = await query(site.url, GONE)
    compare(verdict, none, beside)
    _outcomes(verdict, urls, found)
    verdict.find(not gone, "no webhook was disabled by its 410")
    verdict.must_hold()


def _outcomes(verdict: Verdict, urls: dict[str, str], found: Sequence[Any]) -> None:
    """Compare the outcomes of each mode with those that it may have."""
    expected, met = modes(), set()
    by_place = {url.split("/")[2]: name for name, url in urls.items()}
    for url, outcome, count, _ in found:
        name = by_place[url.split("/")[2]]
        met.add(name)
        allowed = expected[name].outcomes
        # A slow send too many is cut, and so is one at a webhook that was disabled meanwhile.
        cut = outcome == "aborted" or (outcome == "timeout" and allowed & {"success"})
        verdict.find(count if outcome not in allowed and not cut else 0, f"{name}: {outcome}")
    verdict.find(len(expected) - len(met), f"modes without an attempt: {set(expected) - met}")


HOSTS = 100
CLOSED_PORT = 8_099
LOOKUP_SECONDS = 5.5


async def test_look_ups_that_fail_hold_up_nobody_else() -> None:
    with tempfile.TemporaryDirectory(prefix="carteiro-names-") as home:
        async with (
            names(Path(home)) as server,
            deployed("sqlite", SEED, host="fine.test", prefix=server.prefix, started=False) as site,
        ):

            async def owners_of(first: int, kinds: Sequence[str]) -> Load:
                places = [
                    [
                        f"http://{kinds[n % len(kinds)]}{25 * m + n}.test:{CLOSED_PORT}/bad{n}"
                        for n in range(25)
                    ]
                    for m in range(4)
                ]
                return Load(await site.newcomers(first, places), SEED + first)

            async def failed() -> list[Any]:
                return [one for one in await query(site.url, OUTCOMES) if "/found" not in one[0]]

            async def all_failed() -> bool:
                return len({url for url, *_ in await failed()}) >= HOSTS

            # Their names resolve, and nobody listens: as many attempts without a look-up's fault.
            refusing = await owners_of(1_000, ["found"])
            bad = await owners_of(2_000, FAULTS)
            await site.product.start()
            # The first look-ups, connections and pages are nobody's fault.
            async with site.writing():
                await site.more(50)
            none = await phase(site, refusing, 2.0)
            beside = await phase(site, bad, 2.0)
            verdict = await site.verdict("look-ups fail", strangers=True)
            await in_time(all_failed, SETTLED_SECONDS)
            found = await failed()
    compare(verdict, none, beside)
    verdict.find(HOSTS - len({url for url, *_ in found}), "hosts without an attempt")
    again = 0
    for url, outcome, count, longest in found:
        # A name that answered late is known afterwards; its port is closed.
        known = outcome == "connect_error" and "://slow" in url
        again += count if outcome == "dns_error" else 0
        verdict.find(outcome != "dns_error" and not known, f"{url}: {outcome}")
        verdict.find(longest > LOOKUP_SECONDS * 1e6, f"{url}: {longest / 1e6:.1f} s")
    verdict.find(again <= HOSTS, "no delivery was tried again")
    verdict.figures["look_ups"] = dict(server.asked)
    verdict.must_hold()
