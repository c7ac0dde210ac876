"""Runs the demo while somebody breaks it: writes, restarts the gateway, judges what is missing."""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import aiohttp

from gateway.cli.demo.breaking.acts import ACTS, Act, Scene
from gateway.cli.demo.breaking.ledger import Entry, Ledger
from gateway.cli.demo.demo_gateway import DemoFault
from gateway.cli.demo.demo_writer import Feed
from gateway.cli.demo.judgement import Judge
from gateway.cli.demo.table import Missing
from outbox.clock import sleep_until_set

PAUSE = 0.2
TICK = 1.0
PATIENCE = 90.0
"""Seconds after which what has not arrived no longer delays the end of an act."""
WRITE_SECONDS = 10.0
SURE = 3
"""Times in a row that the gateway must say that a delivery is lost: it may be on its way."""


@dataclass
class Show:
    """The running demo; `stop` ends its tasks."""

    scene: Scene
    ledger: Ledger
    feed: Feed
    judge: Judge
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Ends the writes, and a fault that lasts."""
    up: bool = True
    """Whether the gateway was ready at the last look."""
    _busy: asyncio.Lock = field(default_factory=asyncio.Lock)
    _doubts: dict[Missing, int] = field(default_factory=dict)
    _writing: asyncio.Task[None] | None = None
    _watching: list[asyncio.Task[None]] = field(default_factory=list)

    def start(self) -> None:
        """Start to write, to look, and to restart the gateway when it ends."""
        self._writing = asyncio.create_task(self._write())
        self._watching = [asyncio.create_task(work) for work in (self._look(), self._supervise())]

    async def end_writes(self) -> None:
        """End the writes, after the one under way if the gateway answers it soon."""
        self.stopping.set()
        if self._writing is not None:
            await asyncio.wait([self._writing], timeout=WRITE_SECONDS)
            self._writing.cancel()

    async def stop(self) -> None:
        """End the tasks; the gateway stays as it is. Raise what ended one of them."""
        await self.end_writes()
        for task in self._watching:
            task.cancel()
        ended = [self._writing] if self._writing is not None else []
        for task in (*ended, *self._watching):
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def failed(self) -> bool:
        """Return whether a task has ended with a fault."""
        started = [self._writing] if self._writing is not None else []
        return any(
            task.done() and not task.cancelled() and task.exception()
            for task in (*started, *self._watching)
        )

    @property
    def busy(self) -> bool:
        """Whether an act is under way, until all has arrived again."""
        return self._busy.locked()

    async def perform(self, act: Act) -> Entry:
        """Make a fault, end it, and wait until the demo has recovered. One act at a time."""
        async with self._busy:
            entry = Entry(act.name, self.ledger.clock.monotonic())
            self.ledger.entries.append(entry)
            try:
                async with act.hold(self.scene):
                    await sleep_until_set(self.stopping, act.seconds)
                entry.ended = self.ledger.clock.monotonic()
                async with asyncio.timeout(PATIENCE):
                    await self._recovered(set(self.ledger.missing()))
            except (TimeoutError, OSError, DemoFault):
                # The fault could not be made, or the demo does not recover.
                entry.failed = True
                entry.ended = entry.ended or self.ledger.clock.monotonic()
            entry.over = self.ledger.clock.monotonic()
            return entry

    async def arrived(self) -> None:
        """Wait until nothing is missing but what is lost or kept back."""
        while set(self.ledger.missing()) - {*self.ledger.lost, *self.ledger.kept_back}:
            await self._changed()

    async def judge_missing(self) -> None:
        """Ask the gateway what became of all that is missing. Raise DemoFault."""
        judgement = await self.judge.judge(self.ledger.missing())
        missing = set(self.ledger.missing())
        lost = [one for one in judgement.lost if one in missing]
        self._doubts = {one: self._doubts.get(one, 0) + 1 for one in lost}
        self.ledger.lost = [one for one, times in self._doubts.items() if times >= SURE]
        self.ledger.kept_back = [one for one in judgement.kept_back if one in missing]

    async def _recovered(self, due: set[Missing]) -> None:
        # A killed gateway may not have been seen as down yet.
        while not await self._ready() or due & set(self.ledger.missing()):
            await self._changed()
            due -= {*self.ledger.lost, *self.ledger.kept_back}

    async def _changed(self) -> None:
        receiver = self.scene.receiver
        receiver.changed.clear()
        await sleep_until_set(receiver.changed, PAUSE)

    async def _write(self) -> None:
        while not self.stopping.is_set():
            await self.ledger.writer.write()
            await sleep_until_set(self.stopping, PAUSE)

    async def _look(self) -> None:
        """Look each second whether the gateway is ready, what is new, and what is missing."""
        while True:
            await asyncio.sleep(TICK)
            self.up = await self._ready()
            if self.up:
                # It may go down meanwhile: the next look tells.
                with contextlib.suppress(DemoFault):
                    await self.feed.read()
                    if not self.ledger.in_fault:
                        await self.judge_missing()
            self.ledger.tick()

    async def _supervise(self) -> None:
        while True:
            await self.scene.gateway.ended()
            self.up = False
            with contextlib.suppress(DemoFault):
                await self.scene.gateway.start()

    async def _ready(self) -> bool:
        try:
            timeout = aiohttp.ClientTimeout(total=2)
            async with self.ledger.writer.http.get(
                f"{self.scene.gateway.url}/readyz", timeout=timeout
            ) as answer:
                return answer.status == 200
        except (aiohttp.ClientError, TimeoutError):
            return False


def possible() -> Sequence[Act]:
    """Return the acts that this system allows."""
    return [act for act in ACTS if act.possible]
