"""How many units of one kind run and wait at once, of all owners and of each."""

from outbox.database.fair_limit import Places

SCANS_WAITING = 8
SCANS_EACH = 2
"""Scans of one owner: how many may wait, and how many may run while there is room for more."""
STREAMS = 8
STREAMS_WAITING = 2
"""Streams at once; an owner may have one, and so many that wait for it."""
STREAM_SECONDS = 300.0
"""The longest time of a stream, because its snapshot keeps old rows."""

WRITES_WAITING = 1_000
"""Writes of one owner that may wait for a connection; twice as many of all owners."""


def scan_places(count: int) -> Places:
    """Return places for `count` concurrent scans; of two or more, one owner leaves one free."""
    return Places(count, each=min(SCANS_EACH, max(1, count - 1)), waiting=SCANS_WAITING)


def write_places(count: int) -> Places:
    """Return places for `count` concurrent writes; of three or more, one owner leaves some free."""
    each = max(1, count - max(1, count // 3))
    return Places(count, each=each, waiting=WRITES_WAITING, most=2 * WRITES_WAITING)


def stream_places() -> Places:
    """Return places for streams."""
    return Places(STREAMS, each=1, waiting=STREAMS_WAITING)
