"""Bounds the pages in which an erasure reads stored texts: in bytes, whatever the rows have.

SQLite must read a text to know its size, so few rows are looked at until pages show to be small.
"""

from dataclasses import dataclass

BYTES = 262_144
"""Bytes of one page, unless a single row has more."""
FEWEST = 32
MOST = 1_000
"""Rows of one page."""
SIZE = "/*sqlite length(cast({0} as blob))*/ /*postgres octet_length({0})*/"


@dataclass(frozen=True, slots=True)
class PageSize:
    """How much the next page may have."""

    rows: int = FEWEST
    bytes: int = BYTES

    def after(self, rows: int, size: int) -> "PageSize":
        """Return the size of the page after one with so many rows and bytes."""
        if size >= self.bytes // 2:
            return PageSize(min(max(2 * rows, FEWEST), MOST), self.bytes)
        return PageSize(min(2 * self.rows, MOST) if rows == self.rows else self.rows, self.bytes)


FIRST = PageSize()
