"""Creates the parts that serve the customers of stores."""

from dataclasses import dataclass

from gateway.domain.accounts.passwords import Passwords
from gateway.domain.storefront.customer_passwords import CustomerPasswords
from gateway.domain.storefront.session_tokens import TokenRing
from outbox.database.transaction import Database
from outbox.webhooks.secrets import KeyRing


@dataclass(frozen=True, slots=True)
class Storefront:
    """The parts that serve the customers of stores."""

    tokens: TokenRing
    passwords: CustomerPasswords


def build_storefront(db: Database, ring: KeyRing, passwords: Passwords) -> Storefront:
    """Return the parts."""
    return Storefront(TokenRing(ring), CustomerPasswords(db, passwords))
