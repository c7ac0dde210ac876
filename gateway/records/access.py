"""Describes who acts, and checks scopes and ownership."""

from dataclasses import dataclass
from typing import Literal

from gateway.records.errors import Refusal

Scope = Literal["read", "write"]
Via = Literal["api_key", "bearer", "session", "storefront", "system"]
Cause = Literal[
    "command", "connection", "customer", "erasure", "expiry", "import", "mail", "payment"
]
"""Why the system acts: a command on the server, an app that its owner has allowed, the customer of
a document by its link, the erasure of a person, the end of a time, an import, a link in a mail, a
payment that its provider reported."""


@dataclass(frozen=True, slots=True)
class Actor:
    """The caller that acts on the records of `owner_id`.

    `via` names the credential: an account's API key, token or console session, a visitor of a
    store, or the system itself. `zone` is the owner's time zone.
    """

    owner_id: str
    via: Via
    scopes: frozenset[Scope] = frozenset({"read", "write"})
    key_id: str | None = None
    zone: str = "UTC"
    store_id: str | None = None
    customer_id: str | None = None
    """The customer who is signed in to the store; None for a visitor."""
    resources: frozenset[str] | None = None
    """What of the REST API the key is for, such as `contacts`; None for all."""
    cause: Cause = "command"
    """Why the system acts; for no other `via`."""

    def must(self, scope: Scope) -> None:
        """Raise forbidden when the credential lacks `scope`."""
        if scope not in self.scopes:
            raise Refusal(
                "forbidden", f"This API key lacks the scope {scope!r}; use a key with this scope."
            )


def must_own(actor: Actor, owner_id: str, noun: str) -> None:
    """Raise forbidden when another account owns the record."""
    if actor.owner_id != owner_id:
        raise Refusal("forbidden", f"This {noun} belongs to another user.")
