"""Decides which imports move on next, and deletes those that ended long ago."""

from collections.abc import Sequence

from gateway.domain.imports.import_jobs import OPEN, Import, import_of
from outbox.database import times
from outbox.database.moving_owners import is_here
from outbox.database.transaction import Tx
from outbox.durations import DAY, HOUR

KEPT = 30 * DAY
ABANDONED = HOUR
"""After this time without a step, an upload or an import that waits for its owner ends."""


async def turns(tx: Tx, most: int) -> Sequence[Import]:
    """Return imports to move on, one of each owner at most: that whose last step is the oldest.

    Those that have ended and still have lines are among them.
    """
    rows = await tx.all(
        f"""select * from imports i
        where i.lines_left = true and (i.state = 'running' or i.state not in {OPEN})
          and not exists (
            select 1 from imports o where o.owner_id = i.owner_id and o.lines_left = true
              and (o.state = 'running' or o.state not in {OPEN}) and o.id < i.id)
          and {is_here("i.owner_id")}
        order by i.paced_at, i.id limit $1""",
        most,
    )
    return [import_of(row) for row in rows]


REPORTED_AT_ONCE = 100
"""Faults or faulty lines that are deleted in a transaction; a line is as long as its record."""
_PURGE_REPORTS = [
    f"""
    delete from {table} where (import_id, {column}) in (
      select r.import_id, r.{column} from imports i join {table} r on r.import_id = i.id
      where i.finished_at < $1 and i.lines_left = false limit $2)
    """
    for table, column in (("import_faulty_lines", "line"), ("import_faults", "nth"))
]
_PURGE = """
delete from imports where id in (
  select id from imports where finished_at < $1 and lines_left = false
  order by finished_at limit $2)
"""


async def purge(tx: Tx, limit: int) -> int:
    """Delete up to `limit` imports that ended long ago, and end those that nobody goes on with."""
    now = await times.earlier(tx)
    await tx.run(
        """update imports set state = 'cancelled', headings = '[]', fields = '[]', reason = $2,
          finished_at = $3
        where lines_left = true and state in ('uploading', 'waiting') and paced_at < $1""",
        now - ABANDONED,
        "It was not started within an hour.",
        tx.now,
    )
    for text in _PURGE_REPORTS:
        if await tx.run(text, now - KEPT, REPORTED_AT_ONCE):
            # There may be more; the imports go after their reports.
            return limit
    return await tx.run(_PURGE, now - KEPT, limit)
