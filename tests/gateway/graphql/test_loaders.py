"""Loads of many objects: one transaction, each key once, refusals for those who asked."""

import asyncio
from collections.abc import Mapping, Sequence

from gateway.graphql.request_context import Loaders
from outbox.database.transaction import Database, Tx
from tests.support.counted import Counted


async def lengths(tx: Tx, keys: Sequence[str], add: int = 0) -> Mapping[str, int]:
    row = await tx.one("select 1 as one")
    assert row is not None
    return {key: len(key) + add for key in keys if key != "none"}


async def test_fields_of_one_level_share_a_transaction(db: Database) -> None:
    counted = Counted(db)
    loaders = Loaders(counted.read)

    async def deep(key: str, depth: int) -> int | None:
        return await loaders.load(lengths, key) if depth == 0 else await deep(key, depth - 1)

    async def field(key: str, depth: int) -> int | None:
        return await asyncio.create_task(deep(key, depth)) if depth else await deep(key, 0)

    found = await asyncio.gather(
        field("a", 0), field("bb", 1), field("a", 1), field("none", 0), loaders.load(lengths, "ccc")
    )
    assert [*found] == [1, 2, 1, None, 3]
    assert (counted.units, len(counted.statements)) == (1, 1)
    again = await asyncio.gather(
        loaders.load(lengths, "a"), loaders.load(lengths, "a", 10), loaders.load(lengths, "dd", 10)
    )
    assert [*again] == [1, 11, 12]
    assert (counted.units, len(counted.statements)) == (2, 2)
    loaders.forget()
    assert await loaders.load(lengths, "a") == 1
    assert counted.units == 3


async def test_a_fault_of_the_database_reaches_everybody(db: Database) -> None:
    async def broken(tx: Tx, keys: Sequence[str]) -> Mapping[str, int]:
        await tx.all("select none from nowhere")
        return {}

    loaders = Loaders(db.read)
    found = await asyncio.gather(
        loaders.load(broken, "x"), loaders.load(lengths, "abc"), return_exceptions=True
    )
    assert all(isinstance(one, Exception) for one in found)


async def test_a_caller_who_left_disturbs_nobody(db: Database) -> None:
    loaders = Loaders(db.read)
    left, stays = loaders.load(lengths, "a"), loaders.load(lengths, "bb")
    left.cancel()
    assert await stays == 2
