"""The supervisor of a node's processes: starts them, restarts a dead one, asks and stops all.

One of them does the node's background work: the drain, unless the role is api, and the duties. When
it ends or does not answer, the next does it. One that answers again rests, so two work for a time:
each claims under its own name, and its lease and tokens fence it. With the role worker all of them
work. The supervisor opens neither the database nor connections of clients; it holds the sockets
that all of them listen on: a connection that a dead process had not accepted waits for the next.
"""

import asyncio
import signal
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from gateway.server.config import Config
from gateway.server.processes.channel import Gone, Handler
from gateway.server.processes.child import Child, Start, ask_all
from gateway.server.processes.readiness import node_faults
from gateway.server.processes.sums import Families, add, counted, render, together
from gateway.server.processes.work import Work, tell
from gateway.server.program import Role
from gateway.server.telemetry import logs
from outbox.clock import Clock
from outbox.durations import SECOND
from outbox.errors import CannotStart

FIRST_WAIT = 0.25
LONGEST_WAIT = 8.0
"""Seconds before a restart; each that follows soon takes twice as long."""
TURN_SECONDS = 5.0
"""The next process starts after this time, though the one before does not listen yet."""
STEADY_SECONDS = 60.0
"""After this time a process counts as started well."""
WATCH_SECONDS = 1.0
SILENT_SECONDS = 3.0
"""When the process that works has not answered for so long, another works too."""
FROZEN_SECONDS = 20.0
"""A process that has not answered for so long is killed. Requests on its connections wait for that,
and so do deliveries that it has claimed, unless its lease (30 s) ends before."""
LATE_SECONDS = 2.0
"""Time for a process beyond `shutdown_seconds`, before it is killed."""


class Supervisor:
    """Runs `config.server.processes` processes until `stopping`."""

    def __init__(
        self,
        config: Config,
        role: Role,
        memory: int,
        clock: Clock,
        stopping: asyncio.Event,
        sockets: Sequence[int] = (),
    ) -> None:
        self._config = config
        self._one_delivers = role == "all"
        self._inherited = (memory, *sockets)
        self._clock = clock
        self._stopping = stopping
        self._count = config.server.processes
        self._children: dict[int, Child] = {}
        self._work = Work(self._children, stopping, all_work=role == "worker")
        self._past: Families = {}
        self._restarts = 0
        self._started = clock.wall() / SECOND
        self._handing: set[asyncio.Task[None]] = set()
        self._up = False
        self._turn = asyncio.Lock()
        self._handlers: dict[str, Handler] = {"readiness": self._faults, "metrics": self._metrics}

    async def run(self, close: Callable[[], None] = lambda: None) -> None:
        """Keep the processes running; return when all have ended. Raise CannotStart.

        `close` closes the sockets once this node stops, so that the port refuses connections as
        soon as the last process has stopped to listen.
        """
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
            await tell(first, "greet")
            await self._stopping.wait()
        finally:
            self._stopping.set()
            close()
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
        child = Child(Start(self._config, place), self._inherited, self._past)
        handlers = self._handlers | {
            "listening": partial(self._listens, child),
            "leaving": partial(self._leaves, child),
        }
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
            if child.node_id:
                self._work.orphans.add(child.node_id)
            await self._work.hand_over()
            if self._clock.monotonic() - began >= STEADY_SECONDS:
                wait = FIRST_WAIT
            if await self._stops_within(wait):
                return
            wait = min(wait * 2, LONGEST_WAIT)
            restarted = await self._restart(child.place)
            if restarted is None:
                return
            child = restarted

    async def _restart(self, place: int) -> Child | None:
        """Start the process of a place again; None when this node stops.

        While none serves, they start one after another: the first is there in half the time.
        """
        async with self._turn:
            if self._stopping.is_set():
                return None
            self._restarts += 1
            child = await self._fork(place)
            if child is None:
                return None
            if self._stopping.is_set():
                # `_stop` has not seen it.
                child.send(signal.SIGTERM)
            child.may_start.set()
            if not self._work.ready:
                waits = [
                    asyncio.create_task(wait)
                    for wait in (child.ended(), child.listening.wait(), self._stopping.wait())
                ]
                await asyncio.wait(waits, timeout=TURN_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                for wait in waits:
                    wait.cancel()
            return child

    async def _fork(self, place: int) -> Child | None:
        """Start a process as soon as the system has room for it; None when this node stops."""
        wait = FIRST_WAIT
        while True:
            try:
                return await self._start(place)
            except OSError as error:
                logs.logger().error("process_not_started", place=place, text=str(error))
            if await self._stops_within(wait):
                return None
            wait = min(wait * 2, LONGEST_WAIT)

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
        """Replace a process whose event loop hangs: at first its work, later itself."""
        await child.listening.wait()
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            late = asyncio.get_running_loop().call_later(SILENT_SECONDS, self._silence, child)
            try:
                await self._look(child)
            except TimeoutError:
                logs.logger().error("process_frozen", place=child.place, pid=child.pid)
                child.send(signal.SIGKILL)
                return
            except Gone:
                return
            finally:
                late.cancel()
            if child.silent:
                child.silent = False
                await self._work.rest(child)
            await self._work.hand_over()

    async def _look(self, child: Child) -> None:
        """Wait for an answer of `child`. Raise Gone or TimeoutError."""
        try:
            await child.look(FROZEN_SECONDS)
        except TimeoutError:
            # This process may have stood still itself, and have the answer unread.
            await child.look()

    def _silence(self, child: Child) -> None:
        child.silent = True
        logs.logger().warning("process_silent", place=child.place, pid=child.pid, call="alive")
        task = asyncio.create_task(self._work.hand_over(), name="hand-over")
        self._handing.add(task)
        task.add_done_callback(self._handing.discard)

    async def _listens(self, child: Child, _: bytes) -> bytes:
        child.listening.set()
        logs.logger().info("process_started", place=child.place, pid=child.pid)
        await self._work.hand_over()
        return b""

    async def _leaves(self, child: Child, _: bytes) -> bytes:
        child.leaving = True
        child.works = False
        await self._work.hand_over()
        return b""

    async def _faults(self, _: bytes) -> bytes:
        """Return why this node is not ready."""
        faults = ["shutting down"]
        if not self._stopping.is_set():
            listening = [c for c in self._children.values() if c.listening.is_set()]
            faults = await node_faults(listening, self._count, one_delivers=self._one_delivers)
        return msgspec.json.encode(faults)

    async def _metrics(self, _: bytes) -> bytes:
        """Return the metrics of the node."""
        children = [child for child in self._children.values() if child.listening.is_set()]
        answers = await ask_all(children, Child.count)
        answering = sum(answer is not None for answer in answers)
        living = [child.counted for child in self._children.values()]
        families = counted(
            together(living, self._past), answering=answering, missing=self._count - answering,
            restarts=self._restarts, started=self._started,
        )  # fmt: skip
        return render(families).encode()

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
