"""Read a PostgreSQL snapshot: the text of a `pg_snapshot`, without the server.

In SQL, a cast of a damaged text would fail the whole statement, and with it every fan-out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TEXT = re.compile(r"(\d{1,20}):(\d{1,20}):((?:\d{1,20},)*\d{1,20})?")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Ids below `oldest` had ended; ids from `next_id` on had not begun; `running` were active."""

    oldest: int
    next_id: int
    running: frozenset[int]

    def sees(self, xid: int) -> bool:
        """Return whether the writes of this transaction were visible, if it was committed."""
        return xid < self.oldest or (xid < self.next_id and xid not in self.running)


def parse(text: str | None) -> Snapshot | None:
    """Parse `xmin:xmax:xip,…`; return None for None and for damaged text."""
    match = _TEXT.fullmatch(text or "")
    if match is None:
        return None
    running = frozenset(map(int, (match[3] or "").split(","))) if match[3] else frozenset()
    return Snapshot(int(match[1]), int(match[2]), running)
