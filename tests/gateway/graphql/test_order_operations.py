"""The documented operations of the checkout and of orders, as they are written."""

from tests.support.carts import change, sell
from tests.support.checkouts import RULES, put, sign_up
from tests.support.operations import operation
from tests.support.shop import Shop


async def test_a_purchase_from_the_cart_to_its_cancellation(shop: Shop) -> None:
    store = {"shippingRules": RULES, "pixKey": "pix@shop.example"}
    assert (await shop.owner.put(f"/api/stores/{shop.store['id']}", store)).status == 200
    browser = shop.browser()
    await sign_up(browser)
    await put(browser, await sell(shop, 89.9, stock=5), 2)
    await change(browser, "SetShipping", cep="01310-200", type="express")
    done = (await browser.send(*operation("checkout"))).data["checkout"]
    order = done["order"]
    amounts = [order[f"total{name}"] for name in ("Price", "Discount", "Shipping", "")]
    assert amounts == [17_980, 0, 2550, 20_530]
    assert order["shipping"] == {"name": "Express", "deadline": 2}
    assert done["payment"]["pixCode"].startswith("000201")
    assert done["warnings"] == []

    listed = (await browser.send(*operation("orders"))).data["orders"]
    assert listed["totalCount"] == 1
    assert [(node["number"], node["total"]) for node in listed["nodes"]] == [("ORD-000001", 20_530)]

    token = {"accessToken": order["accessToken"]}
    stranger = shop.browser()
    found = (await stranger.send(*operation("order", **token))).data["order"]
    assert (found["status"], found["payment"]) == ("pending", done["payment"])
    assert [item["title"] for item in found["items"]] == ["Coffee beans"]
    ended = (await stranger.send(*operation("orderCancel", **token))).data["orderCancel"]["order"]
    assert (ended["number"], ended["status"]) == ("ORD-000001", "canceled")
    assert ended["canceledAt"] is not None
