"""Exports the personal data of a customer as JSON text (LGPD, articles 18 and 19).

The account is read in one unit, orders and reviews in units of a few, the oldest first. The text
ends at MOST_BYTES, and then says `truncated`: the export of the store's owner has everything.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msgspec import json

from gateway.domain.sales.orders import ORDERS
from gateway.domain.storefront.carts.contents import current
from gateway.domain.storefront.catalogue import reviews
from gateway.domain.storefront.orders import order_addresses
from gateway.domain.storefront.visitors import customers
from gateway.domain.storefront.visitors.shopper import Shopper
from gateway.records import store
from gateway.records.places import Place
from gateway.records.record import Record
from gateway.records.values import dates
from outbox.database.transaction import Tx

MOST_BYTES = 4_194_304
PAGE = 20
"""Orders or reviews that one unit reads; an order may have 60 kB of lines."""
EXPORTED = (
    "number", "status", "createdAt", "items", "subtotal", "discount", "shipping", "total",
    "currency", "name", "email", "phone", "document", "address", "paymentMethod", "notes",
)  # fmt: skip
BEGIN = Place(0, "")

Read = Callable[..., Awaitable[Any]]
"""Runs a unit on a snapshot."""
Page = tuple[list[bytes], Place | None]
"""Values as JSON, and the place of the last one; None when no more follow."""

_IDENTITIES = """
select issuer, subject, created_at from customer_identities where customer_id = $1
order by created_at, issuer
"""
_SESSIONS = """
select created_at, expires_at from customer_sessions where customer_id = $1 order by created_at, id
"""
_ORDERS = """
select id, created_at from orders
where owner_id = $1 and customer_id = $2 and (created_at, id) > ($3, $4)
order by created_at, id limit $5
"""


async def export(read: Read, visitor: Shopper) -> str:
    """Return the data of the customer who is signed in, as JSON. Raises unauthenticated."""
    head, customer_id = await read(_account, visitor)
    parts, size, whole = [head], len(head), True
    for name, unit, of in (
        ("orders", _orders, (visitor.store.owner_id, customer_id)),
        ("reviews", _reviews, (customer_id,)),
    ):
        values: list[bytes] = []
        place: Place | None = BEGIN
        while place is not None and whole:
            page, place = await read(unit, place, *of)
            # A read of few rows may have been served in this very turn of the event loop.
            await asyncio.sleep(0)
            for value in page:
                size += len(value) + 1
                if size > MOST_BYTES:
                    whole = False
                    break
                values.append(value)
        parts.append(b'"%s":[%s]' % (name.encode(), b",".join(values)))
    if not whole:
        parts.append(b'"truncated":true')
    return (b"{" + b",".join(parts) + b"}").decode()


async def _account(tx: Tx, visitor: Shopper) -> tuple[bytes, str]:
    """Return the members of the export that the account alone has, and the customer's id."""
    customer = await customers.own(tx, visitor)
    data: Mapping[str, Any] = {
        "store": {"name": visitor.store["name"], "hostname": visitor.store["hostname"]},
        "account": {
            name: customer.shown(name)
            for name in (
                "id", "name", "email", "phone", "emailVerified", "acceptsMarketing", "createdAt",
                "updatedAt",
            )
        },
        "addresses": await order_addresses.listed(tx, customer.id),
        "identities": [
            {"issuer": row["issuer"], "subject": row["subject"],
             "linkedAt": dates.show(row["created_at"])}
            for row in await tx.all(_IDENTITIES, customer.id)
        ],
        "sessions": [
            {"startedAt": dates.show(row["created_at"]), "endsAt": dates.show(row["expires_at"])}
            for row in await tx.all(_SESSIONS, customer.id)
        ],
        "cart": [
            {"title": item.product.name, "quantity": item.line.quantity}
            for item in (await current(tx, visitor)).items
        ],
    }  # fmt: skip
    return json.encode(data)[1:-1], customer.id


async def _orders(tx: Tx, after: Place, owner_id: str, customer_id: str) -> Page:
    """Return the next orders; amounts are in BRL."""
    rows = await tx.all(_ORDERS, owner_id, customer_id, after.at, after.record_id, PAGE)
    whole = await store.fetch_whole(tx, ORDERS, [row["id"] for row in rows])
    orders = [Record(ORDERS, whole[row["id"]]) for row in rows if row["id"] in whole]
    values = [json.encode({name: order.shown(name) for name in EXPORTED}) for order in orders]
    return values, Place(rows[-1]["created_at"], rows[-1]["id"]) if len(rows) == PAGE else None


async def _reviews(tx: Tx, after: Place, customer_id: str) -> Page:
    """Return the next reviews."""
    values, place = await reviews.written(tx, customer_id, after, PAGE)
    return [json.encode(value) for value in values], place
