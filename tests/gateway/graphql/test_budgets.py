"""One visitor who takes too much is refused, and honest ones beside it are not."""

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.domain.storefront.carts import cart_quotas
from gateway.server.config import Config, Limits
from outbox.database.transaction import Database, Row, Tx
from outbox.durations import DAY
from tests.gateway.graphql.test_accounts import ANA, log_in, sign_up
from tests.gateway.graphql.test_carts import rows
from tests.support.carts import do, sell
from tests.support.checkouts import BUYER, check_out, put
from tests.support.shop import Answer, Browser, Shop, opened

ATTACKER = "203.0.113.66"
BUYERS = 12
OWNER: dict[str, Any] = {"read_per_second": 0, "write_per_second": 0}
FREE: dict[str, Any] = OWNER | {"checkouts_per_minute": 0, "checkouts_per_hour": 0}
"""Checkouts as fast as they come: what they take is limited alone."""


def guarding(**limits: Any) -> Config:
    return Config(limits=Limits(**limits))


@pytest.fixture
async def guarded(still: Database) -> AsyncIterator[Shop]:
    """A store with the limits of an installation."""
    async with opened(still, guarding(**OWNER)) as shop:
        yield shop


def visitor_at(shop: Shop, address: str) -> Browser:
    """Return a new visitor whose requests come from an address, as a trusted proxy names it."""
    browser = shop.browser()
    browser.http.headers["X-Forwarded-For"] = address
    return browser


def honest(n: int) -> str:
    """Return the address of the honest buyer `n`, each in a network of its own."""
    return f"100.64.{n}.7"


def outcome(answer: Answer) -> str:
    return answer.code if "errors" in answer.body else "done"


def waits(answer: Answer) -> int:
    """Return the seconds that a refusal asks to wait."""
    found: int = answer.error["extensions"]["retryAfter"]
    return found


async def buy(shop: Shop, address: str, product: str, quantity: int = 1, **values: Any) -> Answer:
    """Order a product as a new visitor; return the answer to the checkout."""
    browser = visitor_at(shop, address)
    added = await do(browser, "AddProduct", productId=product, quantity=quantity)
    return added if "errors" in added.body else await check_out(browser, **values)


async def honest_are_served(shop: Shop, product: str) -> None:
    """Let honest buyers order one item each, all at once."""
    answers = await asyncio.gather(
        *(buy(shop, honest(n), product, email=f"buyer{n}@example.com") for n in range(BUYERS))
    )
    assert Counter(map(outcome, answers)) == {"done": BUYERS}


async def test_orders_of_an_address(guarded: Shop) -> None:
    """The attack: orders of one address as fast as it can, each with another email."""
    product = await sell(guarded, 30)
    browser = visitor_at(guarded, ATTACKER)
    # What made no order does not count, nor does a repeat.
    for wrong in ({}, {"email": "none"}) * 6:
        assert (await check_out(browser, **wrong)).code in ("CART_EMPTY", "BAD_USER_INPUT")
    await put(browser, product)
    first = await check_out(browser, idempotencyKey="k")
    answers = [await buy(guarded, ATTACKER, product, email=f"a{n}@example.com") for n in range(12)]
    assert [outcome(answer) for answer in answers] == ["done"] * 9 + ["RATE_LIMITED"] * 3
    assert 0 < waits(answers[-1]) <= 60
    # The buyer whose response was lost shares an address with others, who ordered meanwhile.
    again = await check_out(browser, idempotencyKey="k")
    assert again.data["checkout"]["order"] == first.data["checkout"]["order"]
    assert (await check_out(browser, idempotencyKey="other")).code == "RATE_LIMITED"
    await honest_are_served(guarded, product)
    assert (await guarded.owner.get("/api/orders")).body["total"] == 10 + BUYERS


async def test_unpaid_orders_of_an_email(guarded: Shop) -> None:
    """Another spelling is the same email, and a stranger cannot use up its orders."""
    product = await sell(guarded, 30)
    spellings = (
        "maria@gmail.com", "Maria@gmail.com", "ma.ria@gmail.com", "maria+1@googlemail.com",
        "m.aria@gmail.com",
    )  # fmt: skip
    for place, email in enumerate(spellings):
        assert outcome(await buy(guarded, f"203.0.113.{place}", product, email=email)) == "done"
    refused = await buy(guarded, "203.0.113.99", product, email="maria+2@gmail.com")
    assert (refused.code, refused.error["extensions"]["field"]) == ("UNPAID_LIMIT", "email")
    assert 0 < waits(refused) <= 3 * 86_400
    # Her own network is another one.
    assert outcome(await buy(guarded, honest(1), product, email="maria@gmail.com")) == "done"


async def test_unpaid_orders_of_a_network(still: Database) -> None:
    limits = FREE | {"unpaid_orders_per_address": 2, "reserved_percent": 0}
    async with opened(still, guarding(**limits)) as shop:
        product = await sell(shop, 30)
        # Twelve addresses of one IPv4 /24, then the /64s of one IPv6 /56.
        for network, most in (("203.0.113.{}", 20), ("2001:db8:1:{:x}::1", 6)):
            codes = Counter[str]()
            for n in range(24):
                email = f"a{n}@{len(network)}.example"
                codes[outcome(await buy(shop, network.format(n // 2), product, email=email))] += 1
            assert codes == {"done": most, "UNPAID_LIMIT": 24 - most}
        await honest_are_served(shop, product)


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


async def test_concurrent_orders_of_an_address(still: Database) -> None:
    async with opened(still, guarding(**FREE, unpaid_orders_per_address=3)) as shop:
        products = [await sell(shop, 30, name=f"P{n}", stock=100) for n in range(8)]
        answers = await asyncio.gather(
            *(buy(shop, ATTACKER, one, email=f"a{n}@b.example") for n, one in enumerate(products))
        )
        assert Counter(map(outcome, answers)) == {"done": 3, "UNPAID_LIMIT": 5}


async def test_reserved_stock_of_an_address(guarded: Shop) -> None:
    """The attack: carts that reserve whole stocks for three days, of one address."""
    many, few = await sell(guarded, 30, name="Many", stock=1_000), await sell(guarded, 30, stock=12)
    for product, quantity, expected in (
        (many, 60, "done"), (many, 41, "UNPAID_LIMIT"), (many, 40, "done"),
        (few, 11, "UNPAID_LIMIT"), (few, 10, "done"),
    ):  # fmt: skip
        email = f"a{quantity}@example.com"
        answer = await buy(guarded, ATTACKER, product, quantity, email=email)
        assert outcome(answer) == expected
        if quantity == 41:
            assert "may hold 100 items of 'Many'" in answer.error["message"]
            assert 0 < waits(answer) <= 3 * 86_400
    await honest_are_served(guarded, many)


async def test_no_address_is_stored_and_nothing_when_the_order_ended(guarded: Shop) -> None:
    product = await sell(guarded, 30)
    assert outcome(await buy(guarded, ATTACKER, product)) == "done"

    async def holders(tx: Tx) -> list[Row]:
        return await tx.all("select holder from order_holders")

    found = [row["holder"] for row in await guarded.db.read(holders)]
    assert len(found) == 4
    assert not any("203" in key and "113" in key and "." in key for key in found)
    # Whoever has the database and guesses the email does not find it.
    guess = hashlib.sha256(f"{guarded.store['id']}\0\0{BUYER['email']}".encode()).hexdigest()
    assert guess[:32] not in found
    [order] = (await guarded.owner.get("/api/orders")).body["data"]
    await guarded.owner.post(f"/api/orders/{order['id']}/cancel")
    assert await guarded.db.read(holders) == []


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
        for n in range(32)
    ]
    assert codes == ["INVALID_CREDENTIALS"] * 30 + ["RATE_LIMITED"] * 2
    customer = visitor_at(guarded, honest(1))
    assert outcome(await sign_up(customer)) == "done"
    # Whoever knows the password is not counted, however many share the address.
    for _ in range(31):
        assert outcome(await log_in(visitor_at(guarded, honest(1)))) == "done"
    refused = await log_in(attacker, email=ANA["email"], password=ANA["password"])
    assert (refused.code, 0 < waits(refused) <= 900) == ("RATE_LIMITED", True)


async def test_carts_of_an_address(still: Database) -> None:
    """The attack: a new cart with each request."""
    async with opened(still, guarding(**OWNER, carts_per_day=10)) as shop:
        product = await sell(shop, 30)

        async def begin(address: str) -> str:
            return outcome(await do(visitor_at(shop, address), "AddProduct", productId=product))

        assert [await begin(ATTACKER) for _ in range(12)] == ["done"] * 10 + ["RATE_LIMITED"] * 2
        assert len(await still.read(rows)) == 10
        assert {await begin(honest(n)) for n in range(BUYERS)} == {"done"}

        async def age(tx: Tx) -> None:
            await tx.run("update cart_quotas set began_at = began_at - $1", DAY)

        await still.write(age)
        assert await begin(ATTACKER) == "done"
        # One count of the address and one of its network began again.
        assert await still.write(cart_quotas.EXPIRY.purge, 1_000) == 2 * BUYERS
        assert await still.write(cart_quotas.EXPIRY.purge, 1_000) == 0


def searches(count: int) -> str:
    """Return a document that searches `count` times."""
    fields = " ".join(
        f'a{n}: products(hostname: $h, search: "nothing {n}") {{ nodes {{ id }} }}'
        for n in range(count)
    )
    return f"query ($h: String!) {{ {fields} }}"


async def search(browser: Browser, count: int = 1) -> list[str]:
    """Return the outcome of each of `count` searches of one document."""
    answer = await browser.send(searches(count), {"h": browser.hostname})
    errors = [error["extensions"]["code"] for error in answer.body.get("errors", ())]
    return ["done"] * (count - len(errors)) + errors


async def test_searches_of_an_address_take_nothing_from_others(guarded: Shop) -> None:
    """The attack: documents with thirty searches each, several at once."""
    for n in range(3):
        await sell(guarded, 30, name=f"Coffee {n}")

    async def attack() -> Counter[str]:
        attackers = [visitor_at(guarded, ATTACKER) for _ in range(4)]
        found = await asyncio.gather(*(search(browser, 30) for browser in attackers))
        return Counter(code for codes in found for code in codes)

    async def owner() -> set[int]:
        # More at once than may wait for the places of one account.
        return {(await guarded.owner.get("/api/products?search=coffee")).status for _ in range(8)}

    async def visitors() -> set[str]:
        browsers = [visitor_at(guarded, honest(n)) for n in range(BUYERS)]
        return {code for codes in await asyncio.gather(*map(search, browsers)) for code in codes}

    attacked, owned, visited = await asyncio.gather(attack(), owner(), visitors())
    assert attacked["RATE_LIMITED"] > 0
    assert (owned, visited) == ({200}, {"done"})


async def test_a_search_pays_for_what_it_looks_at(still: Database) -> None:
    async with opened(still, guarding(**OWNER, searched_rows_per_minute=3_000)) as shop:
        await sell(shop, 30)
        attacker = visitor_at(shop, ATTACKER)
        assert Counter(await search(attacker, 30))["done"] in (3, 4)
        refused = await attacker.send(searches(1), {"h": shop.hostname})
        assert (refused.code, 0 < waits(refused) <= 60) == ("RATE_LIMITED", True)
        assert await search(visitor_at(shop, honest(1))) == ["done"]
        # What is no search stays free.
        listed = await attacker.ask("products(hostname: $h) { nodes { title } }")
        assert len(listed["products"]["nodes"]) == 1
