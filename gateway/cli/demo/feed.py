"""Reads the events feed, so that the demo also expects the events of its shop."""

from gateway.cli.demo.goods import Owner
from gateway.cli.demo.writer import Writer

PAGE = 100


class Feed:
    """The feed of the demo's account; it tells the writer of events that others made."""

    def __init__(self, owner: Owner, writer: Writer) -> None:
        self._owner = owner
        self._writer = writer
        self._after = ""

    async def read(self) -> None:
        """Read what is new in the feed."""
        more = True
        while more:
            after = f"&after={self._after}" if self._after else ""
            page = await self._owner.call("GET", f"/api/events?limit={PAGE}{after}")
            self._writer.hear((entry["event"], entry["recordId"]) for entry in page["data"])
            self._after = page.get("nextCursor", self._after)
            more = page["hasMore"]
