"""What a cell knows of itself and of the other cells.

Without a name there is one installation: credentials have no mark, nobody is elsewhere, and there
is no directory.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gateway.domain.cells.directory import CellDirectory, Kind
from gateway.domain.cells.marks import mark_of, marked
from gateway.records.errors import Refusal, misdirected, moving
from outbox.database.transaction import Database, Tx


class Cells:
    """This cell, by its `name`, and the addresses of the others by their names."""

    def __init__(
        self,
        db: Database,
        name: str = "",
        addresses: Mapping[str, str] = MappingProxyType({}),
        directory: CellDirectory | None = None,
    ) -> None:
        self._db = db
        self._name = name
        self._addresses = addresses
        self.directory = directory

    def marked(self, credential: str, owner_id: str) -> str:
        """Return a new credential of an owner, with the name of this cell."""
        return marked(credential, self._name, owner_id)

    async def of_credential(self, text: str) -> Refusal | None:
        """Return the refusal of a credential that is unknown here, if another cell may know it."""
        mark = mark_of(text) if self._name else None
        if mark is None:
            return None
        if mark.owner_id in self._db.elsewhere:
            # During a move the rows of the credential may be gone here, or not here yet.
            home = self._db.elsewhere[mark.owner_id]
            return moving() if home is None else misdirected(*home)
        address = self._addresses.get(mark.cell)
        if address is None or await self._db.read(_is_here, mark.owner_id):
            return None
        return misdirected(mark.cell, address)

    async def of_name(self, kind: Kind, value: str) -> Refusal | None:
        """Return the refusal of a name that is unknown here, if another cell has it."""
        cell = None if self.directory is None else await self.directory.find(kind, value)
        address = None if cell is None else self._addresses.get(cell)
        return None if cell is None or address is None else misdirected(cell, address)

    async def close(self) -> None:
        """Close the connections to the directory."""
        if self.directory is not None:
            await self.directory.close()


async def _is_here(tx: Tx, owner_id: str) -> bool:
    return await tx.one("select id from users where id = $1", owner_id) is not None
