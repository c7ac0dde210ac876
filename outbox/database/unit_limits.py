"""How many units of one kind run and wait at once, of all owners and of each."""

from outbox.database.fair_limit import FairSemaphore

SCANS_WAITING = 8
SCANS_EACH = 2
"""Scans of one owner: how many may wait, and how many may run while there is room for more."""
STREAMS = 8
STREAMS_WAITING = 2
"""Streams at once; an owner may have one, and so many that wait for it."""
SPOOLS = 2
SPOOLS_WAITING = 8
"""Short streams that are read while all places are taken; an owner may have one at a time."""
STREAM_SECONDS = 300.0
"""The longest time of a stream, because its snapshot keeps old rows."""

WAITING = 1_000
"""Writes, and reads, of one owner that may wait for a connection; twice as many of all owners."""


def scan_places(count: int) -> FairSemaphore:
    """Return places for `count` concurrent scans; of two or more, one owner leaves one free."""
    return FairSemaphore(count, each=min(SCANS_EACH, max(1, count - 1)), waiting=SCANS_WAITING)


def write_places(count: int) -> FairSemaphore:
    """Return places for `count` concurrent writes; of three or more, one owner leaves some free."""
    each = max(1, count - max(1, count // 3))
    return FairSemaphore(count, each=each, waiting=WAITING, most=2 * WAITING)


def read_places(count: int) -> FairSemaphore:
    """Return places for `count` concurrent short reads, of which one owner takes a half."""
    return FairSemaphore(count, each=max(1, count // 2), waiting=WAITING, most=2 * WAITING)


def stream_places() -> FairSemaphore:
    """Return places for streams."""
    return FairSemaphore(STREAMS, each=1, waiting=STREAMS_WAITING)


def spool_places() -> FairSemaphore:
    """Return places for streams that are read at once."""
    return FairSemaphore(SPOOLS, each=1, waiting=SPOOLS_WAITING)
