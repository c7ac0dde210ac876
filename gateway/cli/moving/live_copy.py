"""Copy the rows of one owner while he uses them: all of them once, then what has changed since.

A snapshot keeps each row that the queue is done with, and each turn of the drain walks these. So
the first copy lists the keys in one snapshot, and reads a page of rows in one of its own. A row
that has changed meanwhile may not fit: the first pass copies it.

Each pass reads one snapshot of the source. What is stored is read again and compared, so the target
has at the end of a pass what that snapshot has. Where many changes are noted, most of them are
copied before the pass, each PART of them by a snapshot of its own; a part whose rows do not fit
without later changes takes these as well.

It is one module because the first copy and the passes read, fit and compare rows in the same way.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from itertools import islice
from math import inf
from typing import IO, Any

from gateway.cli.moving.moved_rows import COUNTED, QUEUED_MAIL, TABLES, Digest, Rings, changed
from gateway.domain.product_ownership import OWNERSHIP
from outbox.database.ownership import of_owner
from outbox.database.pacing import JobPace
from outbox.database.postgres.move_connection import MoveConnection
from outbox.database.sql import insert
from outbox.database.transaction import Row, Tx, Values
from outbox.database.transfer import Table
from outbox.errors import CannotStart
from outbox.queue.proof.chain_walk import Key as AttemptKey
from outbox.queue.upkeep import owner_moves
from outbox.queue.upkeep.owner_moves import FAR, Renumbering

TOUCH_SECONDS = 600.0
"""How often a copy tells the servers that it goes on."""
CHUNK = 1_000
"""Keys of a statement."""
PART = 5_000
"""Changes that are copied in one transaction."""
WHOLE = "[]"
"""The key of a table that is copied as a whole."""
LEFT_OUT = {"events": " and seq is not null", "remainders": " and false"}
"""Rows that fan-out has not done with; none are left when the owner leaves."""
COUNTS = " union all ".join(
    f"select '{table}' as name, count(*) as count from {table}"
    f" where ({of_owner(OWNERSHIP, table)}){LEFT_OUT.get(table, '')}"
    for table in TABLES
)


class LiveCopy:
    """The copy of one owner between `ends`, source and target."""

    def __init__(
        self,
        owner_id: str,
        ends: tuple[MoveConnection, MoveConnection],
        rings: Rings,
        seen: Callable[[float, str], None],
        pace: JobPace,
    ) -> None:
        self.rows = 0
        self.is_compared = False
        """Whether both ends had as many rows at the end of a pass."""
        self._attempts: list[AttemptKey] = []
        self._touched = ends[1].clock.monotonic()
        self._owner_id = owner_id
        self._source, self._target = ends
        self._rings = rings
        self._seen = seen
        self._pace = pace
        self._passage: Renumbering | None = None

    async def all(self) -> None:
        """Copy every table. Raise CannotStart when one differs."""
        with tempfile.TemporaryFile("w+", encoding="utf-8") as keys:
            counts = await self._listed(keys)
            keys.seek(0)
            done, total = 0, sum(counts.values())
            for table, left in counts.items():
                while left:
                    self._seen(done / total, table)
                    page = [line.rstrip("\n") for line in islice(keys, min(left, CHUNK))]
                    async with self._pace.step():
                        await self._take(table, page)
                    done, left = done + len(page), left - len(page)
                    await self._go_on()

    async def _listed(self, file: IO[str]) -> dict[str, int]:
        """Write the keys of all rows into a file, a line each; return their number by table."""
        counts = dict.fromkeys(TABLES, 0)
        async with self._source.snapshot() as source:
            await self._number(source)
            for table in TABLES:
                if await self._is_whole(table):
                    file.write(f"{WHOLE}\n")
                    counts[table] = 1
                    continue
                key = ", ".join(await self._source.key(table))
                text = await self._chosen(table, f"cast(json_build_array({key}) as text)")
                async with aclosing(self._source.rows(text, self._owner_id)) as batches:
                    async for rows in batches:
                        file.writelines(f"{line}\n" for (line,) in rows)
                        counts[table] += len(rows)
        return counts

    async def _take(self, table: str, keys: Sequence[str]) -> None:
        """Copy the rows of these keys, or leave them to the first pass."""
        unit = self._replaced if await self._is_whole(table) else self._page
        count = await self._target.fitting(unit, table, keys)
        if count is None:
            await self._source.step(owner_moves.note, self._owner_id, table, keys)
        else:
            self.rows += count

    async def _page(self, target: Tx, table: str, keys: Sequence[str]) -> int:
        names, order = ", ".join(await self._names(table)), await self._order(table)
        text = f"select {names} from {table} where "
        here = f"{text}{await self._source.among(table)}{_left_out(table)}{order}"
        there = f"{text}{await self._target.among(table)}"
        async with self._source.snapshot():
            return await self._send(table, here, there, f"[{','.join(keys)}]")

    async def _replaced(self, target: Tx, table: str, keys: Sequence[str]) -> int:
        async with self._source.snapshot():
            return await self._replace(target, table)

    async def _send(self, table: str, here: str, there: str, value: str) -> int:
        """Copy what a query finds, and compare it with what a query finds there; count it."""
        sent, stored = Digest(), Digest()
        names = await self._names(table)
        async with aclosing(self._source.rows(here, value)) as batches:
            async for batch in batches:
                rows = await self._fitted(table, batch)
                await self._target.fill(table, names, rows)
                sent.add(rows)
        async with aclosing(self._target.rows(there, value)) as batches:
            async for batch in batches:
                stored.add(batch)
        self._compare(table, sent, stored)
        return sent.count

    async def parts(self) -> int:
        """Copy what has changed, in parts, as long as that leaves fewer changes than before.

        Return how many were copied; `changes` is left to do.
        """
        copied, before = 0, inf
        left = await self._source.step(owner_moves.count_changes, self._owner_id)
        while PART < left < before:
            for _ in range(left // PART):
                async with self._pace.step():
                    copied += await self._part(PART)
                await self._go_on()
            before = left
            left = await self._source.step(owner_moves.count_changes, self._owner_id)
        return copied

    async def _part(self, most: int) -> int:
        """Copy the first `most` changes, or more of them where these do not fit alone.

        Tables that are copied as a whole are left to the pass.
        """
        async with self._source.snapshot() as source:
            noted = await owner_moves.changes(source, self._owner_id, most)
            await self._number(source)
            names = {row["name"] for row in noted}
            later = {name for name in names if await self._is_whole(name)}
            now = [row for row in noted if row["name"] not in later]
            # With all changes it is one snapshot, which fits.
            unit = self._target.step if len(noted) < most else self._target.fitting
            fits = await unit(self._apply, source, now) is not None
        if not fits:
            return await self._part(2 * most)
        await self._forget(noted, later)
        return len(noted)

    async def changes(self, *, compare: bool = False) -> int:
        """Copy what has changed since the pass before; return how many changes were noted.

        To `compare` the number of all rows takes time that grows with them. Raise CannotStart.
        """
        async with self._source.snapshot() as source:
            noted = await owner_moves.changes(source, self._owner_id)
            await self._number(source)
            await self._target.step(self._apply, source, noted)
            if compare:
                await self._must_be_equal(source)
        await self._forget(noted, ())
        await self._source.step(owner_moves.touch, self._owner_id)
        await self._target.step(owner_moves.touch, self._owner_id)
        return len(noted)

    async def _forget(self, noted: Sequence[Row], later: Iterable[str]) -> None:
        """Forget what is copied; note tables for `later`."""
        self._attempts += [
            tuple(json.loads(row["key"])) for row in noted if row["name"] == "attempts"
        ]
        await self._source.step(_forget, self._owner_id, [row["number"] for row in noted], later)

    def take_attempts(self) -> Sequence[AttemptKey]:
        """Return the keys of attempts that passes have stored since this was asked before."""
        taken, self._attempts = self._attempts, []
        return taken

    async def _must_be_equal(self, source: Tx) -> None:
        """Raise CannotStart when a table has another number of rows in the target."""
        async with self._target.snapshot() as target:
            there, here = await asyncio.gather(
                source.all(COUNTS, self._owner_id), target.all(COUNTS, self._owner_id)
            )
        self.is_compared = True
        stored = {row["name"]: row["count"] for row in here}
        for row in there:
            if row["count"] != stored[row["name"]]:
                raise CannotStart(
                    f"{row['name']} has {stored[row['name']]} rows of the owner in the target "
                    f"instead of {row['count']}"
                )

    async def _number(self, source: Tx) -> None:
        passage = self._passage
        if passage is None:
            async with self._target.snapshot() as target:
                passage = await owner_moves.passage(source, target, self._owner_id)
        self._passage = passage
        # Fan-out of the target's own events holds this lock for a moment.
        await self._target.step(owner_moves.number, source, self._owner_id, passage)

    async def _go_on(self) -> None:
        now = self._target.clock.monotonic()
        if now - self._touched >= TOUCH_SECONDS:
            self._touched = now
            await self._target.step(owner_moves.touch, self._owner_id)

    async def _apply(self, target: Tx, source: Tx, noted: Sequence[Row]) -> int:
        """Let the target have the rows of noted keys as they are in the source; count these."""
        keys: dict[str, dict[str, None]] = {}
        for row in noted:
            keys.setdefault(row["name"], {})[row["key"]] = None
        rows: dict[str, list[Values]] = {}
        for table in reversed(TABLES):
            if table in keys and not await self._is_whole(table):
                rows[table] = await self._changed(table, keys[table], source, target)
        for table in TABLES:
            if table in rows:
                await self._store(target, table, keys[table], rows[table])
            elif table in keys:
                await self._replace(target, table)
        return len(noted)

    async def _changed(
        self, table: str, keys: Iterable[str], source: Tx, target: Tx
    ) -> list[Values]:
        """Return the rows of these keys, and delete those that vanished."""
        shape = await self._source.shape(table)
        names, key = shape.table.names, await self._source.key(table)
        places = [names.index(name) for name in key]
        among = await self._source.among(table)
        order = await self._order(table)
        vanished = {tuple(json.loads(text)): text for text in keys}
        rows: list[Values] = []
        for part in _parts(list(keys)):
            text = f"select {', '.join(names)} from {table} where {among}{_left_out(table)}{order}"
            rows += [_values(names, row) for row in await source.all(text, f"[{','.join(part)}]")]
        for row in rows:
            vanished.pop(tuple(_known(row[place]) for place in places), None)
        for part in _parts(list(vanished.values())):
            await self._delete(target, table, key, f"[{','.join(part)}]")
        if not await self._target.is_referenced(table):
            # In another order, two rows could have for a moment what only one may have.
            for part in _parts(list(keys)):
                await target.run(*await self._deletion(table, f"[{','.join(part)}]"))
        return rows

    async def _deletion(self, table: str, keys: str) -> tuple[str, str]:
        return f"delete from {table} where {await self._target.among(table)}", keys

    async def _delete(self, target: Tx, table: str, key: Sequence[str], keys: str) -> None:
        """Delete rows, and those of tables that belong to the owner only by them."""
        for child, ways in OWNERSHIP.items():
            if not isinstance(ways, tuple):
                continue
            parents = {way.parent for way in ways} - {None}
            if parents == {table}:
                for way in ways:
                    if way.parent is not None and key == (way.key,):
                        await target.run(
                            f"delete from {child} where {way.column} in (select value ->> 0"
                            " from json_array_elements(cast($1 as json)) as items(value))",
                            keys,
                        )
        await target.run(*await self._deletion(table, keys))

    async def _store(
        self, target: Tx, table: str, keys: Iterable[str], values: Sequence[Values]
    ) -> None:
        names, key = await self._names(table), await self._target.key(table)
        rows = await self._fitted(table, values)
        others = ", ".join(f"{name} = excluded.{name}" for name in names if name not in key)
        change = f"do update set {others}" if others else "do nothing"
        await insert(target, table, names, rows, f"on conflict ({', '.join(key)}) {change}")
        sent, stored = Digest(), Digest()
        sent.add(rows)
        text = f"select {', '.join(names)} from {table} where {await self._target.among(table)}"
        for part in _parts(list(keys)):
            stored.add(
                [_values(names, row) for row in await target.all(text, f"[{','.join(part)}]")]
            )
        self._compare(table, sent, stored)

    async def _replace(self, target: Tx, table: str) -> int:
        await target.run(f"delete from {table} where {_of(table)}", self._owner_id)
        text = await self._chosen(table, ", ".join(await self._names(table)))
        return await self._send(table, text, text, self._owner_id)

    async def _is_whole(self, table: str) -> bool:
        """Return whether the rows of a table are copied all or none."""
        return table in COUNTED or not await self._source.key(table)

    async def _names(self, table: str) -> tuple[str, ...]:
        return (await self._source.shape(table)).table.names

    async def _chosen(self, table: str, columns: str) -> str:
        order = await self._order(table)
        return f"select {columns} from {table} where {_of(table)}{_left_out(table)}{order}"

    async def _order(self, table: str) -> str:
        generated = (await self._source.shape(table)).generated
        return f" order by {generated}" if generated else ""

    async def _fitted(self, name: str, rows: Sequence[Values]) -> Sequence[Values]:
        assert self._passage is not None
        names = await self._names(name)
        kinds = {one.name: one for one in (await self._target.shape(name)).table.columns}
        rows_there = []
        for values in rows:
            row = changed(name, names, values, self._passage, self._rings)
            if name in QUEUED_MAIL and row["due_at"] is not None:
                # Nothing is sent here before the owner has arrived.
                row["due_at"] += FAR
            rows_there.append(tuple(row.values()))
        return self._target.fitted(Table(name, tuple(kinds[one] for one in names), 0), rows_there)

    def _compare(self, table: str, sent: Digest, stored: Digest) -> None:
        if sent.value != stored.value:
            raise CannotStart(
                f"{table} has {stored.count} rows of the owner in the target instead of "
                f"{sent.count}, or other ones; repeat the command"
            )


async def _forget(source: Tx, owner_id: str, numbers: Sequence[int], later: Iterable[str]) -> None:
    await owner_moves.applied(source, numbers)
    for table in later:
        await owner_moves.note(source, owner_id, table, [WHOLE])


def _values(names: Sequence[str], row: Row) -> Values:
    return tuple(row[name] for name in names)


def _known(value: Any) -> Any:
    """Return a value of a key as JSON has it."""
    return "\\x" + bytes(value).hex() if isinstance(value, bytes | memoryview) else value


def _of(table: str) -> str:
    return f"({of_owner(OWNERSHIP, table)})"


def _left_out(table: str) -> str:
    return LEFT_OUT.get(table, "")


def _parts(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(keys), CHUNK):
        yield keys[start : start + CHUNK]
