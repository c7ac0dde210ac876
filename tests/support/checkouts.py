"""Purchases in a store, for the tests of the checkout and of orders."""

from typing import Any

from tests.support.carts import change, sell
from tests.support.shop import Answer, Browser, Shop

BUYER = {"email": "maria@example.com", "name": "Maria da Silva"}
ADDRESS = {
    "street": "Avenida Paulista", "number": "1578", "city": "São Paulo", "state": "SP",
    "cep": "01310-200",
}  # fmt: skip
ORDER = (
    "id number status totalPrice totalDiscount totalShipping total name email notes accessToken"
    " createdAt expiresAt paidAt canceledAt items { productId title price quantity }"
    " coupon { code discountPercentage discountValue } shipping { type name price deadline }"
    " address { name street number complement district city state cep }"
    " payment { method pixCode }"
)
PAYLOAD = f"order {{ {ORDER} }} payment {{ method pixCode }} warnings {{ code message productId }}"
PASSWORD = "secret123"
RULES = [
    {
        "type": "express", "name": "Express", "price": 25.5, "deadline": 2,
        "cepFrom": "01000000", "cepTo": "05999999",
    },
    {
        "type": "economy", "name": "Economy", "price": 10, "deadline": 9,
        "cepFrom": "00000000", "cepTo": "99999999",
    },
]  # fmt: skip


async def put(browser: Browser, product: str, quantity: int = 1) -> Any:
    """Put a product into the browser's cart."""
    return await change(browser, "AddProduct", productId=product, quantity=quantity)


async def check_out(browser: Browser, **values: Any) -> Answer:
    """Send the checkout of the browser's cart."""
    return await browser.do("checkout", PAYLOAD, **{**BUYER, **values})


async def ordered(browser: Browser, **values: Any) -> Any:
    """Check out and return the order; fails when it is refused."""
    return (await check_out(browser, **values)).data["checkout"]["order"]


async def bought(shop: Shop, quantity: int = 1, **values: Any) -> tuple[Browser, Any]:
    """Return a new visitor and the order of a new product."""
    browser = shop.browser()
    await put(browser, await sell(shop, 30, stock=10), quantity)
    return browser, await ordered(browser, **values)


async def sign_up(browser: Browser, email: str = "maria@example.com") -> None:
    """Create a customer account; the browser is signed in from then on."""
    answer = await browser.do(
        "clientSignup", "token", name="Maria da Silva", email=email, password=PASSWORD
    )
    assert answer.data["clientSignup"]["token"]


async def coupon(shop: Shop, code: str = "WELCOME", **values: Any) -> str:
    """Create a coupon of the store; return its id."""
    kind = {} if "discountValue" in values else {"discountPercentage": 10}
    body = {"storeId": shop.store["id"], "code": code, **kind, **values}
    made = await shop.owner.post("/api/coupons", body)
    assert made.status == 201, made.body
    return str(made.body["id"])


async def see(browser: Browser, number: str, token: str | None = None) -> Any:
    """Return the order that the browser sees under a number, or None."""
    query = (
        "query ($h: String!, $n: String!, $t: String)"
        f" {{ order(hostname: $h, number: $n, accessToken: $t) {{ {ORDER} }} }}"
    )
    answer = await browser.send(query, {"h": browser.hostname, "n": number, "t": token})
    return answer.data["order"]
