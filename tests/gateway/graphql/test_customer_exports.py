"""An export of a customer's own data: complete for ordinary customers, bounded for all."""

from __future__ import annotations

import json
from typing import Any

from gateway.domain.storefront.catalogue import reviews
from gateway.domain.storefront.privacy.customer_export import BEGIN, MOST_BYTES, PAGE
from outbox.database.transaction import Database, Tx
from tests.gateway.graphql.test_reads import review
from tests.support.carts import sell
from tests.support.checkouts import ordered, put, sign_up
from tests.support.counted import Counted
from tests.support.drain import rows
from tests.support.shop import Answer, Browser, Shop, opened
from tests.support.work import worked

MEMBERS = ["store", "account", "addresses", "identities", "sessions", "cart", "orders", "reviews"]


async def export(browser: Browser) -> Answer:
    return await browser.do("clientExportData", "data success")


async def exported(browser: Browser) -> dict[str, Any]:
    answer = await export(browser)
    assert answer.data["clientExportData"]["success"] is True
    assert len(answer.data["clientExportData"]["data"].encode()) <= MOST_BYTES
    data: dict[str, Any] = json.loads(answer.data["clientExportData"]["data"])
    return data


async def buyer(shop: Shop) -> tuple[Browser, str]:
    """Return a customer with an order, and the product."""
    browser, product = shop.browser(), await sell(shop)
    await sign_up(browser)
    await put(browser, product)
    await ordered(browser)
    return browser, product


async def repeat(shop: Shop, count: int, table: str = "orders", **columns: Any) -> None:
    """Give the only customer so many more rows like the first one, each a second later."""

    async def unit(tx: Tx) -> None:
        row = await tx.one(f"select * from {table} order by created_at limit 1")
        assert row is not None
        names = list(row.keys())
        holes = ", ".join(f"${n}" for n in range(1, len(names) + 1))
        sql = f"insert into {table} ({', '.join(names)}) values ({holes})"
        for n in range(1, count + 1):
            new = dict(row) | columns
            new |= {"id": tx.new_id(), "created_at": row["created_at"] + n * 1_000_000}
            new |= {"number": f"N-{n}"} if table == "orders" else {}
            await tx.run(sql, *(new[name] for name in names))

    await shop.db.write(unit)


async def test_orders_and_reviews_are_read_a_few_at_a_time(db: Database) -> None:
    counted = Counted(db, of_requests=True)
    async with opened(counted) as shop:
        browser, product = await buyer(shop)
        for _ in range(3):
            assert (await review(browser, product)).data
        units = []
        for more in (0, 5 * PAGE):
            await repeat(shop, more)
            counted.reset()
            data = await exported(browser)
            units.append(counted.units)
            assert (list(data), len(data["reviews"])) == (MEMBERS, 3)
            numbers = [order["number"] for order in data["orders"]]
            assert numbers[1:] == [f"N-{n}" for n in range(1, more + 1)]
        assert units[1] - units[0] == 5


async def test_a_page_of_reviews_costs_what_it_has(db_url: str) -> None:
    async with worked(db_url) as served, opened(served) as shop:
        browser, product = await buyer(shop)
        assert (await review(browser, product)).data
        await repeat(shop, 600, "reviews")
        row, *_ = await shop.db.read(rows, "select customer_id from reviews")
        served.units.clear()
        page, place = await served.write(reviews.written, row["customer_id"], BEGIN, PAGE)
        assert (len(page), place is None) == (PAGE, False)
        assert served.most() < 1_000


async def test_an_export_that_becomes_too_large_ends_and_says_so(shop: Shop) -> None:
    browser, product = await buyer(shop)
    assert (await review(browser, product)).data
    await repeat(shop, 120, notes="ç" * 20_000)
    data = await exported(browser)
    assert (list(data), data["truncated"], data["reviews"]) == ([*MEMBERS, "truncated"], True, [])
    assert 100 < len(data["orders"]) < 121
    assert [order["number"] for order in data["orders"][1:4]] == ["N-1", "N-2", "N-3"]


async def test_a_customer_exports_five_times_in_a_quarter_of_an_hour(still: Database) -> None:
    async with opened(still) as shop:
        browser, other = shop.browser(), shop.browser()
        await sign_up(browser)
        await sign_up(other, "ana@example.com")
        for _ in range(5):
            assert list(await exported(browser)) == MEMBERS
        assert (await export(browser)).code == "RATE_LIMITED"
        assert list(await exported(other)) == MEMBERS
