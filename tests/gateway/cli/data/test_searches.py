"""The full-text index of products after an upgrade, a restore and a copy to the other engine."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from gateway.domain.sales.products import IN_STOCK
from gateway.domain.storefront.catalogue import assortment
from gateway.domain.storefront.catalogue.selection import Selection
from gateway.records.record import Record
from gateway.records.slices import SliceRequest
from outbox import database
from outbox.clock import SystemClock
from outbox.database.migrate import migrate, migrate_at_once
from outbox.database.migration_files import read_migrations
from outbox.database.transaction import Database, Tx
from outbox.ids import Ids
from tests.gateway.domain.storefront.catalogue.test_selection import OWNER, STORE, Shelved, shelve
from tests.support.databases import SOURCES

SHOP = cast(Record, SimpleNamespace(id=STORE, owner_id=OWNER))
INDEX = "search"
"""The migration of `gateway` that makes the index, without its number."""
LISTED = (
    "insert into product_shelves (record_id, value, store_id, created_at, sort_name, price)"
    " select id, '', store_id, created_at, sort_name, price from products where published"
)


async def opened(url: str) -> Database:
    return await database.open(url, clock=SystemClock(), ids=Ids())


async def found(db: Database, search: str = "", *, in_stock: bool = False) -> list[str]:
    selection = Selection(search=search, in_stock=in_stock)
    order = "BEST_MATCH" if search else "NEWEST"
    page = await db.read(assortment.slice_of, SHOP, order, SliceRequest(100), selection)
    return [record["name"] for record in page.records]


async def as_before(tx: Tx, rows: int) -> None:
    """Make the schema and the products of the version before there was an index."""
    files = read_migrations("gateway", dict(SOURCES)["gateway"])
    first = next(migration.number for migration in files if migration.name[5:] == INDEX)
    counts = {name: first - 1 if name == "gateway" else 10_000 for name, _ in SOURCES}
    await migrate_at_once(tx, SOURCES, counts)
    for number in range(rows):
        name = f"Caneca {number}"
        await tx.run(
            "insert into products (id, owner_id, version, created_at, name, sku, price, currency,"
            " stock, categories, images, active, published, store_id, slug, folded, sort_name)"
            " values ($1, $2, 1, $3, $4, null, 100, 'BRL', $5, '[\"Top\"]', '[]', true, $6, $7,"
            " $8, $9, $9)",
            f"{number:024x}", OWNER, 1_000 + number, name, number % 3 or None, number % 2 == 0,
            STORE, f"caneca-{number}", name.lower(),
        )  # fmt: skip
    await tx.run(LISTED)


async def test_an_upgrade_indexes_what_is_listed(target: str) -> None:
    db = await opened(target)
    await db.write(as_before, 1_210)
    await db.write(_sold_out)
    names = await migrate(db, SOURCES)
    assert {INDEX, "product_terms"} <= {name[5:] for name in names}
    row = await db.read(_count)
    # The products that are not published are not listed.
    assert row == (605, 604)
    assert await found(db, "canecas 1204") == ["Caneca 1204"]
    assert await found(db, "caneca 1205") == []
    assert (await found(db, "caneca"))[:2] == ["Caneca 1208", "Caneca 1206"]
    assert "Caneca 1208" not in await found(db, in_stock=True)
    await shelve(db, [Shelved("Caneca 5000")])
    assert await found(db, "caneca 5000") == ["Caneca 5000"]
    await db.close()


async def _sold_out(tx: Tx) -> None:
    await tx.run("update products set stock = 0 where name = 'Caneca 1208'")


async def _count(tx: Tx) -> tuple[int, int]:
    row = await tx.one(
        "select (select count(*) from product_terms) as terms,"
        " (select count(*) from product_shelves where value = $1) as stocked",
        IN_STOCK,
    )
    assert row is not None
    return row["terms"], row["stocked"]
