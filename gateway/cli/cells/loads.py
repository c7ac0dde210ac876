"""How much each cell has to do, and which owners to move for balance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from outbox.database.transaction import Row, Tx
from outbox.durations import DAY, HOUR
from outbox.queue.state.attempt_counts import EVENT

WITHIN = 0.1
"""How far from the mean the load of a cell may be, as a part of it."""
_SINCE = "f.at >= $1"
_EVENTS = f"select sum(f.count) from figures f where {_SINCE} and f.result = '{EVENT}'"
_COUNTS = f"""
select (select count(*) from users) as owners, (select count(*) from stores) as stores,
  ({_EVENTS}) as day, ({_EVENTS.replace("$1", "$2")}) as hour
"""
_LOADS = f"""
select u.id, u.email, coalesce(sum(f.count), 0) as load
from users u
left join (
  select f.subject_id as owner_id, f.count from figures f where {_SINCE} and f.result = '{EVENT}'
  union all
  select w.owner_id, f.count from figures f join webhooks w on w.id = f.subject_id where {_SINCE}
) f on f.owner_id = u.id
where not exists (select 1 from owners o where o.id = u.id and o.state <> 'here')
group by u.id, u.email order by load desc, u.id
"""


@dataclass(frozen=True, slots=True)
class Counts:
    """What a cell has: accounts, stores, and the events of the last day and of the last hour."""

    owners: int
    stores: int
    day: int
    hour: int


@dataclass(frozen=True, slots=True)
class Owner:
    """An account and its load: events and attempts of the last day."""

    email: str
    load: int


@dataclass(frozen=True, slots=True)
class Step:
    """One move of a plan."""

    email: str
    source: str
    target: str
    load: int


@dataclass
class _Cell:
    name: str
    owners: list[Owner]
    load: int = field(init=False)

    def __post_init__(self) -> None:
        self.load = sum(owner.load for owner in self.owners)


async def counts(tx: Tx) -> Counts:
    """Count what a cell has."""
    row = await tx.one(_COUNTS, tx.now - DAY, tx.now - HOUR)
    assert row is not None
    return Counts(row["owners"], row["stores"], int(row["day"] or 0), int(row["hour"] or 0))


async def owners(tx: Tx) -> list[Owner]:
    """Return the accounts of a cell that may move, the one with the most load first."""
    rows: Sequence[Row] = await tx.all(_LOADS, tx.now - DAY)
    return [Owner(row["email"], int(row["load"])) for row in rows]


def plan(cells: Mapping[str, Sequence[Owner]]) -> list[Step]:
    """Return the moves after which all cells have about the same load.

    Each goes from the cell with the most load to that with the least, and takes the owner who
    brings both nearest to the mean. It ends when all are within a tenth of the mean, or when no
    move brings them nearer.
    """
    stands = [_Cell(name, list(owners)) for name, owners in cells.items()]
    mean = sum(cell.load for cell in stands) / max(len(stands), 1)
    steps: list[Step] = []
    while stands and mean:
        most, least = max(stands, key=_load), min(stands, key=_load)
        if max(most.load - mean, mean - least.load) <= WITHIN * mean:
            break
        wanted = min(most.load - mean, mean - least.load)
        fitting = [owner for owner in most.owners if 0 < owner.load < most.load - least.load]
        if not fitting:
            break
        owner_moved = min(fitting, key=lambda owner: abs(owner.load - wanted))
        most.owners.remove(owner_moved)
        least.owners.append(owner_moved)
        most.load -= owner_moved.load
        least.load += owner_moved.load
        steps.append(Step(owner_moved.email, most.name, least.name, owner_moved.load))
    return steps


def _load(cell: _Cell) -> tuple[int, str]:
    return cell.load, cell.name
