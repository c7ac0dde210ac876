"""A transaction that waited for others is older than their changes: no record's time goes back."""

import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from gateway.domain.contacts.companies import COMPANIES
from gateway.domain.contacts.contacts import CONTACTS
from gateway.domain.sales import unpaid
from gateway.domain.sales.deals import DEALS
from gateway.domain.sales.products import PRODUCTS
from gateway.records import actions, cascades
from gateway.records.audit import Actor
from gateway.records.resource import Resource
from outbox.database.transaction import Database, Tx
from outbox.durations import SECOND
from tests.architecture.tree import ROOT
from tests.support.drain import rows
from tests.support.records import asked, listed

ANA = Actor("a" * 24, "api_key")
LATE = 20 * SECOND


async def create(db: Database, resource: Resource, **body: Any) -> str:
    draft = asked(resource, body, creating=True)
    return str((await db.write(actions.create, ANA, resource, draft)).id)


async def late(db: Database, unit: Callable[[Tx], Awaitable[object]]) -> None:
    """Run a unit as if it had begun long before it got its locks."""

    async def waited(tx: Tx) -> None:
        tx.now -= LATE
        await unit(tx)

    await db.write(waited)


async def changed_at(db: Database, resource: Resource, record_id: str) -> int:
    async def unit(tx: Tx) -> int:
        row = await tx.one(
            f"select coalesce(updated_at, created_at) as at from {resource.table} where id = $1",
            record_id,
        )
        assert row is not None
        return int(row["at"])

    return await db.read(unit)


@pytest.mark.parametrize("first", ["created", "changed"])
async def test_a_late_change_keeps_the_time_of_the_one_before(db: Database, first: str) -> None:
    contact = await create(db, CONTACTS, name="Ana")
    if first == "changed":
        await db.write(actions.change, ANA, CONTACTS, contact, asked(CONTACTS, {"name": "Bia"}))
    before = await changed_at(db, CONTACTS, contact)
    told = []

    async def change(tx: Tx) -> None:
        told.append(
            await actions.change(tx, ANA, CONTACTS, contact, asked(CONTACTS, {"name": "Cy"}))
        )

    await late(db, change)
    record = await db.read(actions.read, ANA, CONTACTS, contact)
    assert await changed_at(db, CONTACTS, contact) == before
    assert (record["name"], record.shown("updatedAt")) == ("Cy", told[0].shown("updatedAt"))
    _, shown, _ = await listed(db, ANA, CONTACTS, {"updatedSince": str(told[0].shown("updatedAt"))})
    assert len(shown) == 1
    # The next change that is not late has its own time.
    await db.write(actions.change, ANA, CONTACTS, contact, asked(CONTACTS, {"name": "Di"}))
    assert await changed_at(db, CONTACTS, contact) > before


async def test_a_late_delete_keeps_the_times_of_what_referred_to_it(db: Database) -> None:
    company = await create(db, COMPANIES, name="Acme")
    friend = await create(db, CONTACTS, name="Bia")
    contact = await create(db, CONTACTS, name="Ana", companyId=company)
    deal = await create(db, DEALS, title="Deal", value=1, contactIds=[contact, friend])
    for resource, ended, referring, other in (
        (COMPANIES, company, CONTACTS, contact), (CONTACTS, friend, DEALS, deal),
    ):  # fmt: skip
        before = await changed_at(db, referring, other)
        version = (await db.read(actions.read, ANA, referring, other)).version

        async def remove(tx: Tx, resource: Resource = resource, ended: str = ended) -> None:
            await actions.remove(tx, ANA, resource, ended)

        await late(db, remove)
        assert await changed_at(db, referring, other) == before
        assert (await db.read(actions.read, ANA, referring, other)).version == version + 1


async def test_so_does_the_late_end_of_a_delete_in_batches(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cascades, "MOST", 0)
    company, contact = (
        await create(db, COMPANIES, name="Acme"),
        await create(db, CONTACTS, name="B"),
    )
    deal = await create(db, DEALS, title="Deal", value=1, contactIds=[contact], companyId=company)
    before = await changed_at(db, DEALS, deal)
    for resource, ended in ((COMPANIES, company), (CONTACTS, contact)):
        await db.write(actions.remove, ANA, resource, ended)

        async def settle(tx: Tx, resource: Resource = resource, ended: str = ended) -> None:
            await cascades.settle(tx, resource, ANA.owner_id, ended, db.clock, 10)

        while await db.read(rows, "select 1 from pending_ends"):
            await late(db, settle)
    assert await changed_at(db, DEALS, deal) == before
    settled = await db.read(actions.read, ANA, DEALS, deal)
    assert (settled["company_id"], settled["contact_ids"], settled.version) == (None, "[]", 5)


async def test_a_late_order_keeps_the_time_of_its_product(db: Database) -> None:
    product = await create(db, PRODUCTS, name="Beans", price=1, stock=5)
    before = await changed_at(db, PRODUCTS, product)

    async def reserve(tx: Tx) -> None:
        await unpaid.reserve(tx, "e" * 24, {product: 2})

    async def release(tx: Tx) -> None:
        await unpaid.release(tx, "e" * 24)

    for unit, stock in ((reserve, 3), (release, 5)):
        await late(db, unit)
        assert (await db.read(actions.read, ANA, PRODUCTS, product))["stock"] == stock
        assert await changed_at(db, PRODUCTS, product) == before
    await db.write(reserve)
    assert await changed_at(db, PRODUCTS, product) > before


def test_every_change_of_a_record_takes_its_time_so() -> None:
    """A statement that sets the time itself would let it go back; accounts have no such order."""
    apart = {"gateway/records/store.py", "gateway/domain/accounts/users.py"}
    plain = re.compile(r"updated_at = \$")
    found = {
        path.relative_to(ROOT).as_posix()
        for folder in ("gateway/records", "gateway/domain")
        for path in (ROOT / folder).rglob("*.py")
        if plain.search(path.read_text())
    }
    # Of `statements`, that of `store.update`, which knows the record.
    assert found - apart == {"gateway/records/statements.py"}
