"""Tests what a review may be, its limits and totals, on both engines and raced."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from gateway.domain.storefront.catalogue import reviews
from gateway.domain.storefront.stores import stores
from gateway.domain.storefront.visitors import customers
from gateway.domain.storefront.visitors.visitor import Visitor
from gateway.records.errors import Refusal
from gateway.records.record import Record
from gateway.records.slices import SliceRequest
from gateway.records.values.global_ids import global_id
from gateway.server.upkeep.duties import BATCHES
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


async def visitor(tx: Tx, shop: Shop, email: str) -> Visitor:
    """Return the customer with this email, who signs up at the first visit."""
    store, zone = await stores.by_hostname(tx, shop.hostname)
    visitor = Visitor(store=store, zone=zone)
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
        writer = Visitor(store=store, zone=zone, customer_id=who)
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


async def test_a_review_is_stored_as_written(shop: Shop) -> None:
    product_id = await product(shop)
    ana = await customer(shop)
    [contact] = (await shop.owner.get("/api/contacts")).body["data"]
    text = " <b>Très\r\nbon</b> & \u202e🙂 "
    record = await review(shop, product_id, stars=4, text=text)
    shown = (await shop.owner.get(f"/api/reviews/{record.id}")).body
    assert shown == {
        "id": record.id, "storeId": shop.store["id"], "productId": product_id, "customerId": ana,
        "author": "Customer ana", "stars": 4, "text": text, "status": "published",
        "globalId": global_id("Review", record.id), "createdAt": shown["createdAt"],
    }  # fmt: skip
    [note] = (await shop.owner.get(f"/api/activities?relatedTo={contact['id']}")).body["data"]
    assert (note["type"], note["description"]) == (
        "note", f"Review of Coffee, 4 of 5 stars: {text}",
    )  # fmt: skip
    assert note["metadata"] == {"reviewId": record.id, "productId": product_id}
    assert [name for name, _ in await shop.api.events()] == ["product.created", "contact.created"]


async def test_the_longest_text_counts_characters(shop: Shop) -> None:
    record = await review(shop, await product(shop), text="🙂" * 5_000)
    assert len((await shop.owner.get(f"/api/reviews/{record.id}")).body["text"]) == 5_000


async def test_only_products_that_the_store_shows_are_reviewed(shop: Shop) -> None:
    other = await open_shop(shop.api, "other.example")
    for product_id in (
        await product(shop, active=False),
        await product(shop, published=False),
        await product(other),
        "0" * 24,
    ):
        refusal = await refused(review(shop, product_id))
        assert refusal.code == "product_not_found"
        assert refusal.faults[0].field == "productId"
    gone = await product(shop)
    await shop.owner.delete(f"/api/products/{gone}")
    assert (await refused(review(shop, gone))).code == "product_not_found"
    await other.close()


async def test_a_moderated_review_waits_for_the_owner(shop: Shop) -> None:
    await put(shop, reviewModeration=True)
    product_id = await product(shop)
    record = await review(shop, product_id, stars=3)
    assert record["status"] == "pending"
    assert await totals(shop, product_id) == (0, 0)
    path = f"/api/reviews/{record.id}"
    for status, expected in (
        ("published", (1, 3)), ("published", (1, 3)), ("rejected", (0, 0)), ("pending", (0, 0)),
        ("published", (1, 3)), ("pending", (0, 0)), ("published", (1, 3)),
    ):  # fmt: skip
        assert (await shop.owner.put(path, {"status": status})).body["status"] == status
        assert await totals(shop, product_id) == expected
    assert (await shop.owner.delete(path)).status == 200
    assert await totals(shop, product_id) == (0, 0)


async def test_the_owner_moderates_and_changes_nothing_else(shop: Shop) -> None:
    product_id = await product(shop)
    record = await review(shop, product_id)
    path = f"/api/reviews/{record.id}"
    answer = await shop.owner.put(path, {"text": "Bad.", "stars": 1, "status": "rejected"})
    assert (answer.body["text"], answer.body["stars"]) == ("Good.", 5)
    assert answer.headers["X-Ignored-Fields"] == "text, stars"
    for status in ("gone", None, 1):
        assert (await shop.owner.put(path, {"status": status})).status == 400
    assert (await shop.owner.post("/api/reviews", {})).status == 405
    other = await review(shop, product_id, BIA)
    for query, expected in (
        ("status=rejected", [record.id]), ("status=published", [other.id]), ("status=pending", []),
        (f"productId={product_id}", [other.id, record.id]), (f"productId={'0' * 24}", []),
        (f"storeId={shop.store['id']}&status=published", [other.id]),
    ):  # fmt: skip
        listed = (await shop.owner.get(f"/api/reviews?{query}")).body
        assert [one["id"] for one in listed["data"]] == expected, query
        assert listed["total"] == len(expected)


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


async def test_one_review_each_counts_those_of_before(shop: Shop) -> None:
    product_id = await product(shop)
    before = [await review(shop, product_id) for _ in range(2)]
    await put(shop, oneReviewPerProduct=True)
    refusal = await refused(review(shop, product_id))
    assert (refusal.code, refusal.faults[0].field) == ("validation_error", "productId")
    assert await review(shop, await product(shop))
    for one in before:
        await shop.owner.delete(f"/api/reviews/{one.id}")
    again = await review(shop, product_id)
    await shop.owner.delete(f"/api/reviews/{again.id}")
    assert await review(shop, product_id)


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


async def test_counts_of_past_days_are_purged(shop: Shop) -> None:
    product_id = await product(shop)
    for email in (ANA, BIA):
        await review(shop, product_id, email)
    ana, bia = await customer(shop), await customer(shop, BIA)

    async def age(tx: Tx) -> None:
        await tx.run(
            "update review_quotas set day = day - 3 * 86400000000 where customer_id = $1", ana
        )

    async def left(tx: Tx) -> list[str]:
        return [row[0] for row in await tx.all("select customer_id from review_quotas")]

    await shop.db.write(age)
    [batches] = [one for one in BATCHES if one.name == "review-quotas"]
    assert await shop.db.write(batches.unit, batches.most) == 1
    assert await shop.db.read(left) == [bia]


async def test_reviews_go_with_their_product_and_their_store(shop: Shop) -> None:
    gone, remaining = [await product(shop) for _ in range(2)]
    for product_id in (gone, remaining):
        for email in (ANA, BIA):
            await review(shop, product_id, email)
    assert (await shop.owner.delete(f"/api/products/{gone}")).status == 200
    assert (await shop.owner.get("/api/reviews")).body["total"] == 2
    assert await totals(shop, gone) == (0, 0)
    assert (await shop.owner.delete(f"/api/stores/{shop.store['id']}")).status == 200
    assert (await shop.owner.get("/api/reviews")).body["total"] == 0
    assert await totals(shop, remaining) == (0, 0)


async def test_lists_of_many_products_at_once(shop: Shop) -> None:
    products = [await product(shop) for _ in range(3)]
    for product_id in products[:2]:
        for number in range(5):
            await review(shop, product_id, f"c{number}@example.com", text=f"{number}")
    hidden = await review(shop, products[0], BIA)
    await shop.owner.put(f"/api/reviews/{hidden.id}", {"status": "pending"})

    async def texts(request: SliceRequest) -> list[tuple[list[str], bool]]:
        slices = await shop.db.read(reviews.first_of_products, products, request)
        return [([r["text"] for r in slices[p].records], slices[p].more) for p in products]

    two = (["4", "3"], True)
    assert await texts(SliceRequest(2)) == [two, two, ([], False)]
    all_five = (["4", "3", "2", "1", "0"], False)
    assert await texts(SliceRequest(5)) == [all_five, all_five, ([], False)]
    first = await shop.db.read(reviews.first_of_products, products, SliceRequest(2))
    onward = SliceRequest(2, after=first[products[0]].places[-1])
    assert (await texts(onward))[0] == (["2", "1"], True)
    back = SliceRequest(1, last=True, before=first[products[0]].places[-1])
    assert (await texts(back))[0] == (["4"], False)


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
        writer = Visitor(store=store, zone=zone, customer_id=customer_id)
        return await reviews.create(tx, writer, product_id, {"stars": 5, "text": "Good."})

    for customer_id in (None, theirs, gone):
        assert (await refused(shop.db.write(unit, customer_id))).code == "unauthenticated"
    await other.close()
