"""Shows orders to the people who made them, and cancels them.

A customer sees the orders of the account, and whoever has the token of an order sees that order.
"""

from gateway.domain.sales import order_verbs
from gateway.domain.sales.orders import ORDERS
from gateway.domain.storefront.visitors.shopper import Shopper
from gateway.records import actions, slices
from gateway.records.errors import Fault, Refusal
from gateway.records.query import Query
from gateway.records.record import Draft, Record
from gateway.records.slices import Slice, SliceRequest
from gateway.records.values import formats
from gateway.records.values.formats import Wrong
from outbox.database.transaction import Tx
from outbox.ids import digest_of

_NUMBER = formats.text(40)
_TEXT = formats.text(200)
REASON = "Canceled by the customer."
_OF_CUSTOMER = """
select id from orders where owner_id = $1 and number = $2 and store_id = $3 and customer_id = $4
"""
_SHOWN = """
select o.id from order_tokens t join orders o on o.id = t.order_id
where t.digest = $1 and o.owner_id = $2 and o.number = $3 and o.store_id = $4
"""


async def one(tx: Tx, visitor: Shopper, number: str, access_token: str | None) -> Record | None:
    """Return the order with this number if it is the visitor's own, else None."""
    number = number.strip()
    store, row = visitor.store, None
    try:
        _NUMBER.check(number)
        digested = None if access_token is None else digest_of(_TEXT.check(access_token))
    except Wrong:
        # No order has such a number or token.
        return None
    if visitor.customer_id is not None:
        row = await tx.one(_OF_CUSTOMER, store.owner_id, number, store.id, visitor.customer_id)
    if row is None and digested is not None:
        row = await tx.one(_SHOWN, digested, store.owner_id, number, store.id)
    if row is None:
        return None
    return await actions.read(tx, visitor.actor, ORDERS, row["id"])


async def cancel(tx: Tx, visitor: Shopper, number: str, access_token: str | None) -> Record:
    """Cancel the visitor's own order; a canceled one stays as it is.

    Raises invalid_transition, and not_found, also for the order of somebody else.
    """
    order = await one(tx, visitor, number, access_token)
    if order is None:
        message = "You have no order with this number."
        raise Refusal("not_found", message, faults=[Fault("number", "unknown", message)])
    reason = Draft(values={"reason": REASON})
    return await order_verbs.cancel(tx, visitor.actor, order.id, reason)


async def slice_of(tx: Tx, visitor: Shopper, customer_id: str, request: SliceRequest) -> Slice:
    """Return a slice of the customer's orders, the newest first."""
    store = visitor.store
    return await slices.read_slice(
        tx, ORDERS, store.owner_id, _of(visitor, customer_id), request, visitor.zone
    )


async def count(tx: Tx, visitor: Shopper, customer_id: str) -> int:
    """Return the number of the customer's orders."""
    store = visitor.store
    return await slices.count(tx, ORDERS, store.owner_id, _of(visitor, customer_id), visitor.zone)


def _of(visitor: Shopper, customer_id: str) -> Query:
    return Query(scope={"store_id": visitor.store.id, "customer_id": customer_id})
