"""What a cell knows of itself and of the other cells.

Without a name there is one installation: credentials have no mark, nobody is elsewhere, and there
is no directory.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gateway.domain.cells.credential_suffix import mark_of, marked
from gateway.domain.cells.directory import CellDirectory, Kind
from gateway.records.errors import Refusal, misdirected, moving
from outbox.database.transaction import Database, Tx
from outbox.queue.upkeep import owner_moves
from outbox.queue.upkeep.owner_moves import MoveState


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
        # Not what this process remembers of moves: it may not have heard of the last one.
        at, is_here = await self._db.read(_where, mark.owner_id)
        if at.state in ("here", "copying"):
            return None if is_here else self._at(mark.cell)
        # During a move the rows of the credential may be gone here, or not here yet.
        return (self._at(at.peer) if at.state == "gone" else None) or moving()

    def _at(self, cell: str) -> Refusal | None:
        """Return the refusal that names a cell; None for one that is not known."""
        address = self._addresses.get(cell)
        return None if address is None else misdirected(cell, address)

    async def of_name(self, kind: Kind, value: str) -> Refusal | None:
        """Return the refusal of a name that is unknown here, if another cell has it."""
        cell = None if self.directory is None else await self.directory.find(kind, value)
        return None if cell is None else self._at(cell)

    async def close(self) -> None:
        """Close the connections to the directory."""
        if self.directory is not None:
            await self.directory.close()


async def _where(tx: Tx, owner_id: str) -> tuple[MoveState, bool]:
    """Return how far the last move of an owner is, and whether this cell has the account."""
    at = await owner_moves.standing(tx, owner_id)
    user = await tx.one("select id from users where id = $1", owner_id)
    return at, user is not None
