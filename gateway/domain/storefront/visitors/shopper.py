"""Describes who visits a store: the store, the customer if signed in, and the cart.

A request reads the store and the account before its transaction, and another node caches a store
for up to a second after its deletion. So a transaction that creates rows that belong to them holds
them first: a concurrent delete waits and deletes the new rows too, or it was first, and the request
is refused.
"""

import hmac
from dataclasses import dataclass
from functools import cached_property, lru_cache

from gateway.domain.accounts.networks import networks_of
from gateway.domain.storefront.stores import stores
from gateway.records import store
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from gateway.records.record import Record
from outbox.database.transaction import Tx
from outbox.webhooks.secrets import KeyRing


@dataclass(frozen=True, kw_only=True)
class Shopper:
    """A visitor of a store."""

    store: Record
    zone: str
    """The time zone of the store's owner."""
    customer_id: str | None = None
    """The customer who is signed in."""
    session_id: str | None = None
    """The customer's session; the claim `sid` of its token."""
    cart_token: str | None = None
    """The token that names the cart: the cookie `cartSession` or the header X-Cart-Session."""
    address: str = ""
    """The network of the client, which shares limits; see accounts.networks.share_of."""
    networks: tuple[tuple[str, int], ...] = ()
    """The client's networks, as the database names them; see NetworkDigests.of."""
    carts_per_day: int = 0
    """Most carts that an address may begin in a day; 0 is no limit."""

    @cached_property
    def actor(self) -> Actor:
        """The actor on the records of the store's owner."""
        return Actor(
            self.store.owner_id, "storefront", zone=self.zone, store_id=self.store.id,
            customer_id=self.customer_id,
        )  # fmt: skip

    def must_be_customer(self) -> str:
        """Return the id of the customer. Raises unauthenticated for a visitor."""
        if self.customer_id is None:
            raise Refusal("unauthenticated", "Sign in with clientLogin first.")
        return self.customer_id


async def hold_store(tx: Tx, visitor: Shopper) -> None:
    """Lock the visitor's store against deletes. Raises store_not_found."""
    owner_id, store_id = visitor.store.owner_id, visitor.store.id
    if not await store.owned_of(tx, stores.STORES.table, owner_id, [store_id]):
        raise stores.not_found(visitor.store["hostname"])


async def hold_customer(tx: Tx, visitor: Shopper) -> None:
    """Lock the account of a signed-in customer against deletes. Raises unauthenticated."""
    customer_id = visitor.customer_id
    if customer_id is not None and not await store.owned_of(
        tx, "customers", visitor.store.owner_id, [customer_id]
    ):
        raise account_deleted()


def account_deleted() -> Refusal:
    """Return the refusal of a customer whose account was deleted since the request began."""
    return Refusal("unauthenticated", "This account was deleted.")


class NetworkDigests:
    """Names the networks of a client in the database, without their addresses.

    There are few addresses, so a plain digest would reveal them. These are keyed with a key that
    derives from the installation's ring; after the ring is rotated, the counts begin anew.
    """

    def __init__(self, ring: KeyRing) -> None:
        self._ring = ring
        self._key_id = ""
        self._key = b""
        self._known = lru_cache(maxsize=4096)(self._digests)

    def of(self, address: str) -> tuple[tuple[str, int], ...]:
        """Return the digest of each network of an address, with its multiple of the limits.

        See accounts.networks.networks_of.
        """
        if self._key_id != self._ring.newest:
            self._key_id = self._ring.newest
            self._key = self._ring.derive("storefront networks")[self._key_id]
            self._known.cache_clear()
        return self._known(address)

    def _digests(self, address: str) -> tuple[tuple[str, int], ...]:
        return tuple(
            (hmac.digest(self._key, network.encode(), "sha256").hex()[:32], worth)
            for network, worth in networks_of(address)
        )
