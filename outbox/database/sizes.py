"""Join rows of any size to batches of about a megabyte."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

Rows = Sequence[Sequence[Any]]

MOST_ROWS = 4_096
BATCH_BYTES = 2**20
STREAMED_BYTES = 2**18
"""The size of the batches of a stream, of which several run at the same time."""
MOST_AT_ONCE = 128
"""Rows of a megabyte may follow small ones, and so many of them must fit into the memory."""


class Batches:
    """Reads the rows of `fetch`, which gets the number of rows to return next."""

    def __init__(
        self, fetch: Callable[[int], Awaitable[Rows]], batch_bytes: int = BATCH_BYTES
    ) -> None:
        self._fetch = fetch
        self._bytes = batch_bytes
        self._at_once = MOST_AT_ONCE
        self.size = 0
        """About the bytes of the last batch."""

    async def next(self) -> Rows:
        """Return further rows; none at the end."""
        batch: list[Sequence[Any]] = []
        size = 0
        while size < self._bytes and len(batch) < MOST_ROWS:
            rows = await self._fetch(self._at_once)
            if not rows:
                break
            length = sum(
                len(value) if isinstance(value, str | bytes) else 8 for row in rows for value in row
            )
            self._at_once = max(1, min(MOST_AT_ONCE, self._bytes * len(rows) // max(length, 1)))
            batch.extend(rows)
            size += length
        self.size = size
        return batch
