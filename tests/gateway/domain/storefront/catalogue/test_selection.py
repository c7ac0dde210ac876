"""Which products a list holds, in which order, and that its work does not grow with the store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import pytest
from msgspec import json

from gateway.domain.sales.products import LISTING_COLUMNS, PRODUCTS, listing_rows, terms_of
from gateway.domain.storefront.catalogue import assortment
from gateway.domain.storefront.catalogue.assortment import BEST_MATCH, ORDERS
from gateway.domain.storefront.catalogue.selection import LISTED, Selection
from gateway.domain.storefront.catalogue.word_search import MOST, WALKED
from gateway.records import store
from gateway.records.record import Record
from gateway.records.slices import SliceRequest
from outbox.database.sql import insert
from outbox.database.transaction import Database, Tx
from tests.support.work import worked

OWNER = "a" * 24
STORE = "b" * 24
BATCH = 500


class Shelved(NamedTuple):
    """A product: its name, its price in centavos, and what else matters in lists."""

    name: str
    price: int = 1_000
    stock: int | None = None
    categories: Sequence[str] = ()
    sku: str | None = None
    store_id: str = STORE


async def shelve(db: Database, products: Iterable[Shelved]) -> None:
    """Add products, the oldest first, without the checks and events of a door."""
    waiting = list(products)
    for start in range(0, len(waiting), BATCH):
        await db.write(_add, waiting[start : start + BATCH])


async def _add(tx: Tx, products: Sequence[Shelved]) -> None:
    made = []
    for product in products:
        values: dict[str, Any] = {
            "name": product.name, "sku": product.sku, "price": product.price, "currency": "BRL",
            "stock": product.stock, "categories": json.encode(product.categories).decode(),
            "images": "[]", "active": True, "published": True, "requires_shipping": True,
            "store_id": product.store_id,
        }  # fmt: skip
        made.append(Record(PRODUCTS, await store.insert(tx, PRODUCTS, OWNER, values)))
    made.sort(key=lambda record: record.id)
    listings = [row for record in made for row in listing_rows(record)]
    await insert(tx, "product_shelves", LISTING_COLUMNS, listings)
    terms = [(record.id, record["store_id"], terms_of(record)) for record in made]
    await insert(tx, "product_terms", ("record_id", "store_id", "words"), terms)


SHOP = cast(Record, SimpleNamespace(id=STORE, owner_id=OWNER))
COLOURS = ("azul", "verde", "preta", "branca")


async def page(
    db: Database, selection: Selection, order: str = BEST_MATCH, first: int = 100
) -> list[str]:
    found = await db.read(assortment.slice_of, SHOP, order, SliceRequest(first), selection)
    return [record["name"] for record in found.records]


async def whole(
    db: Database, selection: Selection, order: str, size: int, *, last: bool = False
) -> tuple[list[str], int]:
    """Return all names of a list, read in pages of `size`, and the number of pages."""
    names: list[str] = []
    place, pages, more = None, 0, True
    while more:
        position = {"before": place} if last else {"after": place}
        request = SliceRequest(size, last, **position)
        found = await db.read(assortment.slice_of, SHOP, order, request, selection)
        part = [record["name"] for record in found.records]
        names = part + names if last else names + part
        more, pages = found.more, pages + 1
        place = found.end or (found.places and found.places[0 if last else -1]) or place
    return names, pages


async def test_filters_hold_in_every_order_and_together(db: Database) -> None:
    stocks = (None, 0, 3)
    products = [
        Shelved(
            f"Caneca {COLOURS[n % 4]} {n}", 1_000 + n % 7, stocks[n % 3],
            [f"group {n % 5}", *(["Sale"] if n % 2 else [])],
        )
        for n in range(60)
    ]  # fmt: skip
    await shelve(db, products)
    groups = tuple(f"group {n}" for n in range(3))
    for selection, kept in (
        (Selection(in_stock=True), lambda p, n: p.stock != 0),
        (Selection(lowest=1_002, highest=1_004), lambda p, n: 1_002 <= p.price <= 1_004),
        (Selection(("sale",), in_stock=True, highest=1_001),
         lambda p, n: n % 2 and p.stock != 0 and p.price <= 1_001),
        (Selection((*groups, "sale")), lambda p, n: n % 5 < 3 or n % 2),
        (Selection(groups, "canecas azul", in_stock=True, lowest=1_001),
         lambda p, n: n % 5 < 3 and n % 4 == 0 and p.stock != 0 and p.price >= 1_001),
        (Selection(("sale",), "caneca"), lambda p, n: n % 2),
        (Selection(lowest=2_000), lambda p, n: False),
    ):  # fmt: skip
        expected = {p.name for n, p in enumerate(products) if kept(p, n)}
        prices = {p.name: p.price for p in products}
        for order in (*ORDERS, *([BEST_MATCH] if selection.search else [])):
            names, _ = await whole(db, selection, order, 7)
            assert (set(names), len(names)) == (expected, len(expected)), (selection, order)
            back, _ = await whole(db, selection, order, 7, last=True)
            assert back == names
            if order == "PRICE_ASC":
                assert [prices[name] for name in names] == sorted(prices[n] for n in names)
        assert await db.read(assortment.count, SHOP, selection) == (len(expected), False)


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "db_url", ["sqlite", pytest.param("postgres", marks=pytest.mark.proof)], indirect=True
)
async def test_a_large_list_is_read_in_bounded_work(db_url: str) -> None:
    """Searches do the same work in a store of five times the size; walks end at a page."""
    small, large = MOST + 500, WALKED + 2_500
    searches = {
        "frequent": Selection(search="caneca"),
        "prefix": Selection(search="ca"),
        "two words": Selection(search="canecas modelo"),
        "one in ten": Selection(search="especial"),
        "one": Selection(search=f"modelo {small - 7}"),
        "nothing": Selection(search="xyz"),
        "narrowed": Selection(("sale",), "caneca", 1_000, 1_001, in_stock=True),
    }
    lists = {
        "price": (Selection(lowest=1_000, highest=1_003), "NEWEST"),
        "price at the end": (Selection(lowest=5_000), "NEWEST"),
        "categories": (Selection(tuple(f"group {n}" for n in range(9))), "TITLE"),
        "stock": (Selection(in_stock=True), "PRICE_DESC"),
    }
    work: dict[str, list[int]] = {}
    async with worked(db_url) as counted:
        db = cast(Database, counted)
        made = 0
        for size in (small, large):
            await shelve(db, [product(n) for n in range(made, size)])
            made = size
            cases = [(name, (each, BEST_MATCH)) for name, each in searches.items()]
            for name, (selection, order) in (*cases, *lists.items()):
                counted.units.clear()
                await db.write(assortment.slice_of, SHOP, order, SliceRequest(20), selection)
                if selection.searches:
                    await db.write(assortment.count, SHOP, selection)
                work.setdefault(name, []).append(sum(done for _, done in counted.units))
        for name in searches:
            assert work[name][1] <= work["frequent"][0] * 2, (name, work)
        steps = {"sqlite": 60, "postgres": 5}[counted.engine]
        for name in lists:
            assert work[name][1] <= steps * (LISTED + WALKED), (name, work)
        assert await db.read(assortment.count, SHOP, searches["frequent"]) == (MOST, True)
        assert await db.read(assortment.count, SHOP, searches["one in ten"]) == (large // 10, False)
        names, pages = await whole(db, lists["price"][0], "NEWEST", 100)
        assert len(names) == len(set(names)) == len([n for n in range(large) if n % 10 < 4])
        # Few match, and the newest 5,000 of the store are none of them.
        await shelve(db, [Shelved(f"Rara {n}", 9_000) for n in range(LISTED + 1)])
        await shelve(db, [product(n) for n in range(WALKED + 10)])
        first = await db.read(
            assortment.slice_of, SHOP, "NEWEST", SliceRequest(20), Selection(lowest=9_000)
        )
        assert (first.records, first.more) == ([], True)
        assert first.end is not None
        names, pages = await whole(db, Selection(lowest=9_000), "NEWEST", 100)
        assert (names[0], len(names)) == (f"Rara {LISTED}", LISTED + 1)
        assert pages <= LISTED // 100 + 4
        [newest] = await page(db, Selection(search="caneca azul"), first=1)
        assert newest.startswith("Caneca azul modelo ")


def product(number: int) -> Shelved:
    kind = "Copo especial" if number % 10 == 9 else f"Caneca {COLOURS[number // 10 % 4]}"
    categories: Sequence[str] = [f"group {number % 9}", *(["sale"] if number % 2 else [])]
    return Shelved(
        f"{kind} modelo {number}", 1_000 + number % 10, None if number % 3 else 0, categories
    )
