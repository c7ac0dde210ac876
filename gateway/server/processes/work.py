"""Who of a node's processes does the background work and takes over from a dead one."""

import asyncio
from collections.abc import Mapping

from gateway.server.processes.channel import Gone
from gateway.server.processes.child import Child
from gateway.server.telemetry import logs


class Work:
    """The background work: one process does it, with `all_work` all of them."""

    def __init__(
        self, children: Mapping[int, Child], stopping: asyncio.Event, *, all_work: bool
    ) -> None:
        self._children = children
        self._stopping = stopping
        self._all_work = all_work
        self.orphans: set[str] = set()
        """The names of dead processes whose deliveries nobody has taken over yet."""

    async def hand_over(self) -> None:
        """Give the background work to a process that is ready, if none does it, and the orphans."""
        if self._stopping.is_set():
            return
        await self._give_work()
        await self._take_over()

    @property
    def ready(self) -> list[Child]:
        """The processes that answer requests."""
        return [child for child in self._children.values() if child.ready]

    async def _give_work(self) -> None:
        ready = [child for child in self.ready if not child.silent]
        if not self._all_work and any(child.works for child in ready):
            return
        for child in ready:
            if child.works:
                continue
            child.works = True
            try:
                await child.ask("work")
                await child.look()
            except Gone:
                # Its end is noticed apart, and hands the work over again.
                child.works = False
                continue
            except TimeoutError:
                # It may have read the call: once it answers again, it is told to rest.
                child.works = False
                child.silent = True
                continue
            logs.logger().info("process_works", place=child.place, pid=child.pid)
            if not self._all_work:
                return

    async def _take_over(self) -> None:
        """Let a process that works take the deliveries of the dead ones; else they wait for it."""
        for node_id in tuple(self.orphans):
            living = next((c for c in self.ready if c.works and not c.silent), None)
            if living is None or not await tell(living, "take_over", node_id.encode()):
                return
            self.orphans.discard(node_id)

    async def rest(self, child: Child) -> None:
        """Let `child`, which answers again, rest if another works.

        Also one that is not known to work: it may have read a call whose answer came too late.
        """
        if self._all_work:
            return
        if any(other.works and not other.silent for other in self.ready if other is not child):
            child.works = False
            logs.logger().info("process_rests", place=child.place, pid=child.pid)
            await tell(child, "rest")


async def tell(child: Child, name: str, body: bytes = b"") -> bool:
    """Return whether `child` did as it was told."""
    try:
        await child.ask(name, body)
    except (Gone, TimeoutError):
        logs.logger().warning("process_silent", place=child.place, pid=child.pid, call=name)
        return False
    return True
