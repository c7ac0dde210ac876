"""The directory of cells: which cell has a name that is unique over all of them.

It is a PostgreSQL database of its own with one table. A cell reserves a name before it commits, in
the transaction that stores it; within the cell its own constraints decide. A name whose reservation
is a minute old is settled by the cell that made it: kept if the cell has stored it, else deleted,
as only that cell can know. No transaction of a request lives that long: see
outbox.database.postgres.limits. Cells work without the directory, except for new accounts and
hostnames.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Concatenate, Literal

from gateway.records.errors import Fault, Refusal
from outbox.database import locks
from outbox.database.claims import Claim
from outbox.database.sql import items
from outbox.database.transaction import Database, P, Row, T, Tx, commits
from outbox.errors import DatabaseUnavailable

Kind = Literal["email", "hostname", "owner", "key"]
"""`owner` and `key`, the visible part of an API key, are those of owners who have moved."""
PATIENCE_SECONDS = 1.5
"""A transaction may be idle for two seconds; then PostgreSQL ends it."""
KNOWN_SECONDS = 5.0
KNOWN_MOST = 1_000
RESERVED = "interval '1 minute'"
PAGE = 500
TAKEN = {
    "email": "A user with this e-mail address already exists.",
    "hostname": "Another store has this hostname; send another one.",
}
SCHEMA = (
    f"select pg_advisory_xact_lock(own_lock({locks.CELL_NAMES}))",
    """create table if not exists names (
  kind text not null,
  value text not null,
  cell text not null,
  owner_id text not null,
  settled boolean not null,
  changed_at timestamptz not null default now(),
  primary key (kind, value)
)""",
    "create index if not exists names_unsettled on names (cell, changed_at) where not settled",
)
_RESERVE = """
insert into names (kind, value, cell, owner_id, settled) values ($1, $2, $3, $4, false)
on conflict (kind, value) do update
  set owner_id = excluded.owner_id, settled = false, changed_at = now()
  where names.cell = excluded.cell
returning value
"""
_GIVE_UP = """
update names set settled = false, changed_at = now()
where kind = $1 and value = $2 and cell = $3 and owner_id = $4
"""
_FIND = "select cell from names where kind = $1 and value = $2"
_UNSETTLED = f"""
select kind, value from names
where cell = $1 and not settled and changed_at < now() - {RESERVED}
order by changed_at limit $2
"""
_AMONG = (
    "(kind, value) in (select item ->> 0, item ->> 1"
    " from json_array_elements(cast($1 as json)) as items(item))"
)
_SETTLE = f"update names set settled = true where {_AMONG} and cell = $2 and not settled"
_FREE = f"""
delete from names where {_AMONG} and cell = $2 and not settled
  and changed_at < now() - {RESERVED}
"""
_ENTER = """
insert into names (kind, value, cell, owner_id, settled) values ($1, $2, $3, $4, true)
on conflict (kind, value) do update
  set cell = excluded.cell, owner_id = excluded.owner_id, settled = true, changed_at = now()
  where names.cell = excluded.cell or names.owner_id = excluded.owner_id
returning value
"""
_PAGE = """
select kind, value, cell, owner_id from names where kind = $1 and value > $2
order by value limit $3
"""


@dataclass(frozen=True, slots=True)
class Name:
    """A name, whose it is, and the cell that has him."""

    kind: str
    value: str
    cell: str
    owner_id: str


class CellDirectory:
    """The directory as the cell `cell` uses it; `db` is its database, not opened yet."""

    def __init__(self, db: Database, cell: str) -> None:
        self._db = db
        self._cell = cell
        self._ready = False
        self._found: OrderedDict[tuple[str, str], tuple[float, str | None]] = OrderedDict()

    async def reserve(self, claims: Sequence[Claim]) -> None:
        """Reserve what a unit claims, before its COMMIT: see Database.reserve.

        Raise conflict for a name that another cell has, and DatabaseUnavailable. A name that is
        given up stays reserved when the directory does not answer.
        """
        held = [claim for claim in claims if claim.holds]
        if held:
            taken = await self._asked(_reserve, self._cell, held)
            if taken is not None:
                message = TAKEN[taken.kind]
                raise Refusal("conflict", message, faults=[Fault(taken.field, "taken", message)])
        dropped = [claim for claim in claims if not claim.holds]
        if dropped:
            try:
                await self._asked(_give_up, self._cell, dropped)
            except DatabaseUnavailable:
                # The next registration frees it.
                return

    async def find(self, kind: Kind, value: str) -> str | None:
        """Return the other cell that has a name; None also when the directory does not answer."""
        now = self._db.clock.monotonic()
        known = self._found.get((kind, value))
        if known is not None and known[0] > now:
            return known[1]
        try:
            cell = await self._asked(_find, kind, value)
        except DatabaseUnavailable:
            return None
        if cell == self._cell:
            cell = None
        self._found[kind, value] = now + KNOWN_SECONDS, cell
        if len(self._found) > KNOWN_MOST:
            self._found.popitem(last=False)
        return cell

    async def unsettled(self) -> Sequence[tuple[str, str]]:
        """Return up to PAGE names, kind and value, that this cell has to settle now."""
        rows = await self._asked(_unsettled, self._cell)
        return [(row["kind"], row["value"]) for row in rows]

    async def settle(
        self, kept: Sequence[tuple[str, str]], freed: Sequence[tuple[str, str]]
    ) -> None:
        """Keep names that this cell has stored, and free those that it has not."""
        await self._asked(_settle, self._cell, kept, freed)

    async def enter(self, names: Sequence[Name]) -> Sequence[Name]:
        """Store names that this cell has, also those of an owner who has moved here.

        Return those that another owner has elsewhere.
        """
        return await self._asked(_enter, self._cell, names)

    async def page(self, kind: Kind, after: str) -> Sequence[Name]:
        """Return up to PAGE names of a kind after the value `after`, in order."""
        rows = await self._asked(_page, kind, after)
        return [Name(row["kind"], row["value"], row["cell"], row["owner_id"]) for row in rows]

    async def close(self) -> None:
        """Close the connections."""
        await self._db.close()

    async def _asked(
        self, unit: Callable[Concatenate[Tx, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        # What is committed here is no part of the request, which may still be refused as a whole.
        noted = commits.set(None)
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                if not self._ready:
                    await self._db.write(_create)
                    self._ready = True
                return await self._db.write(unit, *args, **kwargs)
        except TimeoutError:
            raise DatabaseUnavailable("busy", "the directory of cells does not answer") from None
        finally:
            commits.reset(noted)


async def _create(tx: Tx) -> None:
    for text in SCHEMA:
        await tx.one(text)


async def _reserve(tx: Tx, cell: str, claims: Sequence[Claim]) -> Claim | None:
    """Reserve names; return the first that another cell has."""
    for claim in sorted(claims, key=lambda one: (one.kind, one.value)):
        row = await tx.one(_RESERVE, claim.kind, claim.value, cell, claim.owner_id)
        if row is None:
            return claim
    return None


async def _give_up(tx: Tx, cell: str, claims: Sequence[Claim]) -> None:
    for claim in sorted(claims, key=lambda one: (one.kind, one.value)):
        await tx.run(_GIVE_UP, claim.kind, claim.value, cell, claim.owner_id)


async def _find(tx: Tx, kind: str, value: str) -> str | None:
    row = await tx.one(_FIND, kind, value)
    return None if row is None else str(row["cell"])


async def _unsettled(tx: Tx, cell: str) -> list[Row]:
    return await tx.all(_UNSETTLED, cell, PAGE)


async def _settle(
    tx: Tx, cell: str, kept: Sequence[tuple[str, str]], freed: Sequence[tuple[str, str]]
) -> None:
    if kept:
        await tx.run(_SETTLE, items(kept), cell)
    if freed:
        await tx.run(_FREE, items(freed), cell)


async def _enter(tx: Tx, cell: str, names: Sequence[Name]) -> list[Name]:
    taken = []
    for name in sorted(names, key=lambda one: (one.kind, one.value)):
        row = await tx.one(_ENTER, name.kind, name.value, cell, name.owner_id)
        if row is None:
            taken.append(name)
    return taken


async def _page(tx: Tx, kind: str, after: str) -> list[Row]:
    return await tx.all(_PAGE, kind, after, PAGE)
