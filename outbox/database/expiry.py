"""Delete the rows of a table whose time is over, a bounded number at a time."""

from __future__ import annotations

from dataclasses import dataclass

from outbox.database.index_plans import by_index
from outbox.database.transaction import Tx


@dataclass(frozen=True, slots=True)
class Expiry:
    """How long the rows of a table live: `kept` microseconds after the time in `column`.

    `key` are the columns that name a row. A row that somebody holds is deleted later.
    """

    table: str
    key: str
    column: str = "expires_at"
    kept: int = 0

    @property
    def text(self) -> str:
        """The statement; its parameters are the latest time that is over, and a limit."""
        return (
            f"delete from {self.table} where ({self.key}) in (select {self.key} from {self.table}"
            f" where {self.column} <= $1 order by {self.column} limit $2"
            " /*postgres for update skip locked*/)"
        )

    async def purge(self, tx: Tx, limit: int) -> int:
        """Delete up to `limit` rows whose time is over; return how many.

        A duty runs it by the clock that is behind: see outbox.database.times.
        """
        await by_index(tx)
        return await tx.run(self.text, tx.now - self.kept, limit)
