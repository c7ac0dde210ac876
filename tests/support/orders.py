"""Orders that are placed without a cart, for tests of what follows from them."""

import hashlib
from collections.abc import Mapping
from typing import Any

from gateway.domain.contacts.upsert import ContactDetails, upsert
from gateway.domain.sales import placing
from gateway.domain.sales.document_lines import Line
from gateway.domain.sales.placing import Purchase
from gateway.records.audit import Actor
from outbox.database.transaction import Tx
from tests.support.rest import Person, Reply
from tests.support.shop import Shop

DAY = 24 * 3600 * 1_000_000


async def product(who: Person, stock: int | None = 10, price: float = 30, **more: Any) -> str:
    """Create a product; return its id."""
    body = {"name": "Coffee", "price": price, "stock": stock, **more}
    made = await who.post("/api/products", body)
    assert made.status == 201, made.body
    return str(made.body["id"])


async def stock_of(who: Person, product_id: str) -> int | None:
    found: int | None = (await who.get(f"/api/products/{product_id}")).body["stock"]
    return found


async def order_of(who: Person, order_id: str) -> dict[str, Any]:
    """Return an order as the REST API shows it."""
    found: dict[str, Any] = (await who.get(f"/api/orders/{order_id}")).body
    return found


async def pay(who: Person, order: Mapping[str, Any]) -> Reply:
    return await who.post(f"/api/invoices/{order['invoiceId']}/pay", {"method": "pix"})


async def cancel(who: Person, order: Mapping[str, Any], **body: Any) -> Reply:
    return await who.post(f"/api/orders/{order['id']}/cancel", body)


async def placed(
    shop: Shop,
    wanted: Mapping[str, int],
    *,
    with_deal: bool = True,
    lasts: int = DAY,
    discount: int = 0,
    shipping: int = 0,
) -> dict[str, Any]:
    """Place an order of products (id → quantity) for 30 BRL each; return it by REST."""

    async def unit(tx: Tx) -> str:
        actor = Actor(shop.owner.user_id, "storefront", store_id=shop.store["id"])
        lines = [
            Line("Coffee", quantity * 1000, 3000, quantity * 3000, product_id=product_id)
            for product_id, quantity in wanted.items()
        ]
        order_id = tx.new_id()
        await placing.reserve(tx, order_id, lines)
        contact = await upsert(
            tx, actor, ContactDetails(email="maria@example.com", name="Maria da Silva")
        )
        buyer = {
            "name": "Maria da Silva", "email": "maria@example.com", "payment_method": "pix",
        }  # fmt: skip
        what = Purchase(
            order_id=order_id, store_id=shop.store["id"], customer_id=None,
            contact_id=contact.id, lines=lines, discount=discount, shipping=shipping, coupon=None,
            shipping_option=None, buyer=buyer, expires_at=tx.now + lasts, with_deal=with_deal,
        )  # fmt: skip
        digest = hashlib.sha256(order_id.encode()).digest()
        return (await placing.place(tx, actor, what, digest)).id

    return await order_of(shop.owner, await shop.db.write(unit))
