"""The webhooks of R23, what their owners do to them, and each request that goes out."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from outbox import webhooks
from outbox.clock import SystemClock
from outbox.database.transaction import Database
from outbox.ids import Ids
from outbox.queue.upkeep import parking
from outbox.sending.guard import Guard
from outbox.sending.outcome import Outcome
from outbox.sending.request import DIRECT, Header, Via, new_secret
from outbox.sending.send import Objection, Sender
from outbox.webhooks import Draft, rotation
from outbox.webhooks.secrets import KeyRing
from tests.support.drain import RULES, Inbox, add_webhook, make, rows

CONNECTING_SECONDS = 0.15
"""The longest time from a claim to the request: requests are queued when an edit comes."""
WRITE_SECONDS = 0.02
PAUSE_SECONDS = (0.1, 1.5)

FINISHED = """
select (select count(*) from events where seq is null)
  + (select count(*) from deliveries where finished_at is null) as unfinished
"""


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
    ) -> Outcome:  # fmt: skip
        named = {name.lower(): value for name, value in headers}

        def note() -> str | None:
            why = objection()
            if why is None:
                self._starts.append(Start(self._node, url, now(), body, named))
            return why

        await asyncio.sleep(self._dice.uniform(0, CONNECTING_SECONDS))
        return await super().send(
            url, headers, body, timeout_s, fresh=fresh, objection=note, via=via
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
                await self.timed(db.write(rotation.stage, hook.id, hook.secret, self.key))
                at = now()
                await asyncio.sleep(self.dice.uniform(*PAUSE_SECONDS))
                self.acts.append(Act("stage", node, url, at, now(), hook.secret))
                await self.timed(db.write(rotation.activate, hook.id))
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
        [row] = await self.nodes[0].read(rows, FINISHED)
        return not row["unfinished"]


def now() -> float:
    """Return the time of the loop, in seconds."""
    return asyncio.get_running_loop().time()
