"""Recognises who arrives at a store: the hostname's store, and the customer of a token."""

from gateway.domain.storefront import customer_sessions, stores
from gateway.domain.storefront.session_tokens import Claim
from gateway.domain.storefront.visitor import Visitor
from outbox.database.transaction import Tx


async def arrive(
    tx: Tx, hostname: str, claim: Claim | None, cart_token: str | None, address: str
) -> Visitor:
    """Return the visitor of the store with this hostname; `claim` is what a valid token says.

    A claim of another store, or of a session that ended, makes no customer. Raises store_not_found.
    """
    store, zone = await stores.by_hostname(tx, hostname)
    session_id = customer_id = None
    if (
        claim is not None
        and claim.store_id == store.id
        and await customer_sessions.is_live(tx, claim.session_id, claim.customer_id, store.id)
    ):
        session_id, customer_id = claim.session_id, claim.customer_id
    return Visitor(
        store=store, zone=zone, customer_id=customer_id, session_id=session_id,
        cart_token=cart_token, address=address,
    )  # fmt: skip
