"""R23: a change of a webhook holds from its return on, for requests that are queued too.

After an edit has returned, its own process starts no request to the old address, and another node
none after a second. Nothing is lost, and nothing arrives twice.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from aiohttp import web

from outbox import webhooks
from outbox.clock import SystemClock
from outbox.database.transaction import Database
from outbox.ids import Ids
from outbox.queue.upkeep import parking
from outbox.sending.egress_guard import Guard
from outbox.sending.outcome import Outcome
from outbox.sending.request import DIRECT, Header, Via, new_secret, sign_body, sign_standard
from outbox.sending.send import Objection, Sender
from outbox.webhooks import Draft, secret_rotation
from outbox.webhooks.secrets import KeyRing
from outbox.worker import Worker, WorkerSettings
from outbox.worker.sends import CHANGED
from tests.support.drain import RULES, Inbox, add_webhook, inbox, make, ring, rows
from tests.support.engines import Engine
from tests.support.faults import ENGINES, shows
from tests.support.ledger import UNFINISHED, Verdict, query
from tests.support.waiting import until
from tests.system.staging import address, several

CONNECTING_SECONDS = 0.15
"""The longest time from a claim to the request: requests are queued when an edit comes."""
WRITE_SECONDS = 0.02
PAUSE_SECONDS = (0.1, 1.5)


@dataclass(frozen=True)
class Start:
    """A request whose first byte goes out now."""

    node: int
    url: str
    at: float
    body: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Act:
    """A change that has returned: what no request to `url` may do from `at` to `end`."""

    what: str
    node: int
    url: str
    at: float
    end: float = float("inf")
    secret: str = ""


class Noting(Sender):
    """A sender that takes time to connect, and notes when a request goes out."""

    def __init__(self, node: int, dice: random.Random, starts: list[Start]) -> None:
        clock = SystemClock()
        super().__init__(Guard(RULES, clock), clock)
        self._node, self._dice, self._starts = node, dice, starts

    async def send(
        self, url: str, headers: Sequence[Header], body: bytes, timeout_s: float, *,
        fresh: bool = False, objection: Objection = lambda: None, via: Via = DIRECT,
        method: str = "POST",
    ) -> Outcome:  # fmt: skip
        named = {name.lower(): value for name, value in headers}

        def note() -> str | None:
            why = objection()
            if why is None:
                self._starts.append(Start(self._node, url, now(), body, named))
            return why

        await asyncio.sleep(self._dice.uniform(0, CONNECTING_SECONDS))
        return await super().send(
            url, headers, body, timeout_s, fresh=fresh, objection=note, via=via, method=method
        )


class Deaf:
    """A database whose worker does not hear of changed webhooks: the negative control."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def on_change(self, callback: object) -> Callable[[], None]:
        return lambda: None


@dataclass
class Hook:
    """A webhook: its id, its place in the paths of the receiver, and the number of its URL."""

    id: str
    place: int
    secret: str
    number: int = 0


@dataclass
class Town:
    """The webhooks, what their owners did, and what went out."""

    address: str
    nodes: list[Database]
    key: KeyRing
    box: Inbox
    dice: random.Random
    starts: list[Start] = field(default_factory=list)
    acts: list[Act] = field(default_factory=list)
    hooks: list[Hook] = field(default_factory=list)
    places: dict[str, str] = field(default_factory=dict)
    """The webhook of each place."""
    deleted: set[str] = field(default_factory=set)
    milliseconds: list[float] = field(default_factory=list)
    written: int = 0

    async def add(self) -> None:
        place = len(self.places)
        webhook_id, secret = await add_webhook(self.nodes[0], self.key, f"{self.box.url}/{place}/0")
        self.places[str(place)] = webhook_id
        self.hooks.append(Hook(webhook_id, place, secret))

    def url(self, hook: Hook) -> str:
        return f"{self.box.url}/{hook.place}/{hook.number}"

    async def act(self, what: str) -> None:
        """Do one thing to a random webhook, through a random node."""
        hook = self.dice.choice(self.hooks)
        node = self.dice.randrange(len(self.nodes))
        db, url = self.nodes[node], self.url(hook)
        match what:
            case "edit":
                hook.number += 1
                await self.timed(self._edit(db, hook))
                self.acts.append(Act(what, node, url, now()))
            case "pause":
                await self.timed(db.write(parking.pause, hook.id))
                at = now()
                await asyncio.sleep(self.dice.uniform(*PAUSE_SECONDS))
                self.acts.append(Act(what, node, url, at, now()))
                await parking.activate(db, hook.id, "all")
            case "delete":
                self.hooks.remove(hook)
                self.deleted.add(hook.id)
                await self.timed(parking.remove(db, hook.id))
                self.acts.append(Act(what, node, url, now()))
                await self.add()
            case "rotate":
                hook.secret = new_secret(Ids().token(32))
                await self.timed(db.write(secret_rotation.stage, hook.id, hook.secret, self.key))
                at = now()
                await asyncio.sleep(self.dice.uniform(*PAUSE_SECONDS))
                self.acts.append(Act("stage", node, url, at, now(), hook.secret))
                await self.timed(db.write(secret_rotation.activate, hook.id))
                at = now()
                await asyncio.sleep(self.dice.uniform(*PAUSE_SECONDS))
                self.acts.append(Act("activate", node, url, at, now(), hook.secret))

    async def timed(self, work: Awaitable[object]) -> None:
        began = now()
        await work
        self.milliseconds.append((now() - began) * 1000)

    async def _edit(self, db: Database, hook: Hook) -> None:
        webhook = await db.read(webhooks.one, hook.id)
        assert webhook is not None
        draft = Draft(self.url(hook), webhook.events)
        assert await db.write(webhooks.change, hook.id, webhook.version, draft, self.key)

    async def write_on(self, end: asyncio.Event) -> None:
        """Write events until the end."""
        while not end.is_set():
            await self.nodes[0].write(make, f"record-{self.written}")
            self.written += 1
            await asyncio.sleep(self.dice.uniform(0, 2 * WRITE_SECONDS))

    async def done(self) -> bool:
        [(unfinished,)] = await query(self.address, UNFINISHED)
        return not unfinished


def now() -> float:
    """Return the time of the loop, in seconds."""
    return asyncio.get_running_loop().time()


WHAT = ("edit", "edit", "pause", "rotate", "delete")
WEBHOOKS = 8
ANSWER_SECONDS = 0.02
BETWEEN_SECONDS = 0.05
OTHER_NODE_SECONDS = 1.0
DRAIN_SECONDS = 60.0
SAME_NODE = "requests of the same node"

DELIVERIES = "select event_id, webhook_id, state from deliveries"
WITHDRAWN = "select count(*) as count from attempts where error = $1"


async def run_edits(engine: Engine, seed: int, *, acts: int, deaf: bool = False) -> Verdict:
    """Do `acts` changes under load, on two nodes where the engine has them; judge every request.

    With `deaf`, workers hear of no change: the negative control.
    """
    dice = random.Random(seed)
    async with address(engine) as url, several(url, 1 + (engine == "postgres")) as nodes:
        async with inbox() as box:

            async def slowly(request: web.Request) -> web.StreamResponse:
                await asyncio.sleep(ANSWER_SECONDS)
                return web.Response()

            box.answer = slowly
            town = Town(url, nodes, ring(), box, dice)
            for _ in range(WEBHOOKS):
                await town.add()
            async with _workers(town, deaf=deaf):
                end = asyncio.Event()
                async with asyncio.TaskGroup() as group:
                    group.create_task(town.write_on(end))
                    for number in range(acts):
                        await asyncio.sleep(dice.uniform(0, BETWEEN_SECONDS))
                        await town.act(WHAT[number % len(WHAT)])
                    end.set()
                await until(town.done, DRAIN_SECONDS)
            return await _judged(town, engine, seed)


@asynccontextmanager
async def _workers(town: Town, *, deaf: bool) -> AsyncIterator[None]:
    running = []
    for number, db in enumerate(town.nodes):
        sender = Noting(number, town.dice, town.starts)
        heard = cast(Database, Deaf(db)) if deaf else db
        worker = Worker(
            heard, town.key, sender, clock=SystemClock(), ids=Ids(),
            settings=WorkerSettings(timeout=5.0),
        )  # fmt: skip
        running.append((worker, sender, asyncio.create_task(worker.run())))
    try:
        yield
    finally:
        for worker, sender, task in running:
            await worker.drain(1.0)
            await sender.close()
            task.cancel()
        await asyncio.gather(*(task for _, _, task in running), return_exceptions=True)


async def _judged(town: Town, engine: Engine, seed: int) -> Verdict:
    verdict = Verdict(f"R23 changes of webhooks, {engine}", seed, acks=town.written)
    made = {
        (row["event_id"], row["webhook_id"]): row["state"]
        for row in await town.nodes[0].read(rows, DELIVERIES)
    }
    [row] = await town.nodes[0].read(rows, "select count(*) as count from events")
    verdict.rows, verdict.deliveries = int(row["count"]), len(made)
    came = Counter(
        (got.headers["X-Webhook-Id"], town.places[got.path.split("/")[1]]) for got in town.box.got
    )
    alive = {pair for pair in made if pair[1] not in town.deleted}
    undelivered = sum(made[pair] != "delivered" for pair in alive)
    verdict.lost += verdict.find(undelivered, "deliveries of a living webhook not delivered")
    verdict.lost += verdict.find(len(alive - set(came)), "deliveries that did not arrive")
    verdict.lost += verdict.find(town.written - verdict.rows, "writes without their event")
    verdict.unexpected += verdict.find(len(set(came) - set(made)), "arrivals without a delivery")
    verdict.duplicated = sum(count - 1 for count in came.values())
    verdict.find(verdict.duplicated, "requests that arrived twice without a crash")
    late = _late(town, verdict)
    [row] = await town.nodes[0].read(rows, WITHDRAWN, CHANGED)
    verdict.find(not row["count"], "no change met a queued request")
    verdict.times(town.milliseconds)
    verdict.figures |= {
        "nodes": len(town.nodes), "changes": dict(Counter(act.what for act in town.acts)),
        "withdrawn": int(row["count"]), "other_node_late_ms": round(late * 1000, 1),
    }  # fmt: skip
    return verdict


def _late(town: Town, verdict: Verdict) -> float:
    """Find requests that a change should have stopped; return the longest delay of another node."""
    found: Counter[str] = Counter()
    longest = 0.0
    by_url: dict[str, list[Start]] = {}
    for start in town.starts:
        by_url.setdefault(start.url, []).append(start)
    for act in town.acts:
        for start in by_url.get(act.url, ()):
            if not act.at < start.at < act.end or _follows(act, start):
                continue
            late = start.at - act.at
            if start.node == act.node:
                found[f"{SAME_NODE} after {act.what}"] += 1
            elif late > OTHER_NODE_SECONDS:
                found[f"requests of another node a second after {act.what}"] += 1
            longest = max(longest, late if start.node != act.node else 0.0)
    for what, count in found.items():
        verdict.find(count, what)
    return longest


def _follows(act: Act, start: Start) -> bool:
    """Return whether a request is what the change asks for."""
    headers = start.headers
    if act.what == "stage":
        moment = int(headers["webhook-timestamp"])
        wanted = sign_standard((act.secret,), headers["webhook-id"], moment, start.body)
        return wanted in headers["webhook-signature"].split()
    if act.what == "activate":
        return headers["x-webhook-signature"] == sign_body(act.secret, start.body)
    return False


@ENGINES
async def test_no_request_of_the_old_settings_starts_after_a_change(engine: Engine) -> None:
    (await run_edits(engine, seed=1, acts=100)).must_hold()


@ENGINES
async def test_workers_that_hear_of_no_change_are_found(engine: Engine) -> None:
    async def deaf(seed: int) -> dict[str, bool]:
        verdict = await run_edits(engine, seed, acts=10, deaf=True)
        return {"late": any(SAME_NODE in finding for finding in verdict.findings)}

    assert await shows(deaf, 3, "late")
