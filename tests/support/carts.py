"""Products, coupons and carts of a store, for the tests of the storefront."""

from typing import Any

from gateway.records.values.global_ids import global_id, record_id
from outbox.database.transaction import Tx
from tests.support.shop import Answer, Browser, Shop

WARNINGS = "warnings { code message productId }"
CART = (
    "id totalPrice totalQuantity totalDiscount totalShipping total cep shippingType"
    " requiresShipping"
    " products { id productId title price quantity available images { url alt } }"
    " coupon { code discountPercentage discountValue }"
    f" shippingOptions {{ type name price deadline freeFrom }} {WARNINGS}"
)
PAYLOAD = f"shoppingCart {{ {CART} }} {WARNINGS}"
EMPTY: dict[str, Any] = {
    "totalPrice": 0,
    "totalQuantity": 0,
    "totalDiscount": 0,
    "totalShipping": None,
    "total": 0,
    "cep": None,
    "shippingType": None,
    "requiresShipping": False,
    "products": [],
    "coupon": None,
    "shippingOptions": [],
    "warnings": [],
}
"""A cart without anything, apart from its id."""


async def sell(shop: Shop, price: float = 89.9, **values: Any) -> str:
    """Create a product that the store sells, at a price in BRL; return its global id."""
    body = {"name": "Coffee beans", "price": price, "storeId": shop.store["id"], **values}
    made = await shop.owner.post("/api/products", body)
    assert made.status == 201, made.body
    await edit(shop, global_id("Product", made.body["id"]), store_id=shop.store["id"])
    return global_id("Product", made.body["id"])


async def edit(shop: Shop, product: str, **columns: Any) -> None:
    """Change columns of a product by its global id."""

    async def unit(tx: Tx) -> None:
        for column, value in columns.items():
            sql = f"update products set {column} = $2 where id = $1"
            await tx.run(sql, record_id(product, "Product", "id"), value)

    await shop.db.write(unit)


async def offer(shop: Shop, code: str, **values: Any) -> Any:
    """Create a coupon of the store by REST; return its body."""
    body = {"storeId": shop.store["id"], "code": code, **values}
    made = await shop.owner.post("/api/coupons", body)
    assert made.status == 201, made.body
    return made.body


async def cart(browser: Browser) -> Any:
    """Return the browser's cart."""
    found = await browser.ask(f"shoppingCart(hostname: $h) {{ {CART} }}")
    return found["shoppingCart"]


async def do(browser: Browser, name: str, **values: Any) -> Answer:
    """Run the mutation shoppingCart`name`."""
    return await browser.do(f"shoppingCart{name}", PAYLOAD, **values)


async def change(browser: Browser, name: str, **values: Any) -> Any:
    """Run the mutation shoppingCart`name` and return its payload; fails when it is refused."""
    return (await do(browser, name, **values)).data[f"shoppingCart{name}"]
