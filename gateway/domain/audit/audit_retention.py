"""Deletes old entries of the audit log, owner after owner, in small transactions."""

from outbox.database import times
from outbox.database.index_plans import by_index
from outbox.database.moving_owners import is_here
from outbox.database.pacing import JobPace
from outbox.database.transaction import DUTIES, Database, Tx
from outbox.durations import DAY
from outbox.ids import first_at

PIECE = 200
OWNERS = 100

# An entry has no index by its time alone, which each write would have to keep: the first entry of
# each owner tells whether there is anything to delete.
_OWNERS = f"""
select u.id from users u where u.id > $1 and {is_here("u.id")}
  and (select min(a.id) from audit a where a.owner_id = u.id) < $2
order by u.id limit $3
"""
_PURGE = """
delete from audit where owner_id = $1 and id in (
  select id from audit where owner_id = $1 and id < $2 order by id limit $3)
"""


class AuditRetention:
    """Deletes entries older than `days`. Run one at a time; a run may be interrupted."""

    def __init__(self, db: Database, *, days: int) -> None:
        self._db = db
        self._age = days * DAY
        self._pace = JobPace(db.meter, PIECE, clock=db.clock)

    async def run_once(self) -> None:
        """Delete all that is old."""
        before = first_at(await self._db.read(times.earlier) - self._age)
        after = ""
        while owners := await self._db.scan(DUTIES, _owners, after, before):
            after = owners[-1]
            for owner_id in owners:
                await self._purge(owner_id, before)
        self._db.observer.swept("audit")

    async def _purge(self, owner_id: str, before: str) -> None:
        count = most = 0
        while count == most:
            async with self._pace.step() as most:
                count = await self._db.write(purge, owner_id, before, most)
                self._db.observer.purged("audit", count)


async def _owners(tx: Tx, after: str, before: str) -> list[str]:
    await by_index(tx)
    return [row["id"] for row in await tx.all(_OWNERS, after, before, OWNERS)]


async def purge(tx: Tx, owner_id: str, before: str, most: int = PIECE) -> int:
    """Delete up to `most` entries of an owner with an id below `before`; return how many."""
    await by_index(tx)
    return await tx.run(_PURGE, owner_id, before, most)
