"""Copy all rows of one owner between two databases in one transaction of each, and compare them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing
from typing import Any

import msgspec

from gateway.domain.ownership import OWNERSHIP, UNOWNED
from gateway.domain.sealed_columns import SEALED
from outbox.database.exclusive import Exclusive
from outbox.database.ownership import of_owner
from outbox.database.sql import insert
from outbox.database.transaction import Tx, Values
from outbox.database.transfer import Table
from outbox.errors import CannotStart
from outbox.queue.upkeep.owner_moves import FAR, Passage, passage, settled_here
from outbox.webhooks.secrets import KeyRing, SealBroken

TABLES = tuple(table for table in OWNERSHIP if table not in UNOWNED)
"""The tables with rows of owners, parents before children."""
COUNTED = frozenset({"deal_totals", "review_totals"})
"""Tables that triggers of their parents fill: what these made is replaced."""
QUEUED_MAIL = ("notices", "mails", "order_mails")
"""Tables whose `due_at` lets a mail be sent."""


class Digest:
    """The number of rows and a sum of their digests, whatever their order is."""

    def __init__(self) -> None:
        self.count = 0
        self._sum = 0

    def add(self, rows: Iterable[Values]) -> None:
        """Count rows in."""
        for row in rows:
            content = msgspec.msgpack.encode([_plain(value) for value in row])
            self._sum += int.from_bytes(hashlib.blake2b(content, digest_size=16).digest())
            self.count += 1

    @property
    def value(self) -> tuple[int, int]:
        """What two tables with the same rows have in common."""
        return self.count, self._sum


class OwnerCopy:
    """One copy; `rings` are those of the source and of the target, where they have keys."""

    def __init__(
        self,
        owner_id: str,
        ends: tuple[Exclusive, Exclusive],
        rings: tuple[KeyRing | None, KeyRing | None],
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
        for number, table in enumerate(TABLES):
            self._seen(number / len(TABLES), table)
            await self._table(table, target, on_the_way)
        await settled_here(target, self._owner_id)

    async def _table(self, name: str, target: Tx, on_the_way: Passage) -> None:
        there, here = await self._source.shape(name), await self._target.shape(name)
        kinds = {column.name: column for column in here.table.columns}
        condition = of_owner(OWNERSHIP, name)
        if name in COUNTED:
            await target.run(f"delete from {name} where {condition}", self._owner_id)
        names = there.table.names
        table = Table(name, tuple(kinds[one] for one in names), 0)
        chosen = f"select {', '.join(names)} from {name} where {condition}"
        order = f" order by {there.generated}" if there.generated else ""
        sent, stored = Digest(), Digest()
        async with aclosing(self._source.rows(chosen + order, self._owner_id)) as batches:
            async for batch in batches:
                rows = self._target.fitted(
                    table, [self._changed(name, names, row, on_the_way) for row in batch]
                )
                await insert(target, name, names, rows)
                sent.add(rows)
        async with aclosing(self._target.rows(chosen, self._owner_id)) as batches:
            async for batch in batches:
                stored.add(batch)
        if sent.value != stored.value:
            raise CannotStart(
                f"{name} has {stored.count} rows of the owner in the target instead of "
                f"{sent.count}, or other ones; nothing is stored there"
            )
        self.rows += sent.count

    def _changed(
        self, table: str, names: Sequence[str], values: Values, on_the_way: Passage
    ) -> Values:
        row = dict(zip(names, values, strict=True))
        on_the_way.change(table, row)
        if table in QUEUED_MAIL and (row["due_at"] or 0) >= FAR:
            row["due_at"] -= FAR
        bound, sealed = SEALED.get(table, ("", ()))
        for name in sealed:
            if row[name] is not None:
                row[name] = resealed(bytes(row[name]), row[bound], *self._rings)
        return tuple(row.values())


def resealed(value: bytes, bound: str, old: KeyRing | None, new: KeyRing | None) -> bytes:
    """Return a sealed value for another ring; unchanged, if it opens it or the old one does not."""
    if old is None or new is None:
        return value
    try:
        new.open(value, bound)
    except SealBroken:
        try:
            return new.seal(old.open(value, bound), bound)
        except SealBroken:
            return value
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return bytes(value) if isinstance(value, memoryview) else value
