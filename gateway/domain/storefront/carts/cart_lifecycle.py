"""Merges carts at a sign-in, and deletes expired ones. Those that were ordered: see rows.close."""

from dataclasses import replace as replaced

from msgspec.structs import replace

from gateway.domain.storefront.carts import rows
from gateway.domain.storefront.carts.changes import MOST_LINES
from gateway.domain.storefront.carts.rows import Cart
from gateway.domain.storefront.visitors.shopper import Shopper
from outbox.database.index_plans import by_index
from outbox.database.transaction import Tx
from outbox.durations import DAY

KEPT = 30 * DAY
"""How long a cart is stored that was ordered or merged."""


async def adopt(tx: Tx, visitor: Shopper, customer_id: str) -> None:
    """Merge the cart of a visitor who signs in into the customer's.

    For each product the visitor's quantity wins. The customer's other lines stay as far as the
    cart has room. The visitor's token is invalid afterwards; set a new one.
    """
    guest = await rows.find(tx, replaced(visitor, customer_id=None), lock=True)
    if guest.id is None:
        return
    customer = replaced(visitor, customer_id=customer_id)
    # An empty guest cart changes nothing.
    if guest.lines or guest.coupon_id or guest.cep:
        await rows.save(tx, merged(await rows.opened(tx, customer), guest))
    await rows.end(tx, guest.id, "merged")


def merged(own: Cart, guest: Cart) -> Cart:
    """Return the customer's cart merged with the visitor's; see `adopt`."""
    ids = {line.product_id: line.id for line in own.lines}
    lines = [replace(line, id=ids.get(line.product_id, line.id)) for line in guest.lines]
    mine = {line.product_id for line in lines}
    others = [line for line in own.lines if line.product_id not in mine]
    # The newest lines are last.
    others = others[max(0, len(others) + len(lines) - MOST_LINES) :]
    loses = (
        len(others) < len(own.lines)
        or (own.coupon_id is not None and guest.coupon_id is not None)
        or (own.cep is not None and guest.cep is not None)
    )
    # What it loses may be what was seen at a higher price than the stored one.
    unseen = guest.unseen + (max(0, own.unseen) if loses else own.unseen)
    cart = replace(own, lines=(*others, *lines), unseen=unseen)
    if guest.coupon_id is not None:
        cart = replace(cart, coupon_id=guest.coupon_id, coupon=guest.coupon)
    if guest.cep is not None:
        cart = replace(
            cart,
            cep=guest.cep,
            shipping_type=guest.shipping_type,
            shipping_price=guest.shipping_price,
        )
    return cart


_EXPIRED = """
delete from carts where id in (
  select id from carts where expires_at <= $1 order by expires_at limit $2)
"""
_ENDED = """
delete from carts where id in (
  select id from carts where ended_at <= $1 order by ended_at limit $2)
"""


async def purge(tx: Tx, limit: int) -> int:
    """Delete up to `limit` carts that expired, or that ended KEPT ago; return how many."""
    await by_index(tx)
    expired = await tx.run(_EXPIRED, tx.now, limit)
    return expired + await tx.run(_ENDED, tx.now - KEPT, limit - expired)
