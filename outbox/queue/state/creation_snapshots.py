"""Read the PostgreSQL snapshot of a webhook's creation, and clear it when it no longer matters.

Its text is parsed without the server: in SQL, a cast of a damaged text would fail the whole
statement, and with it every fan-out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from outbox.database.sql import IDS, items
from outbox.database.transaction import Tx
from outbox.queue.state import fanout_remainders

# After the fan-out of all events older than its creation, a webhook gets every new event.
SNAPSHOTS = """
select id, owner_id, since_snapshot,
  cast(pg_snapshot_xmin(pg_current_snapshot()) as text) as oldest
from webhooks where since_snapshot is not null order by id limit 500
"""
_OLDER = "(e.xid is null or e.xid < cast(cast($2 as text) as xid8))"
OLDER_UNSEEN = f"""
select 1 as one from events e where e.seq is null and e.owner_id = $1 and {_OLDER}
union all
select 1 as one from {fanout_remainders.LEFT} where r.owner_id = $1 and {_OLDER}
limit 1
"""
FORGET_SINCE = f"""
update webhooks set since_snapshot = null
where id = any (array(select id from webhooks where id in {IDS} for update skip locked))
"""

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


async def forget_since(tx: Tx) -> None:
    """Clear the creation snapshots of webhooks for which they no longer matter.

    After a restore into another PostgreSQL cluster a snapshot would have another meaning.
    """
    if tx.engine == "sqlite":
        return
    obsolete = []
    for row in await tx.all(SNAPSHOTS):
        since = parse(row["since_snapshot"])
        if since is not None and (
            since.next_id > int(row["oldest"])
            or await tx.one(OLDER_UNSEEN, row["owner_id"], str(since.next_id)) is not None
        ):
            continue
        obsolete.append(row["id"])
    if obsolete:
        await tx.run(FORGET_SINCE, items(obsolete))
