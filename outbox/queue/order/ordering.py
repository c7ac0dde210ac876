"""Turn the order of a webhook on or off, also while deliveries wait there.

The deliveries that wait join lines, or leave them, in many small transactions. While they join, the
lane is inactive, so that none overtakes another. It stays inactive until the requests under way
have ended, because these may fail and wait again. When all have joined, each line gets its head,
and then the lane opens. The lane is marked until all of this is done, and the duty continues what a
process that died has begun.

A run reads what waits outside the transactions, page by page and the latest first, so that many
replays, which stay outside the lines, delay no other write. While the lane is inactive and no
request is under way, the time of a waiting delivery can only become earlier, so a run that begins
then reads all of them.

It is one module because turning on, turning off and the repair rely on the same marks of a lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import structlog

from outbox.database import locks
from outbox.database.index_plans import by_index
from outbox.database.moving_owners import is_here
from outbox.database.sql import AMONG_IDS, IDS, items
from outbox.database.transaction import DUTIES, Database, Row, Tx, patience
from outbox.queue.state import head_deliveries, lanes

BATCH = 150
"""Deliveries of one transaction, for which other writes wait on SQLite."""
PAGE = 2_000
TURNING = 500

# The lock of fan-out, shared: each fan-out after this commit sees the new setting.
NO_FAN_OUT = locks.held(locks.FAN_OUT, shared=True)
SET = "update webhooks set ordered = $2 where id = $1 and ordered <> $2"
NEXT_VERSION = "update webhooks set version = version + 1 where id = $1"
MARK = """
update lanes set turning = true, joined = false, active = active and not $2 where webhook_id = $1
"""

WAITING = f"""
select id, next_at, origin = 'event' and not ordered as joins
from deliveries /*sqlite indexed by deliveries_ready*/
where webhook_id = $1 and state = 'ready' and retry = $2
  and next_at <= $3 and (next_at < $3 or id < $4)
order by next_at desc, id desc limit {PAGE}
"""
# By id alone: a condition on the state could lead the planner to another index.
JOIN = f"""
update deliveries set state = 'held', ordered = true
where id {AMONG_IDS} and state || '' = 'ready' and origin = 'event' and not ordered
"""
UNDER_WAY = """
select id from deliveries /*sqlite indexed by deliveries_claimed*/
where webhook_id = $1 and state = 'in_flight' and origin = 'event' and not ordered limit 1
"""
# With the name of the index, and only ids in the outer statement: see outbox.queue.upkeep.parking.
LEAVE = f"""
update deliveries set state = 'ready', ordered = false
where id /*sqlite in (*/ /*postgres = any (array(*/
  select id from deliveries /*sqlite indexed by deliveries_held*/
  where webhook_id = $1 and state = 'held'
  limit {BATCH} /*sqlite )*/ /*postgres for update))*/
"""
LEAVE_AS_HEAD = f"""
update deliveries set ordered = false
where id /*sqlite in (*/ /*postgres = any (array(*/
  select id from deliveries /*sqlite indexed by deliveries_heads*/
  where webhook_id = $1 and ordered and state in ('ready', 'in_flight')
  limit {BATCH} /*sqlite )*/ /*postgres for update))*/
"""
JOINED = "update lanes set joined = true where webhook_id = $1"
DONE = """
update lanes set turning = false, joined = false,
  active = (select w.state = 'active' from webhooks w where w.id = lanes.webhook_id)
where webhook_id = $1
"""
STANDING = """
select w.ordered, w.version, l.joined from webhooks w join lanes l on l.webhook_id = w.id
where w.id = $1 and l.turning
"""
UNFINISHED = f"""
select webhook_id from lanes where turning and {is_here("lanes.owner_id")}
order by webhook_id limit {TURNING}
"""

HELD = f"""
select id, webhook_id, record_id, seq from deliveries /*sqlite indexed by deliveries_held*/
where state = 'held' and (webhook_id, record_id, seq) > ($1, $2, $3)
order by webhook_id, record_id, seq limit {PAGE}
"""
HEADLESS = f"""
select d.id, d.webhook_id from deliveries d join lanes l on l.webhook_id = d.webhook_id
where d.id in {IDS} and {head_deliveries.MAY_LEAD}
  and {head_deliveries.HEAD.format(webhook="d.webhook_id", record="d.record_id")} is null
"""

OF = f"select distinct webhook_id from deliveries where id in {IDS}"

Step = Literal["more", "waits", "joined", "done"]
Place = tuple[str, str, int]
END_OF_TIME = 2**63 - 1


@dataclass(frozen=True, slots=True)
class JoinRun:
    """A run that makes what waits at a webhook of this version join lines.

    `quiet`: no request was under way when it began, so that all have joined when it ends.
    """

    webhook_id: str
    version: int
    quiet: bool


@dataclass(frozen=True, slots=True)
class Cursor:
    """The position of a run: what follows has an earlier time, or the same and a smaller id."""

    retry: bool = True
    next_at: int = END_OF_TIME
    id: str = ""


log = structlog.get_logger("outbox")


async def begin(tx: Tx, webhook_id: str, ordered: bool) -> bool:
    """Set whether a webhook is ordered; return whether `finish` has something to do.

    In a transaction that changes the webhook, this comes first: lanes are locked before webhooks.
    The change raises the version, which ends the runs of an earlier change.
    """
    await lanes.lock(tx, [webhook_id])
    await tx.one(NO_FAN_OUT)
    if not await tx.run(SET, webhook_id, ordered):
        return False
    tx.changed.add(webhook_id)
    await tx.run(MARK, webhook_id, ordered)
    tx.wake = True
    return True


async def finish(db: Database, webhook_id: str, holder: str = DUTIES) -> bool:
    """Make what waits at a webhook join lines or leave them, after `begin`; scan as `holder`.

    Return False when requests that began before are still under way: the duty does the rest.
    """
    patience.set(None)
    while True:
        step = await db.write(_step, webhook_id)
        if isinstance(step, JoinRun):
            step = await _join_all(db, step, holder)
        if step == "joined":
            # Heads first: the lane is still marked, so the duty continues if the process ends here.
            await heal(db, webhook_id, holder)
            step = await db.write(_end, webhook_id)
        if step != "more":
            return step == "done"


async def turn(db: Database, webhook_id: str, ordered: bool) -> bool:
    """Turn the order of a webhook on or off; return as `finish` does."""
    return not await db.write(_change, webhook_id, ordered) or await finish(db, webhook_id)


async def any_turning(db: Database) -> bool:
    """Return whether the order of a webhook is being changed."""
    return bool(await db.read(_turning))


async def finish_all(db: Database) -> None:
    """Finish all changes that `begin` has begun."""
    for webhook_id in await db.read(_turning):
        await finish(db, webhook_id)


async def heal(db: Database, webhook_id: str = "", holder: str = DUTIES) -> int:
    """Give a head to each line that lacks one, of this webhook or of all; return how many."""
    count = 0
    place: Place | None = (webhook_id, "", 0)
    while place is not None and (not webhook_id or place[0] == webhook_id):
        place, headless = await db.scan(holder, _page, place)
        for start in range(0, len(headless), BATCH):
            count += await db.write(_promote, headless[start : start + BATCH])
    return count


async def repair(db: Database) -> None:
    """Repair lines that lost their head; log it, because it indicates a bug."""
    if count := await heal(db):
        log.warning("lines_without_head", count=count)


async def _change(tx: Tx, webhook_id: str, ordered: bool) -> bool:
    return await begin(tx, webhook_id, ordered) and await tx.run(NEXT_VERSION, webhook_id) == 1


async def _join_all(db: Database, run: JoinRun, holder: str) -> Step:
    """Make what waits join lines; record that all have joined if nothing can be missing."""
    cursor: Cursor | None = Cursor()
    while cursor is not None:
        cursor, ids = await db.scan(holder, _waiting, run.webhook_id, cursor)
        for start in range(0, len(ids), BATCH):
            if not await db.write(_join, run, ids[start : start + BATCH]):
                return "more"
    return await db.write(_joined, run) if run.quiet else "waits"


async def _waiting(tx: Tx, webhook_id: str, cursor: Cursor) -> tuple[Cursor | None, list[str]]:
    """Return how far a page goes, None at the end, and those of its deliveries that join."""
    await by_index(tx)
    rows = await tx.all(WAITING, webhook_id, cursor.retry, cursor.next_at, cursor.id)
    ids = [row["id"] for row in rows if row["joins"]]
    if len(rows) == PAGE:
        return Cursor(cursor.retry, int(rows[-1]["next_at"]), rows[-1]["id"]), ids
    return (Cursor(retry=False) if cursor.retry else None), ids


async def _join(tx: Tx, run: JoinRun, ids: Sequence[str]) -> bool:
    """Make these deliveries join lines; return False when the webhook was changed meanwhile."""
    await lanes.lock(tx, [run.webhook_id])
    if not _continues(await tx.one(STANDING, run.webhook_id), run):
        return False
    await by_index(tx)
    await tx.run(JOIN, items(ids))
    return True


async def _joined(tx: Tx, run: JoinRun) -> Step:
    await lanes.lock(tx, [run.webhook_id])
    if not _continues(await tx.one(STANDING, run.webhook_id), run):
        return "more"
    await tx.run(JOINED, run.webhook_id)
    return "joined"


def _continues(row: Row | None, run: JoinRun) -> bool:
    return row is not None and bool(row["ordered"]) and row["version"] == run.version


async def _step(tx: Tx, webhook_id: str) -> Step | JoinRun:
    await lanes.lock(tx, [webhook_id])
    row = await tx.one(STANDING, webhook_id)
    if row is None:
        return "done"
    if row["ordered"]:
        if row["joined"]:
            return "joined"
        under_way = await tx.one(UNDER_WAY, webhook_id)
        return JoinRun(webhook_id, row["version"], under_way is None)
    count = await tx.run(LEAVE, webhook_id)
    if BATCH in (count, await tx.run(LEAVE_AS_HEAD, webhook_id)):
        return "more"
    return await _open(tx, webhook_id)


async def _end(tx: Tx, webhook_id: str) -> Step:
    """Open a lane whose lines have heads, unless the order has been changed again meanwhile."""
    await lanes.lock(tx, [webhook_id])
    row = await tx.one(STANDING, webhook_id)
    if row is None:
        return "done"
    return await _open(tx, webhook_id) if row["ordered"] and row["joined"] else "more"


async def _open(tx: Tx, webhook_id: str) -> Step:
    await tx.run(DONE, webhook_id)
    await lanes.rest(tx, [webhook_id])
    tx.wake = True
    return "done"


async def _turning(tx: Tx) -> list[str]:
    return [row["webhook_id"] for row in await tx.all(UNFINISHED)]


async def _page(tx: Tx, place: Place) -> tuple[Place | None, list[str]]:
    """Return the place of the last held delivery of a page, and one of each line without a head.

    The place is None at the end.
    """
    await by_index(tx)
    rows = await tx.all(HELD, *place)
    lines: dict[tuple[str, str], str] = {}
    for row in rows:
        lines.setdefault((row["webhook_id"], row["record_id"]), row["id"])
    headless = await tx.all(HEADLESS, items(list(lines.values()))) if lines else []
    last = rows[-1] if len(rows) == PAGE else None
    end = None if last is None else (last["webhook_id"], last["record_id"], last["seq"])
    return end, [row["id"] for row in headless]


async def _promote(tx: Tx, ids: Sequence[str]) -> int:
    await by_index(tx)
    await lanes.lock(tx, [row["webhook_id"] for row in await tx.all(OF, items(ids))])
    ready = await head_deliveries.promote(tx, ids)
    await lanes.rest(tx, ready)
    tx.wake = tx.wake or bool(ready)
    return len(ready)
