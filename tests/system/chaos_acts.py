"""What operators do at random: forms of the console, `carteiro erase`, kills and clock steps."""

from __future__ import annotations

import asyncio
import random
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp

from outbox.states import End
from tests.support.console import Forms, Seen, signed_in
from tests.support.deployed import Deployed
from tests.support.ledger import query
from tests.support.load import CONNECTION
from tests.support.shim import Shim
from tests.support.site import PASSWORD

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
            sys.executable, "-m", "gateway", "erase", self.email, self.dice.choice(contacts)[0],
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
            await self.site.kill()
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
