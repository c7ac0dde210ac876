"""A fair limit on concurrent work: waiting holders get places in round-robin order.

However many places one holder requests, every other waiting holder gets one place per round.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque

from outbox.errors import OutboxError

MOST_WAITING = 512


class Crowded(OutboxError):
    """The queue of a holder, or the queue of all holders, is full; try again in `seconds`."""

    seconds = 1


class Place:
    """A block that takes a place first, and leaves it at its end."""

    __slots__ = ("_holder", "_of")

    def __init__(self, of: FairSemaphore, holder: str) -> None:
        self._of = of
        self._holder = holder

    async def __aenter__(self) -> None:
        await self._of.take(self._holder)

    async def __aexit__(self, *_: object) -> None:
        self._of.leave(self._holder)


class FairSemaphore:
    """`count` places: each holder has at most `each` of them and at most `waiting` waiters."""

    def __init__(self, count: int, *, each: int, waiting: int, most: int = MOST_WAITING) -> None:
        """Let at most `most` wait in total: beyond it, the longest queue loses its last waiter."""
        self._free = count
        self._each = each
        self._waiting = waiting
        self._most = most
        self._held: Counter[str] = Counter()
        # Holders with waiters; the first one that may have another place gets the next.
        self._lines: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self.waiting = 0
        """Number of waiters."""

    def place(self, holder: str) -> Place:
        """Return a block with a place of the holder. It raises Crowded."""
        return Place(self, holder)

    def take_free(self, holder: str) -> bool:
        """Take a place if one is free for the holder; return whether it was."""
        if self._free and self._held[holder] < self._each:
            self._free -= 1
            self._held[holder] += 1
            return True
        return False

    def waits(self, holder: str) -> bool:
        """Return whether the holder has waiters."""
        return holder in self._lines

    async def take(self, holder: str) -> None:
        """Wait for a place; a cancelled waiter takes none. Raise Crowded."""
        if self.take_free(holder):
            return
        turn = self._stand_in_line(holder)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._remove(holder, turn)
            elif turn.exception() is None:
                # The place was assigned at the same moment.
                self.leave(holder)
            raise

    def leave(self, holder: str) -> None:
        """Release a place; the next holder in turn gets it."""
        self._free += 1
        self._held[holder] -= 1
        if not self._held[holder]:
            del self._held[holder]
        for name in list(self._lines):
            if self._held[name] < self._each and self._give(name):
                return

    def _give(self, holder: str) -> bool:
        """Assign a place to a holder's first waiter, then move the holder to the end."""
        while line := self._lines.get(holder):
            turn = line[0]
            self._remove(holder, turn)
            # A waiter that was just cancelled removes itself from the queue later.
            if not turn.done():
                if holder in self._lines:
                    self._lines.move_to_end(holder)
                self._free -= 1
                self._held[holder] += 1
                turn.set_result(None)
                return True
        return False

    def _stand_in_line(self, holder: str) -> asyncio.Future[None]:
        ahead = len(self._lines.get(holder, ()))
        if ahead >= self._waiting:
            raise Crowded(f"{ahead} of the same holder wait already")
        if self.waiting >= self._most:
            longest = max(self._lines, key=lambda name: len(self._lines[name]))
            if len(self._lines[longest]) <= ahead + 1:
                raise Crowded(f"{self.waiting} wait already")
            last = self._lines[longest][-1]
            self._remove(longest, last)
            if not last.done():
                last.set_exception(Crowded(f"{self.waiting} wait already"))
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lines.setdefault(holder, deque()).append(turn)
        self.waiting += 1
        return turn

    def _remove(self, holder: str, turn: asyncio.Future[None]) -> None:
        line = self._lines.get(holder)
        if line is not None and turn in line:
            line.remove(turn)
            self.waiting -= 1
            if not line:
                del self._lines[holder]
