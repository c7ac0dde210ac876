"""Names that a unit claims, for an owner, in this database and in others."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Claim:
    """A name that only one owner may have.

    `holds`: whether the owner has it after the unit, or gives it up. `field` is where the client
    sent it.
    """

    kind: str
    value: str
    owner_id: str
    field: str = ""
    holds: bool = True


Reserve = Callable[[Sequence[Claim]], Awaitable[None]]
"""Reserves what a unit claims, before its COMMIT; an error of it is one of the unit."""
