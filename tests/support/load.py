"""Clients of the REST API that write at a steady rate and record the responses."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp

from tests.support.tenants import Tenants

PATIENCE = 30.0
UNKNOWN = "outcome_unknown"
CONNECTION = (aiohttp.ClientError, TimeoutError, OSError)


@dataclass(slots=True)
class Refused:
    """A response other than 2xx."""

    status: int
    code: str
    retry_after: str | None
    seconds: float

    @property
    def unavailable(self) -> bool:
        """Whether it is a 503 as the API documents it: with one of two codes and Retry-After."""
        known = self.code in ("unavailable", UNKNOWN)
        return self.status == 503 and known and self.retry_after is not None


@dataclass(frozen=True, slots=True)
class Answer:
    """When a write was sent, to which node, and when its response or disconnection came."""

    request_id: str
    address: str
    began: float
    ended: float

    @property
    def seconds(self) -> float:
        return self.ended - self.began


@dataclass
class Load:
    """Writes of many owners. Each has its own request id, which its event repeats."""

    tenants: Tenants
    seed: int
    acked: dict[str, str] = field(default_factory=dict)
    """Record id by request id: writes with a 2xx response."""
    acked_at: dict[str, float] = field(default_factory=dict)
    """By request id, the time of the 2xx."""
    refused: dict[str, Refused] = field(default_factory=dict)
    """By request id: writes with another response."""
    broken: dict[str, str] = field(default_factory=dict)
    """By request id: writes without a response, and how the connection ended."""
    open: dict[str, float] = field(default_factory=dict)
    """By request id, the time of sending: writes that still wait for a response."""
    answers: list[Answer] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)
    resting: set[str] = field(default_factory=set)
    """The addresses of nodes that get no writes."""

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)
        self.count = 0
        self._owners = list(self.tenants.keys)
        self._sent = asyncio.Event()

    @property
    def sent(self) -> set[str]:
        return {*self.acked, *self.refused, *self.broken, *self.open}

    @property
    def wrong(self) -> list[Refused]:
        """The refusals that are no 503 as the API documents it."""
        return [refused for refused in self.refused.values() if not refused.unavailable]

    @asynccontextmanager
    async def writing(
        self, *addresses: str, rate: float = 50.0, notes: int = 0
    ) -> AsyncIterator[None]:
        """Write `rate` per second over the nodes while the block runs.

        At its end every write has its response or has lost its connection.
        """
        task = asyncio.create_task(self._run(addresses, rate, notes))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def until_sent(self, count: int, seconds: float = PATIENCE) -> None:
        """Wait until write number `count` is sent."""
        async with asyncio.timeout(seconds):
            while self.count < count:
                self._sent.clear()
                await self._sent.wait()

    async def _run(self, addresses: Sequence[str], rate: float, notes: int) -> None:
        began = time.monotonic()
        writes: set[asyncio.Task[str]] = set()
        http = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        try:
            for turn in itertools.count():
                # An open loop: slow responses do not slow down later writes.
                await asyncio.sleep(max(began + turn / rate - time.monotonic(), 0.0))
                address = addresses[turn % len(addresses)]
                if address in self.resting:
                    continue
                task = asyncio.create_task(self.write(http, address, notes))
                writes.add(task)
                task.add_done_callback(writes.discard)
        finally:
            await asyncio.gather(*writes)
            await http.close()

    def owner(self) -> str:
        """Return the next writer, in turns: two writes of one may wait for each other's COMMIT."""
        return self._owners[self.count % len(self._owners)]

    async def write(self, http: aiohttp.ClientSession, address: str, notes: int = 0) -> str:
        """Send one POST; return its request id, whatever the result."""
        self.count += 1
        request_id = f"r{self.seed}-{self.count}"
        body = {"name": request_id} | ({"notes": "x" * notes} if notes else {})
        headers = {
            "X-API-Key": self.tenants.keys[self.owner()],
            "X-Request-Id": request_id,
            "Content-Type": "application/json",
        }
        began = self.open[request_id] = time.monotonic()
        self._sent.set()
        try:
            async with http.post(
                f"{address}/api/contacts", data=json.dumps(body), headers=headers,
                timeout=aiohttp.ClientTimeout(PATIENCE),
            ) as answer:  # fmt: skip
                text = await answer.read()
            now = time.monotonic()
            if answer.status == 201:
                self.acked[request_id], self.acked_at[request_id] = json.loads(text)["id"], now
                self.milliseconds.append((now - began) * 1000)
            else:
                self.refused[request_id] = Refused(
                    answer.status, _code(text), answer.headers.get("Retry-After"), now - began
                )
        except CONNECTION as error:
            self.broken[request_id] = type(error).__name__
        finally:
            del self.open[request_id]
            self.answers.append(Answer(request_id, address, began, time.monotonic()))
            self._sent.set()
        return request_id


def _code(text: bytes) -> str:
    try:
        return str(json.loads(text)["code"])
    except (ValueError, KeyError, TypeError):
        return "not an error body"
