"""Who acts, and on whose records."""

from dataclasses import dataclass
from typing import Literal

from gateway.records.errors import Refusal

Scope = Literal["read", "write"]
Via = Literal["api_key", "bearer", "session", "storefront", "system"]


@dataclass(frozen=True, slots=True)
class Actor:
    """Whoever acts on the records of `owner_id`.

    `via` says how: an account by an API key, a token or the console, a visitor of a store, or the
    system itself. `zone` is the time zone in which the owner's days end.
    """

    owner_id: str
    via: Via
    scopes: frozenset[Scope] = frozenset({"read", "write"})
    key_id: str | None = None
    zone: str = "UTC"
    store_id: str | None = None
    customer_id: str | None = None
    """The customer who is signed in to the store; None for a visitor."""

    def must(self, scope: Scope) -> None:
        """Raise forbidden when the credential lacks `scope`."""
        if scope not in self.scopes:
            raise Refusal(
                "forbidden", f"This API key lacks the scope {scope!r}; use one that has it."
            )


def must_own(actor: Actor, owner_id: str, noun: str) -> None:
    """Raise forbidden when the record belongs to somebody else."""
    if actor.owner_id != owner_id:
        raise Refusal("forbidden", f"This {noun} belongs to another user.")
