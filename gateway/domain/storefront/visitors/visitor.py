"""Describes who visits a store: the store, the customer if signed in, and the cart."""

from dataclasses import dataclass
from functools import cached_property

from gateway.records.access import Actor
from gateway.records.errors import Refusal
from gateway.records.record import Record


@dataclass(frozen=True, kw_only=True)
class Visitor:
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
