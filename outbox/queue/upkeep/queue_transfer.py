"""Move a queue to another database: end claims, convert clocks and transaction ids.

On SQLite `since_pos` of a webhook decides which events are too old for it, on PostgreSQL a snapshot
and the transaction of the event. All queues are transferred in the form of SQLite.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from outbox.database.sql import ITEMS, items
from outbox.database.transaction import Tx
from outbox.database.transfer import Snapshot, Table
from outbox.errors import CannotStart
from outbox.queue.state import creation_snapshots, deleted_webhooks, fanout_remainders, lanes
from outbox.queue.upkeep import pause_mark

LANES_AT_ONCE = 500
EVENTS_AT_ONCE = 5_000

_NEW_WEBHOOKS = """
select id, owner_id, since_snapshot from webhooks where since_snapshot is not null
"""
_UNSEEN = """
select pos, owner_id, cast(xid as text) as xid from events where seq is null order by pos
"""
_LEFT = f"select e.pos, e.owner_id, cast(e.xid as text) as xid from {fanout_remainders.LEFT}"

# The sender of a claim is not here, and it may have sent the request or not.
_TAKE_BACK = """
update deliveries set state = 'ready', retry = true, claim = null, node_id = null,
  next_at = (select due_now())
where state = 'in_flight'
"""
_BACKED_UP = "update outbox_state set backed_up_at = $1 where id = 1"
_AHEAD = "select due_mark - due_now() as ahead from outbox_state"
# The due clock of SQLite continues from its mark; that of PostgreSQL is the server's.
_EARLIER = (
    "update deliveries set next_at = next_at - $1 where state in ('ready', 'held')",
    """
    update lanes set turned_at = turned_at - $1, wait_until = wait_until - $1,
      rate_until = rate_until - $1, probe_at = probe_at - $1, failing_from = failing_from - $1
    """,
    "update duties set began_at = began_at - $1, ended_at = ended_at - $1",
    "update outbox_state set due_mark = due_mark - $1",
)
# Positions of events may have changed; with a later mark, a request only waits for more of them.
_ERASURES = "update erasures set upto_pos = (select coalesce(max(pos), 0) from events)"
_LANES = "select webhook_id from lanes where webhook_id > $1 order by webhook_id limit $2"

_PAUSE = """
update webhooks set state = 'paused', version = version + 1, updated_at = $1
where state = 'active'
"""

_LATE_WEBHOOKS = f"""
select id, owner_id, since_pos from webhooks w where exists (
  select 1 from events e where e.seq is null and e.owner_id = w.owner_id and e.pos <= w.since_pos)
  or exists (
    select 1 from {fanout_remainders.LEFT} where e.owner_id = w.owner_id and e.pos <= w.since_pos)
"""
_UNSEEN_OF = f"""
select pos from events where seq is null and owner_id in (select value ->> 0 from {ITEMS})
union all
select e.pos from {fanout_remainders.LEFT} where e.owner_id in (select value ->> 0 from {ITEMS})
"""
_NOW = "select cast(cast(pg_current_xact_id() as text) as bigint) as xid"
_GIVE_XID = f"""
update events set xid = cast(s.given as xid8)
from (select cast(value ->> 0 as bigint) as place, value ->> 1 as given from {ITEMS}) as s
where events.pos = s.place
"""
_GIVE_SNAPSHOT = f"""
update webhooks set since_snapshot = s.given
from (select value ->> 0 as id, value ->> 1 as given from {ITEMS}) as s where webhooks.id = s.id
"""


@dataclass(frozen=True, slots=True)
class Departure:
    """What is rewritten in a queue of PostgreSQL for SQLite.

    `positions` are new positions of events that fan-out has not seen, `since` those of webhooks.
    """

    positions: Mapping[int, int] = field(default_factory=dict)
    since: Mapping[str, int] = field(default_factory=dict)

    def of(self, table: Table, rows: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
        """Return the rows of a table as they are transferred."""
        names = table.names
        if table.name == "events" and self.positions:
            pos = names.index("pos")
            return [_with(row, {pos: self.positions.get(row[pos], row[pos])}) for row in rows]
        if table.name == "webhooks" and "since_snapshot" in names:
            one, pos, snapshot = map(names.index, ("id", "since_pos", "since_snapshot"))
            return [_with(row, {pos: self.since.get(row[one], 0), snapshot: None}) for row in rows]
        return rows


class Unchanged(Departure):
    """The departure of a queue that is on SQLite already."""

    def of(self, table: Table, rows: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
        return rows


async def backed_up(tx: Tx, at: int) -> None:
    """Store the moment that the latest backup holds, in microseconds UTC."""
    await tx.run(_BACKED_UP, at)


async def departure(source: Snapshot) -> Departure:
    """Read what must be rewritten when the queue of a snapshot moves.

    A transaction makes a webhook or events, not both, so of two snapshots the later one sees all
    that the earlier one sees. So the events can be ordered by the first webhook that sees them, and
    then by position, which is also the order of the events of one record.
    """
    tables = {table.name: table for table in source.tables}
    if source.engine == "sqlite" or "since_snapshot" not in tables["webhooks"].names:
        return Unchanged()
    new = [
        (row["id"], row["owner_id"], since)
        for row in await source.query(_NEW_WEBHOOKS)
        if (since := creation_snapshots.parse(row["since_snapshot"])) is not None
    ]
    if not new:
        return Departure()
    owners = {owner for _, owner, _ in new}
    unseen = [
        (row["pos"], None if row["xid"] is None else int(row["xid"]))
        for row in (
            *await source.query(_UNSEEN),
            *(await source.query(_LEFT) if "remainders" in tables else ()),
        )
        if row["owner_id"] in owners
    ]
    chain = sorted(
        {since for _, _, since in new}, key=lambda s: (s.next_id, s.oldest, -len(s.running))
    )

    def first(xid: int | None) -> int:
        return next(
            (n for n, since in enumerate(chain) if xid is None or since.sees(xid)), len(chain)
        )

    standing = sorted((first(xid), pos) for pos, xid in unseen)
    places = sorted(pos for pos, _ in unseen)
    positions = {pos: place for (_, pos), place in zip(standing, places, strict=True)}
    last = {rank: positions[max(group)[1]] for rank, group in groupby(standing, key=lambda s: s[0])}
    marks = {
        id_: max((last[rank] for rank in last if rank <= chain.index(at)), default=0)
        for id_, _, at in new
    }
    return Departure(positions, marks)


async def arrive(tx: Tx) -> None:
    """Let a transferred queue continue here: it sends nothing, and waits no longer than before."""
    if tx.engine == "postgres":
        row = await tx.one(_AHEAD)
        if row is not None and row["ahead"] > 0:
            for statement in _EARLIER:
                await tx.run(statement, row["ahead"])
        await _give_snapshots(tx)
    await tx.run(_TAKE_BACK)
    await deleted_webhooks.end_all_left(tx)
    await tx.run(_ERASURES)
    after = ""
    while ids := [row["webhook_id"] for row in await tx.all(_LANES, after, LANES_AT_ONCE)]:
        await lanes.rest(tx, ids)
        after = ids[-1]


async def pause_all(tx: Tx) -> None:
    """Pause the database and every webhook: a second installation does nothing by itself."""
    await pause_mark.pause(tx)
    await tx.run(_PAUSE, tx.now)
    await tx.run("update lanes set active = false")
    await tx.run("update notices set due_at = null")


async def _give_snapshots(tx: Tx) -> None:
    """Replace `since_pos` by transaction ids that are older than any of this server."""
    late = await tx.all(_LATE_WEBHOOKS)
    if not late:
        return
    bounds = sorted({row["since_pos"] for row in late})
    now = await tx.one(_NOW)
    assert now is not None
    if len(bounds) + 2 >= now["xid"]:
        raise CannotStart("too many webhooks are new; serve the database once before you copy it")
    owners = sorted({row["owner_id"] for row in late})
    places = [row["pos"] for row in await tx.all(_UNSEEN_OF, items([[owner] for owner in owners]))]
    xids = [(place, str(bisect_left(bounds, place) + 1)) for place in places]
    for start in range(0, len(xids), EVENTS_AT_ONCE):
        await tx.run(_GIVE_XID, items(xids[start : start + EVENTS_AT_ONCE]))
    ids = [(row["id"], bounds.index(row["since_pos"]) + 2) for row in late]
    await tx.run(_GIVE_SNAPSHOT, items([(id_, f"{xid}:{xid}:") for id_, xid in ids]))


def _with(row: Sequence[Any], values: Mapping[int, Any]) -> tuple[Any, ...]:
    return tuple(values.get(place, value) for place, value in enumerate(row))
