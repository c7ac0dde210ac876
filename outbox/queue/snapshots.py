"""What a PostgreSQL transaction could see: the text of a `pg_snapshot`, read without the server.

A cast of a damaged one would end a whole statement, and with it everybody's fan-out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TEXT = re.compile(r"(\d{1,20}):(\d{1,20}):((?:\d{1,20},)*\d{1,20})?")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Ids below `oldest` had ended; from `next_id` on none had begun; `running` were under way."""

    oldest: int
    next_id: int
    running: frozenset[int]

    def sees(self, xid: int) -> bool:
        """Whether what this transaction wrote was visible, if it was committed."""
        return xid < self.oldest or (xid < self.next_id and xid not in self.running)


def parse(text: str | None) -> Snapshot | None:
    """The snapshot of `xmin:xmax:xip,…`; None for nothing, and for what is damaged."""
    match = _TEXT.fullmatch(text or "")
    if match is None:
        return None
    running = frozenset(map(int, (match[3] or "").split(","))) if match[3] else frozenset()
    return Snapshot(int(match[1]), int(match[2]), running)
