"""Copy all rows of one owner between two databases in one transaction of each, and compare them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing

from gateway.cli.moving.moved_rows import COUNTED, TABLES, Digest, Rings, changed
from gateway.domain.product_ownership import OWNERSHIP
from outbox.database.exclusive import Exclusive
from outbox.database.ownership import of_owner
from outbox.database.sql import insert
from outbox.database.transaction import Tx
from outbox.database.transfer import Table
from outbox.errors import CannotStart
from outbox.queue.upkeep.owner_moves import Renumbering, number, passage, settled_here


class OwnerCopy:
    """One copy; `rings` are those of the source and of the target, where they have keys."""

    def __init__(
        self,
        owner_id: str,
        ends: tuple[Exclusive, Exclusive],
        rings: Rings,
        seen: Callable[[float, str], None],
    ) -> None:
        self.rows = 0
        self._owner_id = owner_id
        self._source, self._target = ends
        self._rings = rings
        self._seen = seen

    async def copy(self, source: Tx, target: Tx) -> None:
        """Copy every table and compare it. Raise CannotStart when one differs."""
        on_the_way = await passage(source, target, self._owner_id)
        await number(target, source, self._owner_id, on_the_way)
        for place, table in enumerate(TABLES):
            self._seen(place / len(TABLES), table)
            await self._table(table, target, on_the_way)
        await settled_here(target, self._owner_id)

    async def _table(self, name: str, target: Tx, on_the_way: Renumbering) -> None:
        there, here = await self._source.shape(name), await self._target.shape(name)
        kinds = {column.name: column for column in here.table.columns}
        condition = of_owner(OWNERSHIP, name)
        if name in COUNTED:
            await target.run(f"delete from {name} where {condition}", self._owner_id)
        names = there.table.names
        table = Table(name, tuple(kinds[one] for one in names), 0)
        select = f"select {', '.join(names)} from {name} where {condition}"
        order = f" order by {there.generated}" if there.generated else ""
        sent, stored = Digest(), Digest()
        async with aclosing(self._source.rows(select + order, self._owner_id)) as batches:
            async for batch in batches:
                rows = self._target.fitted(
                    table,
                    [
                        tuple(changed(name, names, row, on_the_way, self._rings).values())
                        for row in batch
                    ],
                )
                await insert(target, name, names, rows)
                sent.add(rows)
        async with aclosing(self._target.rows(select, self._owner_id)) as batches:
            async for batch in batches:
                stored.add(batch)
        if sent.value != stored.value:
            raise CannotStart(
                f"{name} has {stored.count} rows of the owner in the target instead of "
                f"{sent.count}, or other ones; nothing is stored there"
            )
        self.rows += sent.count
