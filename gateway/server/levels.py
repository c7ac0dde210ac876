"""Levels of token buckets and counts of tries in memory that the processes of a node share."""

import mmap
import os
import tempfile
from functools import lru_cache
from hashlib import blake2b

WAYS = 8
SETS = 2**14
BYTES = SETS * WAYS * 8
"""Bytes of one column of the shared table."""
REMEMBERED = 4096


class SharedLevels:
    """A table of levels in memory that all processes of a node map.

    Each holder has WAYS possible places, chosen by a hash of its name. There is no lock, so that a
    process that stands still stops no other: when two processes take from one bucket within the
    same microseconds, one of the two may not count.
    """

    def __init__(self, descriptor: int) -> None:
        whole = memoryview(mmap.mmap(descriptor, 3 * BYTES))
        self._tags = whole[:BYTES].cast("Q")
        self._levels = whole[BYTES : 2 * BYTES].cast("d")
        self._times = whole[2 * BYTES :].cast("d")
        self._place = lru_cache(REMEMBERED)(_place)

    def of(self, name: str) -> "NamedLevels":
        """Return the part of the table with this name."""
        return NamedLevels(self, name)

    def get(self, holder: str) -> tuple[float, float] | None:
        """Return level and time, None for a holder without them."""
        first, tag = self._place(holder)
        for at in range(first, first + WAYS):
            if self._tags[at] == tag:
                return self._levels[at], self._times[at]
        return None

    def put(self, holder: str, level: float, then: float) -> None:
        """Store level and time; of a full set of places, in that of the one idle longest."""
        first, tag = self._place(holder)
        places = range(first, first + WAYS)
        at = next((at for at in places if self._tags[at] == tag), None)
        if at is None:
            at = min(places, key=self._times.__getitem__)
        self._levels[at] = level
        self._times[at] = then
        self._tags[at] = tag


class NamedLevels:
    """The levels of one name in a shared table."""

    def __init__(self, table: SharedLevels, name: str) -> None:
        self._table = table
        self._name = name

    def get(self, holder: str) -> tuple[float, float] | None:
        return self._table.get(f"{self._name} {holder}")

    def put(self, holder: str, level: float, then: float) -> None:
        self._table.put(f"{self._name} {holder}", level, then)


def shared_memory() -> int:
    """Return a descriptor of empty memory for SharedLevels, which processes may inherit."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("carteiro-limits")
    else:  # not Linux
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, 3 * BYTES)
    return descriptor


def _place(holder: str) -> tuple[int, int]:
    """Return the first place of a holder's set, and its tag, which is not 0."""
    digest = blake2b(holder.encode("utf-8", "surrogateescape"), digest_size=16).digest()
    set_ = int.from_bytes(digest[:8], "little") % SETS
    return set_ * WAYS, int.from_bytes(digest[8:], "little") | 1
