"""Finds the order of a checkout that is sent again with the same idempotency key.

A key belongs to one visitor of a store: to the customer, or to the cart's token. A visitor's key is
stored under the cart token before the order and the one after it, because a client that lost the
response repeats the request with the old token.
"""

from msgspec import Struct, json

from gateway.domain.storefront.visitors.shopper import Shopper
from gateway.records.errors import Fault, Refusal
from gateway.records.idempotency import KEPT
from outbox.database.expiry import Expiry
from outbox.database.transaction import Tx
from outbox.ids import digest_of
from outbox.webhooks.secrets import KeyRing, SealBroken


class Key(Struct, frozen=True):
    """The idempotency key of a request."""

    text: str
    fingerprint: bytes
    """A digest of the values; equal for repeats of a request."""


class Tokens(Struct, frozen=True):
    """The secrets of the response to a checkout."""

    access: str | None
    """The token of the order; None when the key that sealed it is gone."""
    cart: str | None
    """The token of the visitor's next cart."""


_FIND = """
select order_id, fingerprint, sealed from checkouts
where store_id = $1 and key = $2 and visitor = $3 and created_at > $4
"""
# A key can be used again after KEPT, even before it is pruned.
_KEEP = """
insert into checkouts (store_id, visitor, key, fingerprint, order_id, sealed, created_at)
values ($1, $2, $3, $4, $5, $6, $7)
on conflict (store_id, visitor, key) do update set fingerprint = excluded.fingerprint,
  order_id = excluded.order_id, sealed = excluded.sealed, created_at = excluded.created_at
"""
EXPIRY = Expiry("checkouts", "store_id, visitor, key", "created_at", KEPT)


async def find(tx: Tx, visitor: Shopper, key: Key, ring: KeyRing) -> tuple[str, Tokens] | None:
    """Return the id and the tokens of the order that this request made before, or None.

    Raises idempotency_mismatch when the key was used with other values.
    """
    name = _name(visitor, visitor.cart_token)
    if name is None:
        return None
    row = await tx.one(_FIND, visitor.store.id, key.text, name, tx.now - KEPT)
    if row is None:
        return None
    if bytes(row["fingerprint"]) != key.fingerprint:
        message = "This key was used for another order; use a new one for a new order."
        fault = Fault("idempotencyKey", "mismatch", message)
        raise Refusal("idempotency_mismatch", message, faults=[fault])
    try:
        plain = ring.open(bytes(row["sealed"]), row["order_id"])
    except SealBroken:
        return row["order_id"], Tokens(None, None)
    return row["order_id"], json.decode(plain, type=Tokens)


async def keep(
    tx: Tx, visitor: Shopper, key: Key, order_id: str, tokens: Tokens, ring: KeyRing
) -> None:
    """Store the order under the key of the request."""
    sealed = ring.seal(json.encode(tokens), order_id)
    names = {_name(visitor, visitor.cart_token), _name(visitor, tokens.cart)}
    for name in sorted(filter(None, names)):
        await tx.run(
            _KEEP, visitor.store.id, name, key.text, key.fingerprint, order_id, sealed,
            tx.now,
        )  # fmt: skip


def _name(visitor: Shopper, token: str | None) -> str | None:
    """Return the name under which the visitor's keys are stored."""
    if visitor.customer_id is not None:
        return f"customer {visitor.customer_id}"
    return None if token is None else f"cart {digest_of(token).hex()}"
