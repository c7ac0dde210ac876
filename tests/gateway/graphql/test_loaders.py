"""Loads of many objects: one transaction, each key once, refusals for those who asked."""

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from gateway.graphql.loaders import Loaders
from gateway.records.errors import Refusal
from outbox.database.transaction import Database, Tx


async def lengths(tx: Tx, keys: Sequence[str], add: int = 0) -> Mapping[str, int]:
    row = await tx.one("select 1 as one")
    assert row is not None
    return {key: len(key) + add for key in keys if key != "none"}


async def refuse(tx: Tx, keys: Sequence[str]) -> Mapping[str, int]:
    raise Refusal("forbidden", f"Not {keys}.")


async def test_a_refusal_reaches_only_those_who_asked(db: Database) -> None:
    loaders = Loaders(db.read)
    refused, known = loaders.load(refuse, "x"), loaders.load(lengths, "abc")
    assert await known == 3
    with pytest.raises(Refusal):
        await refused


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
