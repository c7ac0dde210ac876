"""Writes spread over several nodes, with the time of each response."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp

from tests.support.load import Load


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
class Spread(Load):
    """A load on several nodes at once; a node in `resting` gets no writes."""

    answers: list[Answer] = field(default_factory=list)
    acked_at: dict[str, float] = field(default_factory=dict)
    """By request id, the time of the 2xx."""
    resting: set[str] = field(default_factory=set)

    @asynccontextmanager
    async def writing_to(self, addresses: Sequence[str], *, rate: float) -> AsyncIterator[None]:
        """Write `rate` per second over the nodes while the block runs; ends as `writing`."""
        tasks = [
            asyncio.create_task(self._pace(address, rate / len(addresses))) for address in addresses
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _pace(self, address: str, rate: float) -> None:
        writes: set[asyncio.Task[None]] = set()
        due = time.monotonic()
        connector = aiohttp.TCPConnector(limit=0)
        http = aiohttp.ClientSession(address, connector=connector)
        try:
            while True:
                due += 1 / rate
                await asyncio.sleep(max(due - time.monotonic(), 0.0))
                if address in self.resting:
                    continue
                task = asyncio.create_task(self.answered(http, address))
                writes.add(task)
                task.add_done_callback(writes.discard)
        finally:
            await asyncio.gather(*writes)
            await http.close()

    def owner(self) -> str:
        """Rotate the owners: two writes of one owner may wait for each other's COMMIT."""
        return self._owners[self.count % len(self._owners)]

    async def answered(self, http: aiohttp.ClientSession, address: str) -> None:
        """Send one write; record the time of its response."""
        began = time.monotonic()
        request_id = await self.write(http)
        now = time.monotonic()
        self.answers.append(Answer(request_id, address, began, now))
        if request_id in self.acked:
            self.acked_at[request_id] = now
