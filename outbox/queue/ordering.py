"""Turn the order of a webhook on or off, whatever waits there.

The deliveries that wait join lines, or leave them, in many small transactions. While they join, the
lane is inactive, so that none overtakes another; it waits also until the requests under way have
ended, which may fail and wait again. A lane is marked until all of this is done, and the duty
continues what a process that died has begun.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import structlog

from outbox.database.plans import by_index
from outbox.database.sql import IDS, items
from outbox.database.transaction import DUTIES, Database, Tx, patience
from outbox.queue import heads, lanes

BATCH = 500
PAGE = 2_000
TURNING = 500

# The lock of fan-out, shared: whoever fans out after this commit sees the new setting.
NO_FAN_OUT = "select /*sqlite true*/ /*postgres pg_advisory_xact_lock_shared(7201965)*/ as held"
SET = "update webhooks set ordered = $2 where id = $1 and ordered <> $2"
MARK = "update lanes set turning = true, active = active and not $2 where webhook_id = $1"

# With the name of the index, and only ids in the outer statement: see outbox.queue.parking.
JOIN = f"""
update deliveries set state = 'held', ordered = true
where id /*sqlite in (*/ /*postgres = any (array(*/
  select id from deliveries /*sqlite indexed by deliveries_ready*/
  where webhook_id = $1 and state = 'ready' and origin = 'event' and not ordered
  limit {BATCH} /*sqlite )*/ /*postgres for update))*/
"""
UNDER_WAY = """
select id from deliveries /*sqlite indexed by deliveries_claimed*/
where webhook_id = $1 and state = 'in_flight' and origin = 'event' and not ordered limit 1
"""
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
DONE = """
update lanes set turning = false,
  active = (select w.state = 'active' from webhooks w where w.id = lanes.webhook_id)
where webhook_id = $1
"""
STANDING = """
select w.ordered from webhooks w join lanes l on l.webhook_id = w.id where w.id = $1 and l.turning
"""
UNFINISHED = f"select webhook_id from lanes where turning order by webhook_id limit {TURNING}"

HELD = f"""
select id, webhook_id, record_id, seq from deliveries /*sqlite indexed by deliveries_held*/
where state = 'held' and (webhook_id, record_id, seq) > ($1, $2, $3)
order by webhook_id, record_id, seq limit {PAGE}
"""
HEADLESS = f"""
select d.id, d.webhook_id from deliveries d join lanes l on l.webhook_id = d.webhook_id
where d.id in {IDS} and not l.turning
  and {heads.HEAD.format(webhook="d.webhook_id", record="d.record_id")} is null
"""

OF = f"select distinct webhook_id from deliveries where id in {IDS}"

Step = Literal["more", "waits", "done"]
Place = tuple[str, str, int]

log = structlog.get_logger("outbox")


async def begin(tx: Tx, webhook_id: str, ordered: bool) -> bool:
    """Set the order of a webhook; return whether `finish` has something to do.

    In a transaction that changes the webhook, this comes first: lanes are locked before webhooks.
    """
    await lanes.lock(tx, [webhook_id])
    await tx.one(NO_FAN_OUT)
    if not await tx.run(SET, webhook_id, ordered):
        return False
    tx.changed.add(webhook_id)
    await tx.run(MARK, webhook_id, ordered)
    tx.wake = True
    return True


async def finish(db: Database, webhook_id: str) -> bool:
    """Let what waits at a webhook join lines or leave them, after `begin`.

    Return False when requests that began before are still under way: the duty does the rest.
    """
    patience.set(None)
    while (step := await db.write(_step, webhook_id)) == "more":
        pass
    if step == "done":
        await heal(db, webhook_id)
    return step == "done"


async def turn(db: Database, webhook_id: str, ordered: bool) -> bool:
    """Turn the order of a webhook on or off; return as `finish` does."""
    return not await db.write(begin, webhook_id, ordered) or await finish(db, webhook_id)


async def any_turning(db: Database) -> bool:
    """Return whether a webhook is being turned."""
    return bool(await db.read(_turning))


async def finish_all(db: Database) -> None:
    """Continue whatever `begin` has begun."""
    for webhook_id in await db.read(_turning):
        await finish(db, webhook_id)


async def heal(db: Database, webhook_id: str = "") -> int:
    """Give each line without a head one, at this webhook or at all; return how many had none."""
    found = 0
    place: Place | None = (webhook_id, "", 0)
    while place is not None and (not webhook_id or place[0] == webhook_id):
        place, headless = await db.scan(DUTIES, _page, place)
        for start in range(0, len(headless), BATCH):
            found += await db.write(_promote, headless[start : start + BATCH])
    return found


async def repair(db: Database) -> None:
    """Give each line without a head one, and say so: no transaction of ours leaves one behind."""
    if found := await heal(db):
        log.warning("lines_without_head", count=found)


async def _step(tx: Tx, webhook_id: str) -> Step:
    await lanes.lock(tx, [webhook_id])
    row = await tx.one(STANDING, webhook_id)
    if row is None:
        return "done"
    if row["ordered"]:
        if await tx.run(JOIN, webhook_id) == BATCH:
            return "more"
        if await tx.one(UNDER_WAY, webhook_id) is not None:
            return "waits"
    else:
        left = await tx.run(LEAVE, webhook_id)
        if BATCH in (left, await tx.run(LEAVE_AS_HEAD, webhook_id)):
            return "more"
    await tx.run(DONE, webhook_id)
    await lanes.rest(tx, [webhook_id])
    tx.wake = True
    return "done"


async def _turning(tx: Tx) -> list[str]:
    return [row["webhook_id"] for row in await tx.all(UNFINISHED)]


async def _page(tx: Tx, place: Place) -> tuple[Place | None, list[str]]:
    """Return the place of the last held delivery of a page, None at the end, and lines' members.

    One held delivery of each line that has no head.
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
    await lanes.lock(tx, [row["webhook_id"] for row in await tx.all(OF, items(ids))])
    ready = await heads.promote(tx, ids)
    await lanes.rest(tx, ready)
    tx.wake = tx.wake or bool(ready)
    return len(ready)
