"""The supervisor of a node's processes: starts them, restarts a dead one, asks and stops all.

One of them does the node's background work: the drain, unless the role is api, and the duties. When
it ends, the next does it. With the role worker all of them do. The supervisor itself opens neither
the database nor connections of clients.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

import msgspec

from gateway.server.config import Config
from gateway.server.processes.channel import Gone, Handler
from gateway.server.processes.child import Child, Start
from gateway.server.processes.sums import Families, add, counted, render, together
from gateway.server.program import Role
from gateway.server.telemetry import logs
from outbox.clock import Clock
from outbox.errors import CannotStart

T = TypeVar("T")

FIRST_WAIT = 0.25
LONGEST_WAIT = 8.0
"""Seconds before a restart; each that follows soon takes twice as long."""
STEADY_SECONDS = 60.0
"""After this time a process counts as started well."""
WATCH_SECONDS = 5.0
FROZEN_SECONDS = 60.0
"""A process that has not answered for so long is killed."""
LATE_SECONDS = 2.0
"""Time for a process beyond `shutdown_seconds`, before it is killed."""


class Supervisor:
    """Runs `config.server.processes` processes until `stopping`."""

    def __init__(
        self, config: Config, role: Role, memory: int, clock: Clock, stopping: asyncio.Event
    ) -> None:
        self._config = config
        self._all_work = role == "worker"
        self._memory = memory
        self._clock = clock
        self._stopping = stopping
        self._count = config.server.processes
        self._children: dict[int, Child] = {}
        self._past: Families = {}
        self._up = False
        self._handlers: dict[str, Handler] = {"readiness": self._faults, "metrics": self._metrics}

    async def run(self) -> None:
        """Keep the processes running; return when all have ended. Raise CannotStart."""
        keepers: list[asyncio.Task[None]] = []
        try:
            for place in range(self._count):
                child = await self._start(place)
                keepers.append(asyncio.create_task(self._keep(child), name=f"process-{place}"))
            # All load the program at once, but the first one alone brings the schema up to date.
            first, *others = self._children.values()
            for children in ([first], others):
                for child in children:
                    child.may_start.set()
                for child in children:
                    await self._first_start(child, keepers)
                if self._stopping.is_set():
                    return
            self._up = True
            await self._tell(first, "greet")
            await self._stopping.wait()
        finally:
            self._stopping.set()
            await self._stop(keepers)

    def kill(self) -> None:
        """End all processes at once."""
        for child in self._children.values():
            child.send(signal.SIGKILL)

    async def _first_start(self, child: Child, keepers: list[asyncio.Task[None]]) -> None:
        """Wait until `child` listens. Raise CannotStart when one of the processes has ended."""
        waits = {asyncio.create_task(event.wait()) for event in (child.listening, self._stopping)}
        await asyncio.wait({*waits, *keepers}, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        for keeper in keepers:
            if keeper.done():
                await keeper

    async def _start(self, place: int) -> Child:
        child = Child(Start(self._config, place), self._memory)
        handlers = self._handlers | {
            "listening": partial(self._listens, child), "leaving": partial(self._leaves, child)
        }  # fmt: skip
        await child.start(handlers)
        self._children[place] = child
        return child

    async def _keep(self, child: Child) -> None:
        """Restart the process of a place whenever it ends, until this node stops."""
        wait = FIRST_WAIT
        while True:
            began = self._clock.monotonic()
            watch = asyncio.create_task(self._watch(child), name="process-watch")
            status = await child.ended()
            watch.cancel()
            self._bury(child)
            if self._stopping.is_set():
                return
            if not self._up:
                raise CannotStart(
                    child.fault or f"a process ended at its start with status {status}"
                )
            logs.logger().error(
                "process_ended", place=child.place, pid=child.pid, status=status, text=child.fault
            )
            await self._hand_over()
            await self._take_over(child)
            if self._clock.monotonic() - began >= STEADY_SECONDS:
                wait = FIRST_WAIT
            if await self._stops_within(wait):
                return
            wait = min(wait * 2, LONGEST_WAIT)
            child = await self._start(child.place)
            child.may_start.set()

    async def _stops_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return await self._stopping.wait()
        except TimeoutError:
            return False

    def _bury(self, child: Child) -> None:
        if self._children.get(child.place) is child:
            del self._children[child.place]
        add(self._past, child.counted, gauges=False)

    async def _watch(self, child: Child) -> None:
        """Kill a process whose event loop stands still."""
        await child.listening.wait()
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            try:
                await child.look(FROZEN_SECONDS)
                await self._hand_over()
            except TimeoutError:
                logs.logger().error("process_frozen", place=child.place, pid=child.pid)
                child.send(signal.SIGKILL)
            except Gone:
                return

    async def _listens(self, child: Child, _: bytes) -> bytes:
        child.listening.set()
        logs.logger().info("process_started", place=child.place, pid=child.pid)
        await self._hand_over()
        return b""

    async def _leaves(self, child: Child, _: bytes) -> bytes:
        child.leaving = True
        child.works = False
        await self._hand_over()
        return b""

    async def _hand_over(self) -> None:
        """Give the background work to a process that is ready, if none does it."""
        if self._stopping.is_set():
            return
        ready = [child for child in self._children.values() if child.ready]
        if not self._all_work and any(child.works for child in ready):
            return
        for child in ready:
            if child.works:
                continue
            child.works = True
            try:
                await child.ask("work")
                await child.look()
            except (Gone, TimeoutError):
                # Its end is noticed apart, and hands the work over again.
                child.works = False
                continue
            logs.logger().info("process_works", place=child.place, pid=child.pid)
            if not self._all_work:
                return

    async def _take_over(self, dead: Child) -> None:
        """Let a living process take the deliveries of `dead`; without it, they wait for a lease."""
        living = next((child for child in self._children.values() if child.works), None)
        if living is not None and dead.node_id:
            await self._tell(living, "take_over", dead.node_id.encode())

    async def _tell(self, child: Child, name: str, body: bytes = b"") -> None:
        try:
            await child.ask(name, body)
        except (Gone, TimeoutError):
            logs.logger().warning("process_silent", place=child.place, call=name)

    async def _faults(self, _: bytes) -> bytes:
        """Return why this node is not ready, by all of its processes."""
        faults: list[str] = []
        ready = [child for child in self._children.values() if child.listening.is_set()]
        if len(ready) < self._count:
            faults.append(f"{self._count - len(ready)} of {self._count} processes do not run")
        answers = await _all(ready, lambda child: child.ask("readiness"))
        for child, answer in zip(ready, answers, strict=True):
            if answer is None:
                faults.append(f"process {child.place + 1} does not respond")
            else:
                faults += msgspec.json.decode(answer, type=list[str])
        return msgspec.json.encode(list(dict.fromkeys(faults)))

    async def _metrics(self, _: bytes) -> bytes:
        """Return the metrics of the node."""
        children = [child for child in self._children.values() if child.listening.is_set()]
        answers = await _all(children, Child.count)
        answering = sum(answer is not None for answer in answers)
        living = [child.counted for child in self._children.values()]
        found = counted(together(living, self._past), answering, self._count)
        return render(found).encode()

    async def _stop(self, keepers: list[asyncio.Task[None]]) -> None:
        for child in self._children.values():
            child.send(signal.SIGTERM)
        if not keepers:
            return
        _, late = await asyncio.wait(
            keepers, timeout=self._config.server.shutdown_seconds + LATE_SECONDS
        )
        if late:
            logs.logger().error("processes_killed", count=len(late))
            self.kill()
        await asyncio.gather(*keepers, return_exceptions=True)


async def _all(children: list[Child], ask: Callable[[Child], Awaitable[T]]) -> list[T | None]:
    """Ask all at once; None stands for one that did not answer."""

    async def one(child: Child) -> T | None:
        try:
            return await ask(child)
        except (Gone, TimeoutError):
            return None

    return list(await asyncio.gather(*map(one, children)))
