"""Who is calling, and whose records they may touch."""

from dataclasses import dataclass
from typing import Literal

from gateway.errors import Refusal

Scope = Literal["read", "write"]


@dataclass(frozen=True, slots=True)
class Caller:
    """A recognised caller. `user_id` owns what it creates; `key_id` is set for API keys."""

    user_id: str
    via: Literal["api_key", "bearer", "session"]
    scopes: frozenset[Scope] = frozenset({"read", "write"})
    key_id: str | None = None

    def must(self, scope: Scope) -> None:
        """Raise forbidden when the credential lacks `scope`."""
        if scope not in self.scopes:
            raise Refusal(
                "forbidden", f"This API key lacks the scope {scope!r}; use one that has it."
            )


def must_own(caller: Caller, owner_id: str, noun: str) -> None:
    """Raise forbidden when the record belongs to somebody else."""
    if caller.user_id != owner_id:
        raise Refusal("forbidden", f"This {noun} belongs to another user.")
