"""One visitor who takes too much is refused, and a hundred honest ones beside it are not."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.domain.sales import order_verbs
from gateway.domain.storefront.carts import cart_quotas
from gateway.server.config import Config, Limits
from outbox.database.transaction import Database, Tx
from outbox.durations import DAY
from tests.gateway.graphql.test_accounts import ANA, log_in, sign_up
from tests.gateway.graphql.test_carts import rows
from tests.support.addresses import honest, visitor_at
from tests.support.carts import do, sell
from tests.support.checkouts import check_out, put
from tests.support.rest import RestApi
from tests.support.shop import Answer, Browser, Shop, open_shop
from tests.support.site import serving

ATTACKER = "203.0.113.66"
BUYERS = 100
OWNER = {"read_per_second": 0, "write_per_second": 0}


@pytest.fixture
async def guarded(db: Database) -> AsyncIterator[Shop]:
    """A store with the limits of an installation, on each engine."""
    async with serving(db, Config(limits=Limits(**OWNER))) as site:
        shop = await open_shop(RestApi(site))
        yield shop
        await shop.close()


def outcome(answer: Answer) -> str:
    return answer.code if "errors" in answer.body else "done"


def waits(answer: Answer) -> int:
    """Return the seconds that a refusal asks to wait."""
    found: int = answer.error["extensions"]["retryAfter"]
    return found


async def buy(shop: Shop, address: str, product: str, quantity: int = 1, **values: Any) -> Answer:
    """Order a product as a new visitor; return the answer to the checkout."""
    browser = visitor_at(shop, address)
    try:
        added = await do(browser, "AddProduct", productId=product, quantity=quantity)
        return added if "errors" in added.body else await check_out(browser, **values)
    finally:
        await browser.close()


async def honest_buyers(shop: Shop, product: str) -> Counter[str]:
    """Let a hundred buyers order one item each; return the outcomes."""
    answers = []
    for first in range(0, BUYERS, 20):
        answers += await asyncio.gather(
            *(
                buy(shop, honest(n), product, email=f"buyer{n}@example.com")
                for n in range(first, first + 20)
            )
        )
    return Counter(map(outcome, answers))


async def test_orders_of_an_address(guarded: Shop) -> None:
    """The attack: orders of one address as fast as it can, each with another email."""
    product = await sell(guarded, 30)
    answers = [await buy(guarded, ATTACKER, product, email=f"a{n}@example.com") for n in range(15)]
    assert [outcome(answer) for answer in answers] == ["done"] * 10 + ["RATE_LIMITED"] * 5
    assert 0 < waits(answers[-1]) <= 60
    assert await honest_buyers(guarded, product) == {"done": BUYERS}
    assert (await guarded.owner.get("/api/orders")).body["total"] == 10 + BUYERS


async def test_a_repeat_is_answered_when_the_budget_is_used_up(guarded: Shop) -> None:
    """The buyer whose response was lost shares an address with others, who ordered meanwhile."""
    product = await sell(guarded, 30)
    browser = visitor_at(guarded, ATTACKER)
    await put(browser, product)
    first = await check_out(browser, idempotencyKey="k")
    for n in range(9):
        answer = await buy(guarded, ATTACKER, product, email=f"a{n}@example.com")
        assert outcome(answer) == "done"
    again = await check_out(browser, idempotencyKey="k")
    assert again.data["checkout"]["order"] == first.data["checkout"]["order"]
    assert (await check_out(browser, idempotencyKey="other")).code == "RATE_LIMITED"
    assert (await check_out(browser)).code == "RATE_LIMITED"


async def test_an_order_that_ends_leaves_its_place(db: Database) -> None:
    limits = Limits(**OWNER, checkouts_per_minute=0, unpaid_orders_per_address=2)
    async with serving(db, Config(limits=limits)) as site:
        shop = await open_shop(RestApi(site))
        product = await sell(shop, 30, stock=1_000)

        async def order() -> str:
            return outcome(await buy(shop, ATTACKER, product))

        async def expired(tx: Tx) -> None:
            await tx.run("update orders set expires_at = 1 where status = 'pending'")

        assert [await order() for _ in range(3)] == ["done", "done", "UNPAID_LIMIT"]
        first, second = (await shop.owner.get("/api/orders")).body["data"]
        assert (await shop.owner.post(f"/api/orders/{first['id']}/cancel")).status == 200
        assert [await order() for _ in range(2)] == ["done", "UNPAID_LIMIT"]
        paid = await shop.owner.post(f"/api/invoices/{second['invoiceId']}/pay")
        assert paid.status == 200
        assert [await order() for _ in range(2)] == ["done", "UNPAID_LIMIT"]
        await db.write(expired)
        while await db.write(order_verbs.expire, 1):
            pass
        assert [await order() for _ in range(3)] == ["done", "done", "UNPAID_LIMIT"]
        await shop.close()


async def test_an_order_for_nothing_waits_for_no_other(guarded: Shop) -> None:
    """It is paid in its checkout, so the bound of unpaid orders is not its own."""
    product, free = await sell(guarded, 30), await sell(guarded, 0, name="Free", stock=12)
    buyer = visitor_at(guarded, honest(1))
    for expected in ["done"] * 5 + ["UNPAID_LIMIT"]:
        await put(buyer, product)
        assert outcome(await check_out(buyer)) == expected
    await do(buyer, "Clear")
    await put(buyer, free)
    answer = await check_out(buyer)
    assert answer.data["checkout"]["order"]["status"] == "paid"
    # What it may take of a stock is bounded all the same.
    await put(buyer, free, 11)
    assert (await check_out(buyer)).code == "UNPAID_LIMIT"


async def test_too_many_items_of_one_order_name_no_time_to_wait(guarded: Shop) -> None:
    product = await sell(guarded, 30, stock=50)
    refused = await buy(guarded, ATTACKER, product, 11)
    assert refused.error["extensions"] == {
        "code": "UNPAID_LIMIT", "field": "products",
        "requestId": refused.error["extensions"]["requestId"],
    }  # fmt: skip
    # Nothing of it is left.
    [found] = (await guarded.owner.get("/api/products")).body["data"]
    assert found["stock"] == 50


async def test_passwords_of_an_address_over_all_accounts(guarded: Shop) -> None:
    """The attack: one password for hundreds of emails."""
    attacker = visitor_at(guarded, ATTACKER)
    codes = [
        (await log_in(attacker, email=f"a{n}@example.com", password="secret123")).code
        for n in range(35)
    ]
    assert codes == ["INVALID_CREDENTIALS"] * 30 + ["RATE_LIMITED"] * 5
    customer = visitor_at(guarded, honest(1))
    assert outcome(await sign_up(customer)) == "done"
    # Whoever knows the password is not counted, however many share the address.
    for _ in range(40):
        assert outcome(await log_in(visitor_at(guarded, honest(1)))) == "done"
    refused = await log_in(attacker, email=ANA["email"], password=ANA["password"])
    assert (refused.code, 0 < waits(refused) <= 900) == ("RATE_LIMITED", True)


async def test_carts_of_an_address(db: Database) -> None:
    """The attack: a new cart with each request."""
    limits = Limits(**OWNER, carts_per_day=10)
    async with serving(db, Config(limits=limits)) as site:
        shop = await open_shop(RestApi(site))
        product = await sell(shop, 30)

        async def begin(address: str) -> str:
            browser = visitor_at(shop, address)
            answer = await do(browser, "AddProduct", productId=product)
            await browser.close()
            return outcome(answer)

        assert [await begin(ATTACKER) for _ in range(12)] == ["done"] * 10 + ["RATE_LIMITED"] * 2
        assert len(await db.read(rows)) == 10
        assert {await begin(honest(n)) for n in range(BUYERS)} == {"done"}

        async def age(tx: Tx) -> None:
            await tx.run("update cart_quotas set began_at = began_at - $1", DAY)

        await db.write(age)
        assert await begin(ATTACKER) == "done"
        # One count of the address and one of its network began again.
        assert await db.write(cart_quotas.purge, 1_000) == 2 * BUYERS
        assert await db.write(cart_quotas.purge, 1_000) == 0
        await shop.close()


async def test_an_empty_cart_has_no_row(shop: Shop) -> None:
    browser, product = shop.browser(), await sell(shop)
    for mutation in ("Clear", "RemoveCoupon"):
        await do(browser, mutation)
    assert await shop.db.read(rows) == []
    await put(browser, product)
    await do(browser, "Clear")
    assert await shop.db.read(rows) == []
    await put(browser, product)
    await do(browser, "UpdateProduct", id=product, quantity=0)
    assert await shop.db.read(rows) == []


SEARCHES = "query ($h: String!) {{ {fields} }}"


def searches(count: int) -> str:
    """Return a document that searches `count` times."""
    fields = " ".join(
        f'a{n}: products(hostname: $h, search: "nothing {n}") {{ nodes {{ id }} }}'
        for n in range(count)
    )
    return SEARCHES.format(fields=fields)


async def search(browser: Browser, count: int = 1) -> list[str]:
    """Return the outcome of each of `count` searches of one document."""
    answer = await browser.send(searches(count), {"h": browser.hostname})
    errors = [error["extensions"]["code"] for error in answer.body.get("errors", ())]
    return ["done"] * (count - len(errors)) + errors


async def test_searches_of_an_address_take_nothing_from_others(guarded: Shop) -> None:
    """The attack: documents with thirty searches each, several at once."""
    for n in range(3):
        await sell(guarded, 30, name=f"Coffee {n}")
    attackers = [visitor_at(guarded, ATTACKER) for _ in range(4)]

    async def attack() -> Counter[str]:
        found = await asyncio.gather(*(search(browser, 30) for browser in attackers))
        return Counter(code for codes in found for code in codes)

    async def owner() -> set[int]:
        # More at once than may wait for the places of one account.
        return {(await guarded.owner.get("/api/products?search=coffee")).status for _ in range(8)}

    async def visitors() -> set[str]:
        browsers = [visitor_at(guarded, honest(n)) for n in range(BUYERS)]
        found = []
        for first in range(0, BUYERS, 20):
            found += await asyncio.gather(*map(search, browsers[first : first + 20]))
        for browser in browsers:
            await browser.close()
        return {code for codes in found for code in codes}

    attacked, owned, visited = await asyncio.gather(attack(), owner(), visitors())
    assert attacked["RATE_LIMITED"] > 0
    assert (owned, visited) == ({200}, {"done"})


async def test_a_search_pays_for_what_it_looks_at(db: Database) -> None:
    limits = Limits(**OWNER, searched_rows_per_minute=3_000)
    async with serving(db, Config(limits=limits)) as site:
        shop = await open_shop(RestApi(site))
        await sell(shop, 30)
        attacker = visitor_at(shop, ATTACKER)
        assert Counter(await search(attacker, 30))["done"] in (3, 4)
        refused = await attacker.send(searches(1), {"h": shop.hostname})
        assert (refused.code, 0 < waits(refused) <= 60) == ("RATE_LIMITED", True)
        assert await search(visitor_at(shop, honest(1))) == ["done"]
        # What is no search stays free.
        listed = await attacker.ask("products(hostname: $h) { nodes { title } }")
        assert len(listed["products"]["nodes"]) == 1
        await shop.close()
