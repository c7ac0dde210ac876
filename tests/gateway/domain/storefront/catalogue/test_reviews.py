"""Tests what a review may be, its limits and totals, on both engines and raced."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from gateway.domain.storefront.catalogue import reviews
from gateway.domain.storefront.stores import stores
from gateway.domain.storefront.visitors import customers
from gateway.domain.storefront.visitors.shopper import Shopper
from gateway.records.errors import Refusal
from gateway.records.record import Record
from gateway.records.slices import SliceRequest
from outbox.database.transaction import Tx
from tests.support.rest import RestApi
from tests.support.shop import Shop, open_shop

ANA, BIA = "ana@example.com", "bia@example.com"


@pytest.fixture
async def shop(api: RestApi) -> AsyncIterator[Shop]:
    shop = await open_shop(api)
    yield shop
    await shop.close()


async def put(shop: Shop, **values: Any) -> None:
    reply = await shop.owner.put(f"/api/stores/{shop.store['id']}", values)
    assert reply.status == 200, reply.text


async def product(shop: Shop, **values: Any) -> str:
    """Create a product that the store shows; return its id."""
    body = {"name": "Coffee", "price": 10, "storeId": shop.store["id"]} | values
    reply = await shop.owner.post("/api/products", body)
    assert reply.status == 201, reply.text
    return str(reply.body["id"])


async def visitor(tx: Tx, shop: Shop, email: str) -> Shopper:
    """Return the customer with this email, who signs up at the first visit."""
    store, zone = await stores.by_hostname(tx, shop.hostname)
    visitor = Shopper(store=store, zone=zone)
    known = await customers.by_email(tx, store.id, email)
    if known is None:
        customer = await customers.create(tx, visitor, name=f"Customer {email[:3]}", email=email)
        await customers.save_contact(tx, visitor, customer)
        return replace(visitor, customer_id=customer.id)
    return replace(visitor, customer_id=known.customer_id)


async def customer(shop: Shop, email: str = ANA) -> str:
    """Return the id of a customer."""

    async def unit(tx: Tx) -> str:
        return (await visitor(tx, shop, email)).must_be_customer()

    return await shop.db.write(unit)


async def review(shop: Shop, product_id: str, email: str = ANA, **sent: Any) -> Record:
    who = await customer(shop, email)

    async def unit(tx: Tx) -> Record:
        store, zone = await stores.by_hostname(tx, shop.hostname)
        writer = Shopper(store=store, zone=zone, customer_id=who)
        return await reviews.create(tx, writer, product_id, {"stars": 5, "text": "Good."} | sent)

    return await shop.db.write(unit)


async def refused(awaited: Any) -> Refusal:
    with pytest.raises(Refusal) as caught:
        await awaited
    return caught.value


async def totals(shop: Shop, product_id: str) -> tuple[int, int]:
    counts = await shop.db.read(reviews.totals_of_products, [product_id])
    return counts.get(product_id, (0, 0))


async def truth(shop: Shop, product_id: str) -> tuple[int, int]:
    async def unit(tx: Tx) -> tuple[int, int]:
        row = await tx.one(
            "select count(*) as n, cast(coalesce(sum(stars), 0) as bigint) as stars from reviews"
            " where product_id = $1 and status = 'published'",
            product_id,
        )
        assert row is not None
        return row["n"], row["stars"]

    return await shop.db.read(unit)


@pytest.mark.slow
async def test_concurrent_reviews_keep_the_totals(shop: Shop) -> None:
    product_id = await product(shop)
    written = await asyncio.gather(
        *(review(shop, product_id, f"c{i}@example.com", stars=i % 5 + 1) for i in range(20))
    )
    assert await totals(shop, product_id) == await truth(shop, product_id) == (20, 60)

    async def moderate(number: int, record: Record) -> None:
        path = f"/api/reviews/{record.id}"
        for status in ("rejected", "published") * 2 + ("pending",) * (number % 2):
            assert (await shop.owner.put(path, {"status": status})).status == 200
        if number % 3 == 0:
            assert (await shop.owner.delete(path)).status == 200

    await asyncio.gather(*(moderate(i, record) for i, record in enumerate(written)))
    counts = await totals(shop, product_id)
    assert counts == await truth(shop, product_id)
    assert counts[0] == len([i for i in range(20) if i % 2 == 0 and i % 3])


async def test_one_review_each_holds_under_concurrency(shop: Shop) -> None:
    await put(shop, oneReviewPerProduct=True)
    who_is = {await customer(shop, email): email for email in (ANA, BIA)}
    for _ in range(5):
        product_id = await product(shop)
        tries = await asyncio.gather(
            *(review(shop, product_id, who) for who in (ANA, BIA) * 4), return_exceptions=True
        )
        written = [one for one in tries if isinstance(one, Record)]
        assert sorted(who_is[one["customer_id"]] for one in written) == [ANA, BIA]
        for refusal in tries:
            if not isinstance(refusal, Record):
                assert isinstance(refusal, Refusal)
                assert refusal.faults[0].code == "already_reviewed"
        assert await totals(shop, product_id) == (2, 10)


async def test_a_customer_writes_twenty_a_day(shop: Shop) -> None:
    product_id = await product(shop)
    ana = await customer(shop)
    tries = await asyncio.gather(
        *(review(shop, product_id) for _ in range(25)), return_exceptions=True
    )
    refusals = [one for one in tries if not isinstance(one, Record)]
    assert len(refusals) == 5
    for refusal in refusals:
        assert isinstance(refusal, Refusal)
        assert refusal.code == "rate_limited"
        assert 0 < refusal.facts["retry_after"] <= 90_000
    assert await totals(shop, product_id) == (20, 100)
    # Another customer has a day of their own; so has this one tomorrow.
    assert await review(shop, product_id, BIA)

    async def yesterday(tx: Tx) -> None:
        await tx.run("update review_quotas set day = day - 86400000000 where customer_id = $1", ana)

    await shop.db.write(yesterday)
    assert await review(shop, product_id)


async def test_a_refused_review_does_not_count(shop: Shop) -> None:
    product_id = await product(shop)
    for _ in range(21):
        await refused(review(shop, product_id, stars=9))
        await refused(review(shop, "0" * 24))
    assert await review(shop, product_id)


async def test_too_much_text_at_once_is_refused(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    product_id = await product(shop)
    for number in range(3):
        await review(shop, product_id, f"c{number}@example.com", text="é" * 100)
    monkeypatch.setattr(reviews, "FEW", 2)
    monkeypatch.setattr(reviews, "MOST_BYTES", 600)
    assert await shop.db.read(reviews.first_of_products, [product_id], SliceRequest(3))
    monkeypatch.setattr(reviews, "MOST_BYTES", 599)
    refusal = await refused(shop.db.read(reviews.first_of_products, [product_id], SliceRequest(3)))
    assert refusal.code == "query_too_complex"
    assert await shop.db.read(reviews.first_of_products, [product_id], SliceRequest(2))


async def test_only_a_customer_of_the_store_writes(shop: Shop) -> None:
    product_id = await product(shop)
    other = await open_shop(shop.api, "other.example")
    theirs = await customer(other)
    gone = await customer(shop)
    await shop.owner.delete(f"/api/clients/{gone}")

    async def unit(tx: Tx, customer_id: str | None) -> Record:
        store, zone = await stores.by_hostname(tx, shop.hostname)
        writer = Shopper(store=store, zone=zone, customer_id=customer_id)
        return await reviews.create(tx, writer, product_id, {"stars": 5, "text": "Good."})

    for customer_id in (None, theirs, gone):
        assert (await refused(shop.db.write(unit, customer_id))).code == "unauthenticated"
    await other.close()
