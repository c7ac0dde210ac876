"""Holds the store and the account of a visitor against deletes.

A request knows both from a read before its transaction, and another node remembers a store for a
moment after its end. Whatever belongs to them is therefore made only while they are held: a delete
waits for the transaction and takes the new rows along, or came first, and the request is refused.
"""

from gateway.domain.storefront.stores import stores
from gateway.domain.storefront.visitors.visitor import Visitor
from gateway.records import store
from gateway.records.errors import Refusal
from outbox.database.transaction import Tx


async def hold_store(tx: Tx, visitor: Visitor) -> None:
    """Hold the visitor's store. Raises store_not_found."""
    found = visitor.store
    if not await store.owned_of(tx, stores.STORES.table, found.owner_id, [found.id]):
        raise stores.not_found(found["hostname"])


async def hold_customer(tx: Tx, visitor: Visitor) -> None:
    """Hold the account of the customer, if the visitor is one. Raises unauthenticated."""
    customer_id = visitor.customer_id
    if customer_id is not None and not await store.owned_of(
        tx, "customers", visitor.store.owner_id, [customer_id]
    ):
        raise deleted()


def deleted() -> Refusal:
    """Return the refusal of a customer whose account was deleted since the request began."""
    return Refusal("unauthenticated", "This account was deleted.")
