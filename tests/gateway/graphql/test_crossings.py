"""Every operation, sent by another customer, by another store's customer and by a visitor.

Each sends the documented operation with the ids of Ana's things. No response contains anything of
Ana's, and afterwards Ana has everything that she had.
"""

from dataclasses import dataclass
from typing import Any

import pytest

from gateway.graphql.schema import schema
from tests.support.carts import sell
from tests.support.checkouts import ordered, put
from tests.support.operations import operation
from tests.support.shop import Browser, Shop

SECRET = "zyxwvut"
"""In every text that Ana sends."""
EMAIL = f"{SECRET}@example.com"
MINE = """query ($h: String!) {
  client(hostname: $h) { user { id name email } addresses { id street } }
  shoppingCart(hostname: $h) { id products { id quantity } }
  orders(hostname: $h) { nodes { number status name } } }"""
PASSWORD = "correct horse"
FOR_CUSTOMERS = {
    "clientAddressDelete", "clientAddressSave", "clientChangePassword", "clientDeleteAccount",
    "clientExportData", "clientLinkIdp", "clientUpdate", "createReview", "orders",
}  # fmt: skip
"""What nobody does who is not signed in to the store."""
SIGNS_OUT = ("clientChangePassword", "clientDeleteAccount", "clientLogout", "clientResetPassword")
ADDRESS = {
    "street": f"Rua {SECRET}",
    "number": "1",
    "city": "Itu",
    "state": "SP",
    "cep": "13300000",
}


def every_operation() -> list[str]:
    whole = schema()
    assert whole.query_type is not None
    assert whole.mutation_type is not None
    return sorted({*whole.query_type.fields, *whole.mutation_type.fields})


@dataclass(frozen=True)
class World:
    """Ana, what is hers, and the others."""

    ana: Browser
    places: dict[str, str]
    others: dict[str, Browser]


async def signed_up(shop: Shop, email: str, hostname: str, name: str) -> Browser:
    browser = shop.browser()
    browser.hostname = hostname
    answer = await browser.do(
        "clientSignup", "token", email=email, name=name, password=PASSWORD
    )  # fmt: skip
    assert answer.data
    return browser


async def world(shop: Shop) -> World:
    """Make Ana with an address, an order, a review and a cart, and three others."""
    other = {"hostname": "other.example", "name": "Other"}
    assert (await shop.owner.post("/api/stores", other)).status == 201
    product = await sell(shop, 10, stock=99)
    ana = await signed_up(shop, EMAIL, shop.hostname, f"Ana {SECRET}")
    saved = await ana.do("clientAddressSave", "address { id }", **ADDRESS)
    await put(ana, product)
    order = await ordered(ana, email=EMAIL, name=f"Ana {SECRET}")
    await put(ana, product)
    cart = (await ana.ask("shoppingCart(hostname: $h) { id products { id } }"))["shoppingCart"]
    modal = await shop.owner.post(
        "/api/discount-modals",
        {"storeId": shop.store["id"], "title": "T", "prefix": "HI", "discountPercentage": 10},
    )
    book = {"storeId": shop.store["id"], "title": "B", "fileUrl": "https://x.example/b.pdf"}
    places = {
        "addressId": saved.data["clientAddressSave"]["address"]["id"],
        "lineId": cart["products"][0]["id"],
        "productId": product,
        "discountModalId": modal.body["id"],
        "ebookId": (await shop.owner.post("/api/ebooks", book)).body["id"],
        "accessToken": "0" * 43,
        "orderNumber": order["number"],
        "userId": (await ana.ask("client(hostname: $h) { user { id } }"))["client"]["user"]["id"],
        "cartId": cart["id"],
    }
    return World(ana, places, await others(shop, ""))


async def others(shop: Shop, name: str) -> dict[str, Browser]:
    """Return another customer, another store's customer and a visitor."""
    return {
        "customer": await signed_up(shop, f"bia{name}@example.com", shop.hostname, "Bia"),
        "elsewhere": await signed_up(shop, f"eva{name}@example.com", "other.example", "Eva"),
        "visitor": shop.browser(),
    }


def filled(name: str, places: dict[str, str]) -> tuple[str, dict[str, Any]]:
    """Return the documented operation, about Ana's things and with her email and password."""
    document, variables = operation(name, **places)
    values = variables.get("input", variables)
    for key, value in (("number", places["orderNumber"]), ("password", PASSWORD)):
        if key in values and not (name == "clientAddressSave" and key == "number"):
            values[key] = value
    if name == "clientAddressSave":
        values["id"] = places["addressId"]
    if name == "node":
        values["id"] = places["userId"]
    if name == "nodes":
        values["ids"] = [places["userId"], places["cartId"], places["addressId"]]
    return document, variables


@pytest.mark.slow
async def test_nothing_crosses(shop: Shop) -> None:
    town = await world(shop)
    before = (await town.ana.send(MINE, {"h": shop.hostname})).data
    assert SECRET in str(before)
    people = town.others
    for name in every_operation():
        for who, browser in people.items():
            document, variables = filled(name, town.places)
            values = variables.get("input", variables)
            for hostname in {shop.hostname, browser.hostname}:
                if "hostname" in values:
                    values["hostname"] = hostname
                answer = await browser.send(document, variables)
                assert answer.status == 200
                assert SECRET not in str(answer.body), (name, who, hostname, answer.body)
                codes = {e["extensions"]["code"] for e in answer.body.get("errors", ())}
                assert "INTERNAL_SERVER_ERROR" not in codes, (name, who)
                if who != "customer" and hostname == shop.hostname and name in FOR_CUSTOMERS:
                    assert codes == {"UNAUTHENTICATED"}, (name, who)
                if who == "customer" and "Address" in name:
                    assert codes == {"NOT_FOUND"}, name
        if name in SIGNS_OUT:
            people = await others(shop, name)
    after = (await town.ana.send(MINE, {"h": shop.hostname})).data
    assert after == before
