"""Levels of token buckets and counts of tries in memory that the processes of a node share."""

import mmap
import os
import tempfile
from hashlib import blake2b

WAYS = 8
SETS = 2**14
BYTES = SETS * WAYS * 8
"""Bytes of one column of the shared table."""
REMEMBERED = 4096


class SharedCounters:
    """A table of levels in memory that all processes of a node map.

    Each holder has WAYS possible places, chosen by a hash of its name. There is no lock, so that a
    process that hangs stops no other: when two processes take from one bucket within the
    same microseconds, one of the two may not count.
    """

    def __init__(self, descriptor: int) -> None:
        whole = memoryview(mmap.mmap(descriptor, 3 * BYTES))
        self.tags = whole[:BYTES].cast("Q")
        self.levels = whole[BYTES : 2 * BYTES].cast("d")
        self.times = whole[2 * BYTES :].cast("d")

    def of(self, name: str) -> "NamedLevels":
        """Return the part of the table with this name."""
        return NamedLevels(self, name)


class NamedLevels:
    """The levels of one name in a shared table."""

    def __init__(self, table: SharedCounters, name: str) -> None:
        self._name = name
        self._tags, self._levels, self._times = table.tags, table.levels, table.times
        # The hash and the search cost more than the rest; a place is right while it has the tag.
        self._remembered: dict[str, tuple[int, int]] = {}

    def get(self, holder: str) -> tuple[float, float] | None:
        """Return level and time, None for a holder without them."""
        at, tag = self._remembered.get(holder) or (0, 0)
        if tag == 0 or self._tags[at] != tag:
            places, tag = _places(f"{self._name} {holder}")
            # Always the first one, so that all processes agree should there be two.
            place = next((at for at in places if self._tags[at] == tag), None)
            if place is None:
                return None
            if len(self._remembered) >= REMEMBERED:
                self._remembered.clear()
            self._remembered[holder] = at, tag = place, tag
        return self._levels[at], self._times[at]

    def put(self, holder: str, level: float, then: float) -> None:
        """Store level and time; of a full set of places, in that of the one idle longest."""
        at, tag = self._remembered.get(holder) or (0, 0)
        if tag == 0 or self._tags[at] != tag:
            places, tag = _places(f"{self._name} {holder}")
            place = next((at for at in places if self._tags[at] == tag), None)
            at = min(places, key=self._times.__getitem__) if place is None else place
        self._levels[at] = level
        self._times[at] = then
        self._tags[at] = tag


def shared_memory() -> int:
    """Return a descriptor of empty memory for SharedCounters, which processes may inherit."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("carteiro-limits")
    else:  # not Linux
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, 3 * BYTES)
    return descriptor


def _places(holder: str) -> tuple[range, int]:
    """Return the places that a holder may have, and its tag, which is not 0."""
    digest = blake2b(holder.encode("utf-8", "surrogateescape"), digest_size=16).digest()
    first = int.from_bytes(digest[:8], "little") % SETS * WAYS
    return range(first, first + WAYS), int.from_bytes(digest[8:], "little") | 1
