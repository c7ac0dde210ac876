"""What pages send from their forms: blanks, empty fields, and a CEP in any writing."""

from typing import Any

import pytest

from gateway.records.values import cep
from gateway.records.values.formats import Wrong
from tests.gateway.graphql.test_accounts import ANA, sign_up
from tests.support.carts import change, sell
from tests.support.checkouts import ADDRESS, check_out
from tests.support.issuer import Issuer
from tests.support.shop import Shop

SQLITE = pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
WRITINGS = (
    "01310100", "01310-100", "01.310-100", "01310 100", " 01310-100\n", "01310\u00a0100",
    "01310\u2013100", "01310\u2011100", "CEP 01310-100", "cep: 01.310-100", "\ufeff01310-100",
    "0 1 3 1 0 1 0 0",
)  # fmt: skip


def test_a_cep_is_eight_digits_however_it_is_written() -> None:
    for text in WRITINGS:
        assert cep.cep().check(text) == "01310100", text
    for text in ("", " ", "-", "0131010", "013101000", "01310_100", "01310/100", "O1310-100",
                 "０１３１０１００", "CEP", "cepa 01310-100", "01310-100 SP", "1" * 41,
    ):  # fmt: skip
        with pytest.raises(Wrong):
            cep.cep().check(text)


@SQLITE
async def test_blanks_and_empty_fields_are_as_at_the_checkout(shop: Shop) -> None:
    browser = shop.browser()
    sent = {**ANA, "name": " Ana ", "email": " ana@example.com ", "phone": " "}
    user = (await browser.do("clientSignup", "user { name email phone }", **sent)).data
    assert user["clientSignup"]["user"] == {
        "name": "Ana", "email": "ana@example.com", "phone": None,
    }  # fmt: skip
    saved = await browser.do(
        "clientAddressSave", "address { name street complement state }", id="",
        **{**ADDRESS, "street": " Rua A\t", "complement": "", "name": "  ", "state": " sp "},
    )  # fmt: skip
    assert saved.data["clientAddressSave"]["address"] == {
        "name": None, "street": "Rua A", "complement": None, "state": "SP",
    }  # fmt: skip
    for change_of, then in (
        ({"name": " Ana Souza ", "phone": " 11 98888-7777 "}, ("Ana Souza", "11 98888-7777")),
        ({"phone": ""}, ("Ana Souza", None)), ({"name": "Ana"}, ("Ana", None)),
    ):  # fmt: skip
        changed = await browser.do("clientUpdate", "user { name phone }", **change_of)
        assert tuple(changed.data["clientUpdate"]["user"].values()) == then
    refused = await browser.do("clientUpdate", "user { name }", name=" ")
    assert (refused.code, refused.error["extensions"]["field"]) == ("BAD_USER_INPUT", "name")
    product = await sell(shop, 100, requiresShipping=False)
    await change(browser, "AddProduct", productId=product)
    order = await check_out(
        browser, phone="", notes=" ", document="", expectedTotal=None, idempotencyKey="",
        paymentMethod="", email=" ana@example.com ", address=dict.fromkeys(ADDRESS, ""),
    )  # fmt: skip
    found = order.data["checkout"]["order"]
    assert (found["email"], found["notes"], found["address"]) == ("ana@example.com", None, None)
    number, token = found["number"], found["accessToken"]
    for access in (token, ""):
        one = f'order(hostname: $h, number: " {number} ", accessToken: "{access}") {{ number }}'
        assert await browser.ask(one) == {"order": {"number": number}}


@SQLITE
@pytest.mark.parametrize(
    "selection",
    ['products(hostname: $h, after: "", before: "", category: "", search: "") { totalCount }',
     'products(hostname: $h, last: 1, before: "", after: "") { totalCount }',
     'categoriesConnection(hostname: $h, after: "", parent: "") { totalCount }',
     'product(hostname: $h, id: "", slug: "coffee-beans") { reviews(after: "") { totalCount } }',
     'orders(hostname: $h, after: " ") { totalCount }',
     'discountModal(hostname: $h, id: "") { id }'],
)  # fmt: skip
async def test_empty_arguments_are_absent(shop: Shop, selection: str) -> None:
    browser = shop.browser()
    await sign_up(browser)
    await sell(shop, 100)
    left_out = selection
    for name in ("after", "before", "category", "search", "parent", "id"):
        for text in ('""', '" "'):
            left_out = left_out.replace(f", {name}: {text}", "").replace(f"({name}: {text})", "")
    assert await browser.ask(selection) == await browser.ask(left_out)
    # A page without a token writes `Bearer ${token ?? ""}`; its cookie counts.
    query = f'{{ client(hostname: "{shop.hostname}") {{ user {{ name }} }} }}'
    found = (await browser.send(query, Authorization="Bearer ")).data
    assert found["client"]["user"] is not None


@SQLITE
async def test_the_name_of_a_review_shows_no_email(idp_shop: Shop, issuer: Issuer) -> None:
    browser, product = idp_shop.browser(), await sell(idp_shop, 100)
    token = issuer.token(name=None, preferred_username="ana.souza@example.com")
    assert (await browser.do("clientIdpLogin", "token", token=token)).data
    sent: dict[str, Any] = {"productId": product, "stars": 5, "text": "Good"}
    review = (await browser.do("createReview", "review { author }", **sent)).data
    assert review["createReview"]["review"]["author"] == "ana.souza"
