"""Reads the events feed, so that the demo also expects the events of its shop."""

import asyncio

from gateway.cli.demo.goods import Owner
from gateway.cli.demo.writer import Writer

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
