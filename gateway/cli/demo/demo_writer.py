"""A client that writes through the REST API, reads the feed, and records the expected events."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from gateway.cli.demo.demo_gateway import DemoFault
from gateway.cli.demo.demo_goods import Owner
from outbox.ids import Ids

FIRST = ("Ana", "Bruno", "Célia", "Davi", "Elisa", "Flávio", "Glória", "Heitor", "Inês", "João")
LAST = ("Almeida", "Barros", "Conceição", "Duarte", "Esteves", "Fonseca", "Gonçalves", "Honório")
TRADE = ("Padaria", "Livraria", "Oficina", "Farmácia", "Gráfica", "Transportes")
INDUSTRIES = ("food", "books", "logistics", "health")
POSITIONS = ("buyer", "owner", "accountant", "head of sales")


REPEAT = 0.25
"""Seconds before a write is repeated."""
ANSWER = aiohttp.ClientTimeout(total=20)
PASSING = frozenset({409, 429, 502, 503, 504})
"""What a repeat may not get: the gateway was busy, or the write of the same key was under way."""


class Refused(DemoFault):
    """An answer that is not 2xx."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


@dataclass
class Writer:
    """A writer that creates, changes and deletes contacts and companies."""

    http: aiohttp.ClientSession
    url: str
    key: str
    ids: Ids
    patient: bool = False
    """Whether it repeats a write until it is acknowledged, because the gateway may be down."""
    writes: int = 0
    repeated: int = 0
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
            name = f"{self._choice(TRADE)} {self._choice(LAST)}"
            await self._send("POST", "companies", "", {"name": name, "size": "11-50"})
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
        headers = {"X-API-Key": self.key}
        if method == "POST":
            # A repeat of a write that was made gets its answer, and makes no second record.
            headers["Idempotency-Key"] = self.ids.token(12).hex()
        repeats = 0
        while True:
            try:
                record_id = await self._answer(method, path, body, headers)
                break
            except Refused as fault:
                # The delete before it was made, and its answer was lost.
                if method == "DELETE" and fault.status == 404 and repeats:
                    break
                if not (self.patient and fault.status in PASSING):
                    raise
            except DemoFault:
                if not self.patient:
                    raise
            repeats += 1
            self.repeated += 1
            await asyncio.sleep(REPEAT)
        noun = {"contacts": "contact", "companies": "company"}[kind]
        verb = {"POST": "created", "PUT": "updated", "DELETE": "deleted"}[method]
        self.hear([(f"{noun}.{verb}", record_id)])
        if method == "POST":
            self._fresh.append((kind, record_id))

    async def _answer(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> str:
        """Send one request; return the id of its record. Raise DemoFault."""
        request = self.http.request(
            method, self.url + path, json=body, headers=headers, timeout=ANSWER
        )
        try:
            async with request as answer:
                if answer.status >= 300:
                    text = await answer.text()
                    raise Refused(
                        f"{method} {path} returned {answer.status}: {text}", answer.status
                    )
                record_id: str = (await answer.json())["id"]
                return record_id
        except (aiohttp.ClientError, TimeoutError) as error:
            raise DemoFault(f"the gateway is not reachable: {error}") from error

    def _take(self) -> tuple[str, str]:
        """Take a new record; each is taken once, so that no event is expected twice."""
        return self._fresh.pop(int(self.ids.dice() * len(self._fresh)))

    def _choice(self, words: tuple[str, ...]) -> str:
        return words[int(self.ids.dice() * len(words))]

    def _contact(self) -> dict[str, str]:
        first, last = self._choice(FIRST), self._choice(LAST)
        return {"name": f"{first} {last}", "email": f"cliente{self.writes}@example.com"}

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
        self.owner = owner
        self._writer = writer
        self._after = ""

    async def read(self) -> list[tuple[str, str]]:
        """Read what is new in the feed: (event name, record id) of each event."""
        new: list[tuple[str, str]] = []
        more = True
        while more:
            after = f"&after={self._after}" if self._after else ""
            page = await self.owner.call("GET", f"/api/events?limit={PAGE}{after}")
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
