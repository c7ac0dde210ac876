"""Takes products out of stock for an order, and puts them back when the order ends unpaid.

A product without a stock is unlimited. A sale emits no product.updated, but it changes the version
of the product, so its ETag and `updatedSince` show the new stock.
"""

from collections.abc import Mapping

from gateway.records.errors import Fault, Refusal
from outbox.database.transaction import Tx

_FIND = "select name, stock from products where id = $1 /*postgres for no key update*/"
_TAKE = """
update products set stock = stock - $2, version = version + 1, updated_at = $3
where id = $1 and stock >= $2
"""
_KEEP = "insert into stock_reservations (order_id, product_id, quantity) values ($1, $2, $3)"
_KEPT = """
select product_id, quantity from stock_reservations where order_id = $1 order by product_id
"""
_RETURN = """
update products set stock = stock + $2, version = version + 1, updated_at = $3
where id = $1 and stock is not null
"""
_FORGET = "delete from stock_reservations where order_id = $1"


async def reserve(tx: Tx, order_id: str, quantities: Mapping[str, int]) -> None:
    """Take products (id → quantity) out of stock for an order. Raises insufficient_stock.

    It locks the products in the order of their ids.
    """
    for product_id in sorted(quantities):
        quantity = quantities[product_id]
        product = await tx.one(_FIND, product_id)
        if product is None:
            raise insufficient("A product", 0)
        if product["stock"] is None:
            continue
        if await tx.run(_TAKE, product_id, quantity, tx.now) != 1:
            raise insufficient(product["name"], product["stock"])
        await tx.run(_KEEP, order_id, product_id, quantity)


def insufficient(name: str, remaining: int) -> Refusal:
    """Return the refusal of an order for more than the stock of a product."""
    stock = f"only {remaining} of {name!r} left" if remaining else f"{name!r} is sold out"
    message = f"There is not enough stock: {stock}."
    fault = Fault("products", "insufficient_stock", message)
    return Refusal("insufficient_stock", message, faults=[fault])


async def commit(tx: Tx, order_id: str) -> None:
    """Make the reservations of an order final."""
    await tx.run(_FORGET, order_id)


async def release(tx: Tx, order_id: str) -> None:
    """Put the reserved items of an order back; a second call does nothing."""
    for row in await tx.all(_KEPT, order_id):
        await tx.run(_RETURN, row["product_id"], row["quantity"], tx.now)
    await tx.run(_FORGET, order_id)
