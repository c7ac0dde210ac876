"""Bounds how many carts a network begins within a day: anybody can begin one, without a sign-in."""

from gateway.domain.storefront.visitors.shopper import Shopper
from gateway.records.errors import rate_limited
from outbox.database.expiry import Expiry
from outbox.database.transaction import Tx
from outbox.durations import DAY, SECOND

_TAKE = """
insert into cart_quotas (holder, began_at, carts) values ($1, $2, 1)
on conflict (holder) do update set
  carts = case when cart_quotas.began_at <= $3 then 1 else cart_quotas.carts + 1 end,
  began_at = case when cart_quotas.began_at <= $3 then excluded.began_at
    else cart_quotas.began_at end
where cart_quotas.began_at <= $3 or cart_quotas.carts < $4
"""
_BEGAN = "select began_at from cart_quotas where holder = $1"
EXPIRY = Expiry("cart_quotas", "holder", "began_at", DAY)


async def take(tx: Tx, visitor: Shopper) -> None:
    """Count a new cart of the visitor's networks. Raises rate_limited.

    It locks their counts until the transaction ends, the narrowest network's first.
    """
    most = visitor.carts_per_day
    if not most:
        return
    for holder, worth in visitor.networks:
        if not await tx.run(_TAKE, holder, tx.now, tx.now - DAY, most * worth):
            row = await tx.one(_BEGAN, holder)
            wait = DAY if row is None else row["began_at"] + DAY - tx.now
            raise rate_limited(
                "Too many new carts from this address; go on with one of them, or try again later.",
                wait / SECOND,
            )
