"""Reserves the stock of unpaid orders, and bounds what those of one holder take.

A product without a stock is unlimited. A sale emits no product.updated, but it changes the version
of the product, so its ETag and `updatedSince` show the new stock.

The bounds are of the number of orders, and of the items of each product. A holder is a digest, such
as of a buyer's network; the caller chooses holders and bounds. The orders themselves are counted,
under a lock of each holder, so that no count can drift.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.records.errors import Fault, Refusal
from gateway.records.statements import changed_at
from outbox.database import locks
from outbox.database.sql import AMONG_IDS, ITEMS, items
from outbox.database.transaction import Tx
from outbox.durations import SECOND


@dataclass(frozen=True, slots=True)
class Holder:
    """A holder and its bounds."""

    key: str
    who: str
    """Who it is in a message, such as "this email"."""
    orders: int
    """Most unpaid orders; 0 is no bound."""
    field: str = ""
    """The field of the request that names it, if there is one."""
    items: int = 0
    percent: int = 0
    """Most items of a product in unpaid orders: the larger of `items` and `percent` of its stock
    with them. A percentage of 0 is no bound."""


# On SQLite write transactions follow one another.
_LOCK = f"""
select pg_advisory_xact_lock(hashtextextended(value, {locks.UNPAID_OF}))
from (select value from json_array_elements_text(cast($1 as json)) as keys(value)
  order by value) as sorted
"""
# The few orders of the holders first, whatever PostgreSQL believes about the tables.
_HELD = f"""
with h as materialized (select order_id, holder from order_holders where holder {AMONG_IDS})
"""
_PENDING = f"""{_HELD}
select h.holder, count(*) as n, min(o.expires_at) as first
from h join orders o on o.id = h.order_id
where o.status = 'pending' group by h.holder
"""
_HOLD = f"insert into order_holders (order_id, holder) select $2, value ->> 0 from {ITEMS}"
_TAKEN = f"""{_HELD}
select h.holder, p.id, p.name, p.stock, cast(sum(r.quantity) as bigint) as taken
from h join stock_reservations r on r.order_id = h.order_id
join products p on p.id = r.product_id
where p.stock is not null
  and r.product_id in (select product_id from stock_reservations where order_id = $2)
group by h.holder, p.id, p.name, p.stock order by h.holder, p.id
"""
_FIRST_END = f"""{_HELD}
select min(o.expires_at) as first
from h join stock_reservations r on r.order_id = h.order_id
join orders o on o.id = h.order_id
where r.product_id = $2 and h.order_id <> $3
"""
_FORGET = "delete from order_holders where order_id = $1"
_FIND = "select name, stock from products where id = $1 /*postgres for no key update*/"
_TAKE = f"""
update products set stock = stock - $2, version = version + 1, {changed_at("$3")}
where id = $1 and stock >= $2
"""
_KEEP = "insert into stock_reservations (order_id, product_id, quantity) values ($1, $2, $3)"
_KEPT = """
select product_id, quantity from stock_reservations where order_id = $1 order by product_id
"""
_RETURN = f"""
update products set stock = stock + $2, version = version + 1, {changed_at("$3")}
where id = $1 and stock is not null
"""
_RELEASE = "delete from stock_reservations where order_id = $1"


async def reserve(tx: Tx, order_id: str, quantities: Mapping[str, int]) -> None:
    """Take products (id → quantity) out of stock for an order. Raises insufficient_stock.

    It locks the products in the order of their ids.
    """
    for product_id in sorted(quantities):
        quantity = quantities[product_id]
        product = await tx.one(_FIND, product_id)
        if product is None:
            raise _insufficient("A product", 0)
        if product["stock"] is None:
            continue
        if await tx.run(_TAKE, product_id, quantity, tx.now) != 1:
            raise _insufficient(product["name"], product["stock"])
        await tx.run(_KEEP, order_id, product_id, quantity)


def _insufficient(name: str, remaining: int) -> Refusal:
    """Return the refusal of an order for more than the stock of a product."""
    stock = f"only {remaining} of {name!r} left" if remaining else f"{name!r} is sold out"
    message = f"There is not enough stock: {stock}."
    fault = Fault("products", "insufficient_stock", message)
    return Refusal("insufficient_stock", message, faults=[fault])


async def commit(tx: Tx, order_id: str) -> None:
    """Make the reservations of an order final."""
    await tx.run(_RELEASE, order_id)


async def release(tx: Tx, order_id: str) -> None:
    """Put the reserved items of an order back; a second call does nothing."""
    for row in await tx.all(_KEPT, order_id):
        await tx.run(_RETURN, row["product_id"], row["quantity"], tx.now)
    await tx.run(_RELEASE, order_id)


async def hold(tx: Tx, order_id: str, holders: Sequence[Holder]) -> None:
    """Count a new order, whose stock is reserved already, for its holders.

    It locks the holders in the order of their keys, so products are locked before. Raises
    unpaid_limit with the seconds until an order of the holder expires.
    """
    if not holders:
        return
    keys = items([holder.key for holder in holders])
    if tx.engine == "postgres":
        await tx.all(_LOCK, keys)
    pending = {row["holder"]: row for row in await tx.all(_PENDING, keys)}
    for holder in holders:
        row = pending.get(holder.key)
        if row is not None and 0 < holder.orders <= row["n"]:
            message = (
                f"{row['n']} orders of {holder.who} wait for payment; pay or cancel one of them, "
                "or try again when one has expired."
            )
            raise _refusal(message, holder.field, row["first"] - tx.now)
    await tx.run(_HOLD, items([[holder.key] for holder in holders]), order_id)
    bounded = {holder.key: holder for holder in holders if holder.percent}
    if not bounded:
        return
    for row in await tx.all(_TAKEN, items(list(bounded)), order_id):
        holder = bounded[row["holder"]]
        most = max(holder.items, (row["stock"] + row["taken"]) * holder.percent // 100)
        if row["taken"] > most:
            first = await tx.one(_FIRST_END, items([holder.key]), row["id"], order_id)
            message = (
                f"Unpaid orders of {holder.who} may hold {most} items of {row['name']!r}, and with "
                f"this one they would hold {row['taken']}; order fewer, or pay the others first."
            )
            wait = None if first is None or first["first"] is None else first["first"] - tx.now
            raise _refusal(message, "products", wait)


async def forget(tx: Tx, order_id: str) -> None:
    """Stop counting an order that ended."""
    await tx.run(_FORGET, order_id)


def _refusal(message: str, field: str, wait: int | None) -> Refusal:
    """Return the refusal; `wait` are microseconds, None when waiting does not help."""
    facts = {} if wait is None else {"retry_after": max(1, math.ceil(wait / SECOND))}
    faults = [Fault(field, "too_many", message)] if field else []
    return Refusal("unpaid_limit", message, faults=faults, facts=facts)
