"""Random acts of operators, kills and clock steps leave nothing lost, stuck, doubled or wrong.

Nothing is lost, stuck, without a head, or sent after its success; the chain is green; the charts'
figures equal the rows. On PostgreSQL two nodes write and send, one of which is killed. A seed
replays the acts, not their timing.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from outbox.database.transaction import Tx
from outbox.ids import Ids
from outbox.states import End
from outbox.webhooks.key_files import read_key_file
from tests.support import figures
from tests.support.chains import walked
from tests.support.console import Forms, Seen, signed_in
from tests.support.deployed import Deployed, deployed
from tests.support.engines import Engine
from tests.support.faults import ENGINES
from tests.support.ledger import Verdict, held, newly, query
from tests.support.load import CONNECTION
from tests.support.site import HASHED, PASSWORD
from tests.system.test_clocks import Shim, shim

HOUR = 3_600
EVENTS = ("contact.created", "contact.updated", "contact.deleted")
"""What every webhook subscribes to: all that a run writes."""
STEP_SECONDS = (1.0, 4.0)
"""How long the wall clock is off."""
BETWEEN_SECONDS = (0.0, 0.25)
BETWEEN_KILLS = (4.0, 10.0)
BETWEEN_STEPS = (2.0, 8.0)
BETWEEN_MOODS = (1.0, 4.0)
FAILING = (0.05, 0.3, 0.6, 1.0)
"""Shares of requests that receivers refuse, one after another."""
ENDS: tuple[tuple[End, ...], ...] = (
    ("exhausted", "gone", "dead"), ("exhausted", "cancelled"), ("cancelled", "delivered"),
)  # fmt: skip
SOME = """
select id from deliveries where webhook_id = '{webhook}' and {where} order by id desc limit 30
"""
WAITING = "state in ('ready', 'held')"
HEADS = "ordered and state = 'ready'"
CONTACTS = "select id from contacts where owner_id = '{owner}' limit 200"


class Refused(Exception):
    """The product answered with an error that no operator may see."""


@dataclass
class Operator:
    """One owner's operator: random acts on the owner's webhooks, until the run ends."""

    site: Deployed
    owner: str
    email: str
    dice: random.Random
    always_ordered: str
    """The webhook whose order is never turned, and for which no URL is edited."""
    acts: Counter[str] = field(default_factory=Counter)
    cut: int = 0
    """Acts that met a kill or a refused connection."""

    @property
    def webhooks(self) -> list[str]:
        return self.site.tenants.webhooks[self.owner]

    async def run(self, end: asyncio.Event) -> None:
        """Act until `end`. Raise Refused."""
        by_name: dict[str, Callable[[Forms, str], Awaitable[Seen | None]]] = {
            "pause": self.pause, "activate": self.activate, "edit": self.edit,
            "turn order": self.turn_order, "replay": self.replay, "try now": self.try_now,
            "skip": self.skip, "cancel": self.cancel, "erase": self.erase, "rotate": self.rotate,
            "recover": self.recover, "backfill": self.backfill,
        }  # fmt: skip
        # What parks everything is rarer than what sends it again.
        names = [*by_name, "activate", "activate", "try now", "cancel", "turn order"]
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(self.site.product.address, cookie_jar=jar) as http:
            forms = Forms(http)
            while not end.is_set():
                await asyncio.sleep(self.dice.uniform(*BETWEEN_SECONDS))
                name = self.dice.choice(names)
                try:
                    seen = await by_name[name](forms, self.dice.choice(self.webhooks))
                except (*CONNECTION, AssertionError):
                    # A kill, or a page of an error, which has no form.
                    self.cut += 1
                    continue
                if seen is not None and seen.path.startswith("/console/sign-in"):
                    await self._sign_in(forms)
                elif seen is not None:
                    self.acts[name if seen.status == 200 else f"{name}: {seen.status}"] += 1
                    if seen.status == 500:
                        raise Refused(f"{name}: {seen.status} at {seen.path}: {seen.html[:200]}")

    async def activate_all(self) -> None:
        """Activate every webhook, sending all that is parked."""
        async with signed_in(self.site.product.address, self.email) as forms:
            for webhook in self.webhooks:
                page = f"/console/webhooks/{webhook}"
                seen = await forms.submit(f"{page}/activate", parked="all")
                assert seen.status == 200, seen.html

    async def pause(self, forms: Forms, webhook: str) -> Seen:
        page = f"/console/webhooks/{webhook}"
        return await forms.submit(f"{page}/pause", at=f"{page}/activate")

    async def activate(self, forms: Forms, webhook: str) -> Seen:
        choice = self.dice.choice(("none", "newest", "all", "all"))
        return await forms.submit(f"/console/webhooks/{webhook}/activate", parked=choice)

    async def edit(self, forms: Forms, webhook: str) -> Seen:
        """Correct the URL: the same place under another name."""
        return await self._save(forms, webhook, turn=False)

    async def turn_order(self, forms: Forms, webhook: str) -> Seen | None:
        return None if webhook == self.always_ordered else await self._save(forms, webhook)

    async def replay(self, forms: Forms, webhook: str) -> Seen | None:
        question = self.dice.choice(("waiting", "delivered"))
        return await self._on_one(forms, webhook, "replay", "true", confirmed=question)

    async def try_now(self, forms: Forms, webhook: str) -> Seen | None:
        return await self._on_one(forms, webhook, "now", WAITING)

    async def skip(self, forms: Forms, webhook: str) -> Seen | None:
        return await self._on_one(forms, webhook, "skip", HEADS)

    async def cancel(self, forms: Forms, webhook: str) -> Seen | None:
        return await self._on_one(forms, webhook, "cancel", WAITING)

    async def erase(self, forms: Forms, webhook: str) -> Seen | None:
        """Erase a contact by the command, a second process beside the server."""
        contacts = await query(self.site.url, CONTACTS.format(owner=self.owner))
        if not contacts or self.dice.random() > 0.3:
            return None
        command = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "gateway", "erase", "--yes", self.email,
            self.dice.choice(contacts)[0],
            env=self.site.product.environment, cwd=self.site.folder,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        text, _ = await command.communicate()
        if command.returncode or b"Traceback" in text:
            raise Refused(f"erase: exit {command.returncode}: {text.decode()[-300:]}")
        self.acts["erase"] += 1
        return None

    async def rotate(self, forms: Forms, webhook: str) -> Seen:
        page = f"/console/webhooks/{webhook}/rotate"
        await forms.submit(page)
        return await forms.submit(f"{page}/activate", at=page)

    async def recover(self, forms: Forms, webhook: str) -> Seen:
        return await self._job(forms, webhook, "recover", ends=list(self.dice.choice(ENDS)))

    async def backfill(self, forms: Forms, webhook: str) -> Seen:
        return await self._job(forms, webhook, "backfill")

    async def _job(self, forms: Forms, webhook: str, kind: str, **fields: Any) -> Seen:
        since = datetime.now(UTC) - timedelta(hours=self.dice.choice((1, 6)))
        page = f"/console/webhooks/{webhook}/recover"
        question = "twice" if "delivered" in fields.get("ends", ()) else "count"
        return await forms.submit(
            page, at=f"{page}?kind={kind}", kind=kind, since=f"{since:%Y-%m-%dT%H:%M:%SZ}",
            until="", rate="1000", confirmed=question, **fields,
        )  # fmt: skip

    async def _save(self, forms: Forms, webhook: str, *, turn: bool = True) -> Seen:
        [(url, ordered)] = await query(
            self.site.url, f"select url, ordered from webhooks where id = '{webhook}'"
        )
        if not turn:
            url = f"{url.partition('?')[0]}?edit={self.acts['edit']}"
        page = f"/console/webhooks/{webhook}"
        fields: dict[str, Any] = {"ordered": "1"} if bool(ordered) != turn else {}
        return await forms.submit(
            page, at=f"{page}/edit", url=url, events=list(EVENTS), **fields,
        )  # fmt: skip

    async def _on_one(
        self, forms: Forms, webhook: str, act: str, where: str, **fields: Any
    ) -> Seen | None:
        found = await query(self.site.url, SOME.format(webhook=webhook, where=where))
        if not found:
            return None
        page = f"/console/deliveries/{self.dice.choice(found)[0]}"
        return await forms.submit(f"{page}/{act}", at="/console/webhooks/new", **fields)

    async def _sign_in(self, forms: Forms) -> None:
        try:
            await forms.sign_in(self.email, PASSWORD)
        except (*CONNECTION, AssertionError):
            await asyncio.sleep(0.2)


@dataclass
class Faults:
    """Kills, clock steps and moods of receivers."""

    site: Deployed
    clock: Shim
    dice: random.Random
    steps: int = 0

    async def kill(self, end: asyncio.Event) -> None:
        """Kill and start the server again and again."""
        while not await _over(end, self.dice.uniform(*BETWEEN_KILLS)):
            if self.site.engine == "sqlite":
                await self.site.kill()
            else:
                # The other node goes on, so what is in flight is read beside it.
                self.site.product.kill()
                await self.site.product.ended()
                met = newly(await held(self.site.url), self.site.deaths)
                self.site.deaths.append(met)
            await self.site.product.start()

    async def step(self, end: asyncio.Event) -> None:
        """Set the wall clock two hours ahead or back, for a few seconds each time."""
        while not await _over(end, self.dice.uniform(*BETWEEN_STEPS)):
            self.clock.set(ahead_seconds=self.dice.choice((-2, 2)) * HOUR)
            self.steps += 1
            await _over(end, self.dice.uniform(*STEP_SECONDS))
            self.clock.set()

    async def change_moods(self, end: asyncio.Event) -> None:
        """Let receivers refuse few, many or all requests."""
        while not await _over(end, self.dice.uniform(*BETWEEN_MOODS)):
            self.site.there.behave(failing=self.dice.choice(FAILING))


async def _over(end: asyncio.Event, seconds: float) -> bool:
    """Wait so long, or until the end; return whether it is the end."""
    try:
        async with asyncio.timeout(seconds):
            return await end.wait()
    except TimeoutError:
        return False


SECONDS = 60.0
OWNERS = 2
WEBHOOKS = 3
RECORDS = 6
"""Contacts that each owner's writer changes at a time; erased ones are replaced."""
PAUSE = (0.0, 0.1)
DRAIN_SECONDS = 90.0
SETTINGS = {
    "CARTEIRO_LIMITS__SIGN_IN_PER_MINUTE": "0",
    # Fewer than usual, so that retries run out within a run.
    "CARTEIRO_RETRY__SCHEDULE": "1,1,1,1,1",
    "CARTEIRO_RETENTION__EVENTS_DAYS": "90",
    "CARTEIRO_RETENTION__DELIVERIES_DAYS": "90",
}

LEFT = """
select (select count(*) from events where seq is null)
  + (select count(*) from deliveries where finished_at is null)
  + (select count(*) from jobs where state = 'running') + (select count(*) from erasures)
"""
STUCK = """
select webhook_id, state, ordered, origin, tries, reason from deliveries
where finished_at is null limit 5
"""
MISSING = """
select count(*) from events join webhooks on webhooks.owner_id = events.owner_id
where not exists (select 1 from deliveries
  where deliveries.event_id = events.id and deliveries.webhook_id = webhooks.id
    and deliveries.origin = 'event')
"""
BY_END = "select state, reason, count(*) from deliveries group by state, reason"
WRITTEN = "select request_id, record_id, count(*) from events group by request_id, record_id"
UNPROVEN = """
select count(*) from deliveries where state = 'delivered' and not exists (
  select 1 from attempts where delivery_id = deliveries.id and outcome = 'success')
"""
AFTER_SUCCESS = """
select count(*) from attempts a join attempts b on b.delivery_id = a.delivery_id
where a.outcome = 'success' and b.place > a.place
"""
SUCCESSES = """
select event_id, webhook_id, count(*) from attempts where outcome = 'success'
group by event_id, webhook_id
"""
IN_ORDER = """
select d.webhook_id, d.record_id, d.seq, d.id from attempts a join deliveries d
  on d.id = a.delivery_id
where d.origin = 'event' and d.webhook_id in ({webhooks}) order by a.webhook_id, a.place
"""


@dataclass
class Writer:
    """Changes contacts of one owner, one write after another for each contact."""

    site: Deployed
    addresses: Sequence[str]
    key: str
    name: str
    dice: random.Random
    acked: dict[str, str] = field(default_factory=dict)
    """Record by request id: writes with a 2xx response."""
    sent: int = 0

    async def run(self, end: asyncio.Event) -> None:
        async with aiohttp.ClientSession() as http:
            await asyncio.gather(*(self._one(http, end) for _ in range(RECORDS)))

    async def _one(self, http: aiohttp.ClientSession, end: asyncio.Event) -> None:
        record = ""
        while not end.is_set():
            await asyncio.sleep(self.dice.uniform(*PAUSE))
            if self.dice.random() < 0.05:
                record = ""
            record = await self._write(http, record)

    async def _write(self, http: aiohttp.ClientSession, record: str) -> str:
        """Create or change a record; return its id, empty when there is none (any more)."""
        self.sent += 1
        request_id = f"{self.name}-{self.sent}"
        headers = {"X-API-Key": self.key, "X-Request-Id": request_id}
        method, path = ("PATCH", f"/api/contacts/{record}") if record else ("POST", "/api/contacts")
        url = self.dice.choice(self.addresses) + path
        try:
            async with http.request(
                method, url, json={"name": request_id}, headers=headers
            ) as answer:
                told = await answer.json()
                if answer.status in (200, 201):
                    self.acked[request_id] = told["id"]
                    return str(told["id"])
                return record if answer.status == 503 else ""
        except CONNECTION:
            return record


async def run_chaos(engine: Engine, seed: int, seconds: float, broken: str = "") -> Verdict:
    """Let operators, kills and clock steps act for `seconds`."""
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="carteiro-chaos-") as home, shim(Path(home)) as clock:
        async with (
            deployed(
                engine, seed, owners=OWNERS, webhooks=WEBHOOKS, latency=(0.0, 0.05), broken=broken,
                settings=clock.environment | SETTINGS, started=False, events=EVENTS,
            ) as site,
            AsyncExitStack() as stack,
        ):  # fmt: skip
            ordered = [some[0] for some in site.tenants.webhooks.values()]
            await site.run(_prepare, ordered)
            operators = [
                Operator(site, owner, f"owner{n}@example.com", random.Random(dice.random()), first)
                for n, (owner, first) in enumerate(zip(site.tenants.keys, ordered, strict=True))
            ]
            faults = Faults(site, clock, dice)
            # On PostgreSQL another node goes on when this one is killed.
            nodes = [site.product]
            if engine == "postgres":
                nodes.append(site.node("second", **clock.environment, **SETTINGS))
                stack.push_async_callback(nodes[1].close)
            addresses = [node.address for node in nodes]
            writers = [
                Writer(site, addresses, key, f"r{seed}-{number}", random.Random(dice.random()))
                for number, key in enumerate(site.tenants.keys.values())
            ]
            for node in nodes:
                await node.start()
            await _act(seconds, [
                *(writer.run for writer in writers), *(one.run for one in operators),
                faults.kill, faults.step, faults.change_moods,
            ])  # fmt: skip
            site.there.behave(failing=0.0)
            left = await _settled(site, operators)
            verdict = await _judged(site, seed, operators, writers)
            verdict.find(left, f"left over, such as {await query(site.url, STUCK)}")
    acts = sum((one.acts for one in operators), Counter[str]())
    verdict.find(not all(acts[name] for name in ("pause", "activate", "cancel")), "too few acts")
    verdict.figures |= {
        "acts": dict(sorted(acts.items())), "cut": sum(one.cut for one in operators),
        "kills": len(site.deaths), "clock_steps": faults.steps,
    }  # fmt: skip
    return verdict


async def _prepare(tx: Tx, ordered: Sequence[str]) -> None:
    """Give the owners a password, and each an ordered webhook."""
    await tx.run("update users set password_hash = $1", HASHED)
    for webhook_id in ordered:
        await tx.run("update webhooks set ordered = $1 where id = $2", True, webhook_id)


async def _act(seconds: float, acts: Sequence[Any]) -> None:
    end = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, end.set)
    async with asyncio.TaskGroup() as group:
        for act in acts:
            group.create_task(act(end))


async def _settled(site: Deployed, operators: Sequence[Operator]) -> int:
    """Activate all webhooks until nothing is left to do; return what is left after the time."""
    loop = asyncio.get_running_loop()
    until = loop.time() + DRAIN_SECONDS
    left = 1
    while left and loop.time() < until:
        for one in operators:
            await one.activate_all()
        await asyncio.sleep(1)
        [(left,)] = await query(site.url, LEFT)
    return int(left)


async def _judged(
    site: Deployed, seed: int, operators: Sequence[Operator], writers: Sequence[Writer]
) -> Verdict:
    verdict = Verdict(f"chaos, {site.engine}", seed)
    acked = {request: record for one in writers for request, record in one.acked.items()}
    verdict.acks = len(acked)
    written = {
        (request, record): count for request, record, count in await query(site.url, WRITTEN)
    }
    verdict.rows = sum(written.values())
    verdict.lost += verdict.find(
        sum((request, record) not in written for request, record in acked.items()),
        "acknowledged writes without an event",
    )
    verdict.unexpected += verdict.find(
        sum(written.get((request, record), 0) > 1 for request, record in acked.items()),
        "acknowledged writes with two events",
    )
    [(missing,)] = await query(site.url, MISSING)
    verdict.lost += verdict.find(missing, "events without a delivery to each webhook")
    ends = await query(site.url, BY_END)
    verdict.deliveries = sum(count for *_, count in ends)
    verdict.lost += verdict.find(
        sum(count for state, _, count in ends if state in ("dead", "gone")), f"dead or gone: {ends}"
    )
    [(unproven,)] = await query(site.url, UNPROVEN)
    verdict.lost += verdict.find(unproven, "deliveries delivered without a success")
    [(again,)] = await query(site.url, AFTER_SUCCESS)
    verdict.unexpected += verdict.find(again, "attempts after a success of the same delivery")
    await _arrivals(site, verdict)
    await _order(site, verdict, [one.always_ordered for one in operators])
    faulty = await walked(site.url, read_key_file(site.tenants.key_file, Ids()))
    verdict.find(len(faulty.faults), f"faults of the chain: {faulty.faults[:3]}")
    await _counted(site, verdict)
    verdict.figures["ends"] = sorted(f"{state} {why or ''} {count}" for state, why, count in ends)
    return verdict


async def _arrivals(site: Deployed, verdict: Verdict) -> None:
    """Compare successes at receivers with successes in the log: more only where a kill met them."""
    paths = site.load.tenants.paths
    answered = Counter(
        (receipt.event_id, paths[receipt.path.partition("?")[0]])
        for receipt in site.there.got
        if receipt.answered is not None
    )
    logged = Counter({
        (event, webhook): count for event, webhook, count in await query(site.url, SUCCESSES)
    })  # fmt: skip
    allowed = Counter(pair for met in site.deaths for pair in met)
    verdict.lost += verdict.find(
        (logged - answered).total(), "successes in the log that no receiver has"
    )
    verdict.duplicated = (answered - logged).total()
    verdict.unexpected += verdict.find(
        (answered - logged - allowed).total(), "requests accepted and not logged without a kill"
    )


async def _order(site: Deployed, verdict: Verdict, webhooks: Sequence[str]) -> None:
    """Find attempts at an earlier event of a record after an attempt at a later one."""
    named = ", ".join(f"'{webhook}'" for webhook in webhooks)
    by_record: dict[tuple[str, str], list[int]] = {}
    for webhook, record, seq, _ in await query(site.url, IN_ORDER.format(webhooks=named)):
        by_record.setdefault((webhook, record), []).append(seq)
    verdict.find(
        sum(later < earlier for seqs in by_record.values() for earlier, later in pairwise(seqs)),
        "attempts out of order",
    )


async def _counted(site: Deployed, verdict: Verdict) -> None:
    """Compare the figures of the charts with the rows that they count."""
    async with site.opened() as db:
        log = figures.in_longest(await db.read(figures.of_log))
        stored = figures.in_longest(await db.read(figures.stored))
    other = {key: (log[key], stored[key]) for key in log | stored if log[key] != stored[key]}
    shown = [(key, both) for key, both in other.items() if key[3] == "count"][:3]
    verdict.find(len(other), f"figures (rows, figure) that differ: {shown}")


@ENGINES
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_chaos(engine: Engine, seed: int) -> None:
    (await run_chaos(engine, seed, SECONDS)).must_hold()


@pytest.mark.parametrize(
    ("broken", "finding"),
    [
        ("overtakes", "attempts out of order"),
        ("sends_after_recording", "successes in the log that no receiver has"),
    ],
)
async def test_broken_rules_are_found(broken: str, finding: str) -> None:
    verdict = await run_chaos("sqlite", 1, 12.0, broken)
    assert any(finding in one for one in verdict.findings), verdict
