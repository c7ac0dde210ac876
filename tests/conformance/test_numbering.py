"""Tests the numbers of documents on both engines: no gaps and no repeats."""

import asyncio

import pytest

from gateway.domain.sales import documents, invoices
from gateway.domain.sales.invoices import INVOICES
from gateway.domain.sales.products import PRODUCTS
from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from outbox.database.transaction import Database, Tx
from tests.support.records import asked

ANA = Actor("a" * 24, "api_key")
BIA = Actor("b" * 24, "api_key")


async def issue(db: Database, who: Actor = ANA) -> str:
    draft = asked(INVOICES, {"total": 1, "dueDate": "2999-01-01"}, creating=True)
    return str((await db.write(invoices.create, who, draft))["number"])


async def take_and_fail(tx: Tx) -> None:
    await documents.take_number(tx, ANA.owner_id, "invoices")
    raise Refusal("conflict", "no")


async def test_two_hundred_concurrent_units_get_consecutive_numbers(db: Database) -> None:
    async def fail() -> None:
        with pytest.raises(Refusal):
            await db.write(take_and_fail)

    numbers, others, _ = await asyncio.gather(
        asyncio.gather(*(issue(db) for _ in range(200))),
        asyncio.gather(*(issue(db, BIA) for _ in range(10))),
        asyncio.gather(*(fail() for _ in range(20))),
    )
    assert sorted(numbers) == [f"INV-{n:06d}" for n in range(1, 201)]
    assert sorted(others) == [f"INV-{n:06d}" for n in range(1, 11)]


async def test_a_failed_unit_returns_its_number(db: Database) -> None:
    assert await issue(db) == "INV-000001"
    with pytest.raises(Refusal):
        await db.write(take_and_fail)
    assert await issue(db) == "INV-000002"


async def test_a_series_belongs_to_one_owner_and_kind(db: Database) -> None:
    async def unit(tx: Tx) -> list[str]:
        return [
            await documents.take_number(tx, owner.owner_id, series)
            for owner, series in zip(
                (ANA, ANA, BIA, ANA), ("quotes", "orders", "quotes", "quotes"), strict=True
            )
        ]

    assert await db.write(unit) == ["Q-000001", "ORD-000001", "Q-000001", "Q-000002"]


async def test_numbers_grow_past_six_digits(db: Database) -> None:
    async def unit(tx: Tx) -> str:
        await tx.run("insert into counters (owner_id, series, n) values ('o', 'quotes', 999999)")
        return await documents.take_number(tx, "o", "quotes")

    assert await db.write(unit) == "Q-1000000"


async def test_a_unique_value(db: Database) -> None:
    """One concurrent create with the same unique value succeeds on both engines."""

    async def make() -> str:
        draft = asked(PRODUCTS, {"name": "P", "price": 1, "sku": "A"}, creating=True)
        try:
            return (await db.write(actions.create, ANA, PRODUCTS, draft)).etag
        except Refusal as refusal:
            return refusal.code

    found = await asyncio.gather(*(make() for _ in range(20)))
    assert sorted(found) == ["1"] + ["conflict"] * 19

    async def count(tx: Tx) -> int:
        row = await tx.one("select count(*) as n from products")
        assert row is not None
        return int(row["n"])

    assert await db.read(count) == 1
