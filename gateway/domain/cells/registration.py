"""Keeps the directory true to what this cell has stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import structlog

from gateway.domain.cells.directory import PAGE, CellDirectory, Kind, Name
from outbox.database.claims import Claim
from outbox.database.sql import IDS, items
from outbox.database.transaction import Database, Row, Tx

_HERE = """
not exists (select 1 from owners o where o.id = {0} and o.state not in ('here', 'copying'))
"""
KINDS: Mapping[Kind, str] = {
    "email": "select folded_email as value, id as owner_id from users",
    # One that rests is not free for the owners of other cells either.
    "hostname": (
        "select h.value, s.owner_id from store_hosts h join stores s on s.id = h.record_id"
        " union all select f.value, f.owner_id from freed_hosts f"
        " where not exists (select 1 from store_hosts h where h.value = f.value)"
    ),
    "owner": (
        "select id as value, id as owner_id from owners where state = 'here' and move_id <> ''"
    ),
    "key": (
        "select k.visible as value, k.owner_id from api_keys k join owners o on o.id = k.owner_id"
        " where o.state = 'here' and o.move_id <> '' and k.revoked_at is null"
    ),
}
"""The names of each kind that this cell has stored."""
_STORED = "select value from ({names}) as stored where value in {ids}"
_OF = "select value from ({names}) as stored where owner_id = $1 order by value"
_PAGE = """
select value, owner_id from ({names}) as stored where value > $1 and {here}
order by value limit $2
"""

log = structlog.get_logger("gateway")


class Registration:
    """The duties of a cell in the directory."""

    def __init__(self, db: Database, directory: CellDirectory, cell: str) -> None:
        self._db = db
        self._directory = directory
        self._cell = cell

    async def settle(self) -> None:
        """Keep or free the names that were reserved a minute ago."""
        while names := await self._directory.unsettled():
            stored = await self._db.read(_stored, names)
            freed = [name for name in names if name not in stored]
            await self._directory.settle(sorted(stored), freed)
            if len(names) < PAGE:
                return

    async def register(self) -> None:
        """Enter all names that this cell has stored, and offer those it has no longer to `settle`.

        It logs a name that another cell has.
        """
        for kind in KINDS:
            after = ""
            while rows := await self._db.read(_page, kind, after):
                names = [Name(kind, row["value"], self._cell, row["owner_id"]) for row in rows]
                for taken in await self._directory.enter(names):
                    log.warning("name_taken_twice", kind=kind, owner_id=taken.owner_id)
                after = rows[-1]["value"]
            await self._give_up(kind)

    async def _give_up(self, kind: Kind) -> None:
        after = ""
        while page := await self._directory.page(kind, after):
            mine = {(kind, claim.value): claim for claim in page if claim.cell == self._cell}
            stored = await self._db.read(_stored, list(mine))
            await self._directory.reserve(
                [
                    Claim(kind, claim.value, claim.owner_id, holds=False)
                    for key, claim in mine.items()
                    if key not in stored
                ]
            )
            after = page[-1].value


async def _stored(tx: Tx, names: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return those of the names that this database has."""
    stored = set()
    for kind, text in KINDS.items():
        values = items([value for one, value in names if one == kind])
        rows = await tx.all(_STORED.format(names=text, ids=IDS), values)
        stored |= {(str(kind), str(row["value"])) for row in rows}
    return stored


async def names_of(tx: Tx, owner_id: str, cell: str) -> list[Name]:
    """Return the names of an owner, as those of a cell."""
    return [
        Name(kind, row["value"], cell, owner_id)
        for kind, text in KINDS.items()
        for row in await tx.all(_OF.format(names=text), owner_id)
    ]


async def _page(tx: Tx, kind: Kind, after: str) -> list[Row]:
    here = _HERE.format("stored.owner_id")
    return await tx.all(_PAGE.format(names=KINDS[kind], here=here), after, PAGE)
