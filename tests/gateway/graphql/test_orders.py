"""Orders of a store's customers and visitors: who sees them, and who cancels them."""

from typing import Any

from tests.support.carts import sell
from tests.support.checkouts import ORDER, ordered, put, see, sign_up
from tests.support.rest import RestApi
from tests.support.shop import Browser, Shop, open_shop

ORDERS = (
    "query ($h: String!, $first: Int, $after: String) {"
    " orders(hostname: $h, first: $first, after: $after) {"
    " nodes { number } edges { cursor node { number } } totalCount"
    " pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }"
)


async def listed(browser: Browser, **args: Any) -> Any:
    answer = await browser.send(ORDERS, {"h": browser.hostname, **args})
    return answer.data["orders"]


async def cancel(browser: Browser, number: str, token: str | None = None) -> Any:
    return await browser.do("orderCancel", f"order {{ {ORDER} }}", number=number, accessToken=token)


async def customer(shop: Shop, email: str = "maria@example.com") -> tuple[Browser, Any]:
    """Return a customer who is signed in, and an order of that customer."""
    browser = shop.browser()
    await sign_up(browser, email)
    await put(browser, await sell(shop, 30, stock=10))
    return browser, await ordered(browser, email=email)


async def test_three_people_see_nothing_of_each_other(shop: Shop, api: RestApi) -> None:
    other_shop = await open_shop(api, "other.example")
    try:
        maria, hers = await customer(shop, "maria@example.com")
        ana, anas = await customer(shop, "ana@example.com")
        # The same person has another account in another store, and the same numbers exist there.
        there, theirs = await customer(other_shop, "maria@example.com")
        assert (hers["number"], theirs["number"]) == ("ORD-000001", "ORD-000001")

        assert await see(maria, anas["number"]) is None
        assert await see(ana, hers["number"]) is None
        for browser, order in ((maria, hers), (ana, anas), (there, theirs)):
            assert [n["number"] for n in (await listed(browser))["nodes"]] == [order["number"]]
            assert (await listed(browser))["totalCount"] == 1
        assert (await see(there, theirs["number"]))["id"] == theirs["id"] != hers["id"]

        # Neither a cookie nor a token opens an order of another store.
        there.hostname, maria.hostname = shop.hostname, other_shop.hostname
        for browser, order in ((there, hers), (there, theirs), (maria, hers), (maria, theirs)):
            assert await see(browser, order["number"]) is None
            assert (await cancel(browser, order["number"])).code == "NOT_FOUND"
            answer = await browser.send(ORDERS, {"h": browser.hostname})
            assert answer.code == "UNAUTHENTICATED"
        assert await see(maria, hers["number"], hers["accessToken"]) is None
        assert await see(there, theirs["number"], theirs["accessToken"]) is None
        assert (await cancel(ana, hers["number"], anas["accessToken"])).code == "NOT_FOUND"

        for owner in (shop.owner, other_shop.owner):
            found = (await owner.get("/api/orders")).body["data"]
            assert {one["status"] for one in found} == {"pending"}
        assert len((await other_shop.owner.get("/api/orders")).body["data"]) == 1
    finally:
        await other_shop.close()
