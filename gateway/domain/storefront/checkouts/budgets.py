"""The budgets of checkouts: how often somebody may order, and how much may wait for payment.

A buyer is counted by network and by email. A stranger can send anybody's email, so an email counts
in the buyer's own network (an IPv4 /24, an IPv6 /48); in all networks together it has ten times as
much. So from fewer than ten networks nobody can use up the budget of a buyer in another one.
"""

import hmac
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache

from gateway.domain.accounts.counter_store import AttemptLimit, NewCounterStore, OwnCounters
from gateway.domain.accounts.networks import networks_of
from gateway.domain.sales.unpaid import Holder
from gateway.domain.storefront.visitors.shopper import Shopper
from gateway.records.values.emails import counted_email
from outbox.clock import Clock
from outbox.webhooks.secrets import KeyRing

PURPOSE = "storefront budgets"

EVERYWHERE = 10
"""The limits of an email in all networks, as a multiple of those in one."""
WIDEST_SHARE = 5
"""The most multiple of reserved stock for a wider network, so that others find some left."""


@dataclass(frozen=True, slots=True)
class UnpaidLimits:
    """The limits of unpaid orders; 0 is no limit."""

    per_email: int
    per_address: int
    reserved_items: int
    reserved_percent: int


NO_LIMITS = UnpaidLimits(0, 0, 0, 0)


def holders(
    visitor: Shopper, email: str, total: int, limits: UnpaidLimits, ring: KeyRing
) -> Sequence[Holder]:
    """Return the holders of an order: the visitor's networks and the buyer's email.

    One without a price has no payment to wait for, so only its stock is bounded.

    Emails can be guessed like addresses, so a key of the ring is needed for their names, too.
    """
    if not visitor.networks:
        return ()
    per_address, per_email = (limits.per_address, limits.per_email) if total else (0, 0)
    store_id, key = visitor.store.id, _key(ring, ring.newest)
    named = [
        Holder(
            _name(key, store_id, network),
            "this address" if worth == 1 else "this network",
            per_address * worth,
            items=limits.reserved_items * min(worth, WIDEST_SHARE),
            percent=limits.reserved_percent * min(worth, WIDEST_SHARE),
        )
        for network, worth in visitor.networks
    ]
    if per_email:
        folded, (widest, _) = counted_email(email), visitor.networks[-1]
        who = "this email"
        named += (
            Holder(_name(key, store_id, widest, folded), who, per_email, "email"),
            Holder(_name(key, store_id, "", folded), who, per_email * EVERYWHERE, "email"),
        )
    return named


@lru_cache(maxsize=4)
def _key(ring: KeyRing, key_id: str) -> bytes:
    return ring.derive(PURPOSE)[key_id]


def _name(key: bytes, *parts: str) -> str:
    text = "\0".join(parts)
    return hmac.digest(key, text.encode("utf-8", "surrogatepass"), "sha256").hex()[:32]


@dataclass(slots=True)
class Counted:
    """A checkout that is counted until it turns out that it made no order."""

    tries: list[tuple[AttemptLimit, tuple[str, ...]]] = field(default_factory=list)

    def undo(self) -> None:
        """Count the checkout no more."""
        while self.tries:
            limit, of = self.tries.pop()
            limit.undo(*of)


class CheckoutRates:
    """How many orders an address, its networks and an email may make in a minute and an hour."""

    def __init__(
        self, clock: Clock, per_minute: int, per_hour: int, keep: NewCounterStore = OwnCounters
    ) -> None:
        periods = [
            (most, seconds, name)
            for most, seconds, name in ((per_minute, 60.0, "minute"), (per_hour, 3_600.0, "hour"))
            if most
        ]

        def limits(who: str, worth: int = 1) -> list[AttemptLimit]:
            return [
                AttemptLimit(
                    clock, most * worth, seconds,
                    f"Too many orders of this {who} within one {name}; try again later.", keep,
                )
                for most, seconds, name in periods
            ]  # fmt: skip

        self._of_address = limits("address")
        self._of_email = limits("email")
        self._of_email_everywhere = limits("email in all networks", EVERYWHERE)

    @contextmanager
    def count(self, address: str, email: str) -> Iterator[Counted]:
        """Count the checkout that the block does; one that fails does not count.

        Raises rate_limited.
        """
        folded = counted_email(email)
        widest, _ = networks_of(address)[-1]
        counted = Counted()
        try:
            for limits, of in (
                (self._of_address, (address,)),
                (self._of_email, (widest, folded)),
                (self._of_email_everywhere, ("", folded)),
            ):
                for limit in limits:
                    limit.begin(*of)
                    counted.tries.append((limit, of))
            yield counted
        except BaseException:
            counted.undo()
            raise
