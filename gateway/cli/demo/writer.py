"""A client that writes through the REST API, reads the feed, and records the expected events."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from gateway.cli.demo.goods import Owner
from gateway.cli.demo.server import DemoFault
from outbox.ids import Ids

FIRST = ("Ana", "Bruno", "Célia", "Davi", "Elisa", "Flávio", "Glória", "Heitor", "Inês", "João")
LAST = ("Almeida", "Barros", "Conceição", "Duarte", "Esteves", "Fonseca", "Gonçalves", "Honório")
TRADE = ("Padaria", "Livraria", "Oficina", "Farmácia", "Gráfica", "Transportes")
INDUSTRIES = ("food", "books", "logistics", "health")
POSITIONS = ("buyer", "owner", "accountant", "head of sales")


@dataclass
class Writer:
    """A writer that creates, changes and deletes contacts and companies."""

    http: aiohttp.ClientSession
    url: str
    key: str
    ids: Ids
    writes: int = 0
    expected: list[tuple[str, str]] = field(default_factory=list)
    """(event name, record id) of every acknowledged write, and of every event it heard of."""
    _known: set[tuple[str, str]] = field(default_factory=set)
    _fresh: list[tuple[str, str]] = field(default_factory=list)

    async def write(self) -> None:
        """Make one write, which emits one event. Raise DemoFault unless the response is 2xx."""
        turn = self.writes % 6
        if turn == 3:
            kind, record_id = self._take()
            await self._send("PUT", kind, record_id, self._change(kind))
        elif turn == 5:
            kind, record_id = self._take()
            await self._send("DELETE", kind, record_id, None)
        elif turn == 2:
            await self._send("POST", "companies", "", {"name": self._company(), "size": "11-50"})
        else:
            await self._send("POST", "contacts", "", self._contact())
        self.writes += 1

    def hear(self, events: Iterable[tuple[str, str]]) -> None:
        """Expect events that this or another program caused, each once."""
        fresh = [event for event in dict.fromkeys(events) if event not in self._known]
        self._known.update(fresh)
        self.expected += fresh

    async def _send(self, method: str, kind: str, record_id: str, body: Any) -> None:
        path = f"/api/{kind}/{record_id}" if record_id else f"/api/{kind}"
        request = self.http.request(
            method, self.url + path, json=body, headers={"X-API-Key": self.key}
        )
        try:
            async with request as answer:
                if answer.status >= 300:
                    text = await answer.text()
                    raise DemoFault(f"{method} {path} returned {answer.status}: {text}")
                record_id = (await answer.json())["id"]
        except aiohttp.ClientError as error:
            raise DemoFault(f"the gateway is not reachable: {error}") from error
        noun = {"contacts": "contact", "companies": "company"}[kind]
        verb = {"POST": "created", "PUT": "updated", "DELETE": "deleted"}[method]
        self.hear([(f"{noun}.{verb}", record_id)])
        if method == "POST":
            self._fresh.append((kind, record_id))

    def _take(self) -> tuple[str, str]:
        """Take a new record; each is taken once, so that no event is expected twice."""
        return self._fresh.pop(int(self.ids.dice() * len(self._fresh)))

    def _choice(self, words: tuple[str, ...]) -> str:
        return words[int(self.ids.dice() * len(words))]

    def _contact(self) -> dict[str, str]:
        first, last = self._choice(FIRST), self._choice(LAST)
        return {"name": f"{first} {last}", "email": f"cliente{self.writes}@example.com"}

    def _company(self) -> str:
        return f"{self._choice(TRADE)} {self._choice(LAST)}"

    def _change(self, kind: str) -> dict[str, str]:
        """Return a field that is not set yet: an unchanged value emits no event."""
        if kind == "contacts":
            return {"position": self._choice(POSITIONS)}
        return {"industry": self._choice(INDUSTRIES)}


PAGE = 100
PAUSE = 0.05
"""Seconds between two reads while an event is awaited."""


class Feed:
    """The feed of the demo's account; it tells the writer of events that others made."""

    def __init__(self, owner: Owner, writer: Writer) -> None:
        self._owner = owner
        self._writer = writer
        self._after = ""

    async def read(self) -> list[tuple[str, str]]:
        """Read what is new in the feed: (event name, record id) of each event."""
        new: list[tuple[str, str]] = []
        more = True
        while more:
            after = f"&after={self._after}" if self._after else ""
            page = await self._owner.call("GET", f"/api/events?limit={PAGE}{after}")
            new += [(entry["event"], entry["recordId"]) for entry in page["data"]]
            self._after = page.get("nextCursor", self._after)
            more = page["hasMore"]
        self._writer.hear(new)
        return new

    async def read_all(self) -> None:
        """Read all events committed before this call, however late the feed shows them.

        The feed is in the order of commits, so it is read up to a write of our own.
        """
        await self._writer.write()
        last = self._writer.expected[-1]
        while last not in await self.read():  # noqa: ASYNC110 - it waits for another process
            await asyncio.sleep(PAUSE)
