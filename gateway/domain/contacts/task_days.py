"""Reads the tasks of single days, a few of each, for a calendar."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.domain.contacts.tasks import DUE
from gateway.records.audit import Actor
from gateway.records.values import dates
from gateway.records.values.strictjson import dumps
from outbox.database.transaction import Tx
from outbox.durations import DAY

MOST = 50
"""Tasks of one day that are counted."""


@dataclass(frozen=True, slots=True)
class Due:
    """A task that is due on a day."""

    id: str
    title: str
    due_at: int
    due_day: bool
    """Whether it is due on the whole day."""
    completed: bool


# One read of the index for each day. A bare date is stored as its 00:00 UTC, so the two bounds of a
# day differ by the zone alone.
_IN_DAY = f"""
owner_id = $1 and {DUE} >= d.outer_first and {DUE} <= d.outer_last
and (due_day is true or ({DUE} >= d.first and {DUE} <= d.last))
and (due_day is not true or {DUE} = d.day) order by {DUE}, id limit $3
"""
_OF_DAYS = f"""
select d.day as day, t.id, t.title, t.due_at, t.due_day, t.completed from
(select /*sqlite
  json_extract(value, '$[0]') as day, json_extract(value, '$[1]') as first,
  json_extract(value, '$[2]') as last, json_extract(value, '$[3]') as outer_first,
  json_extract(value, '$[4]') as outer_last from json_each($2) */ /*postgres
  cast(value ->> 0 as bigint) as day, cast(value ->> 1 as bigint) as first,
  cast(value ->> 2 as bigint) as last, cast(value ->> 3 as bigint) as outer_first,
  cast(value ->> 4 as bigint) as outer_last
  from json_array_elements(cast($2 as json)) as j (value) */
) as d
/*sqlite join tasks as t on t.id in (select id from tasks where {_IN_DAY})*/
/*postgres cross join lateral (select * from tasks where {_IN_DAY}) as t*/
order by d.day, t.due_at, t.id
"""


async def of_days(tx: Tx, actor: Actor, days: Sequence[int]) -> Mapping[int, Sequence[Due]]:
    """Return up to MOST tasks of each day, the earliest first, open or done. Raises forbidden.

    Days are in the owner's time zone, in the stored form of bare dates. It is one statement.
    """
    actor.must("read")
    spans = []
    for day in days:
        first, last = dates.begin(day, actor.zone), dates.begin(day + DAY, actor.zone) - 1
        spans.append([day, first, last, min(day, first), max(day, last)])
    by_day: dict[int, list[Due]] = {day: [] for day in days}
    for row in await tx.all(_OF_DAYS, actor.owner_id, dumps(spans), MOST):
        due = Due(
            row["id"], row["title"], row["due_at"], bool(row["due_day"]), bool(row["completed"])
        )
        by_day[row["day"]].append(due)
    return by_day
