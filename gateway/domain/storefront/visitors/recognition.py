"""Recognises the customer of a token among the visitors of a store."""

from dataclasses import replace

from gateway.domain.storefront.visitors import customer_sessions
from gateway.domain.storefront.visitors.session_tokens import Claim
from gateway.domain.storefront.visitors.visitor import Visitor
from outbox.database.transaction import Tx


async def recognise(tx: Tx, visitor: Visitor, claim: Claim) -> Visitor:
    """Return the visitor as the customer of `claim`, which is what a valid token says.

    A claim of another store, or of a session that ended, makes no customer.
    """
    store_id = visitor.store.id
    if claim.store_id != store_id or not await customer_sessions.is_live(
        tx, claim.session_id, claim.customer_id, store_id
    ):
        return visitor
    return replace(visitor, session_id=claim.session_id, customer_id=claim.customer_id)
