"""How the rows of each table belong to an owner, declared once for each table.

Each table has rows of owners, by one or more ways, or rows that are nobody's. Whoever needs all
rows of one owner, or what nobody owns, reads these declarations instead of a list of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class Way:
    """A way from a row to its owner: `column` has the owner's id, or the `key` of a parent."""

    column: str
    parent: str | None = None
    key: str = "id"


class Common(Enum):
    """Why the rows of a table have no owner."""

    INSTALLATION = "rows of the installation itself"
    PACKED = "each row holds something of many owners and is made from their other rows"


Belonging = tuple[Way, ...] | Common
"""The ways of a row to its owner, of which one is enough, or why there is none."""
Ownership = Mapping[str, Belonging]
"""Every table of a schema, parents before children."""

OWNED = (Way("owner_id"),)


def child(column: str, parent: str) -> tuple[Way, ...]:
    """Return the way by a parent whose `id` is in `column`."""
    return (Way(column, parent),)


OUTBOX: Ownership = {
    "schema_migrations": Common.INSTALLATION,
    "outbox_state": Common.INSTALLATION,
    "nodes": Common.INSTALLATION,
    "duties": Common.INSTALLATION,
    "signing_keys": Common.INSTALLATION,
    "owners": Common.INSTALLATION,
    # Empty but for the time of a move.
    "move_changes": Common.INSTALLATION,
    "webhooks": OWNED,
    "lanes": OWNED,
    "events": OWNED,
    "event_marks": Common.PACKED,
    "remainders": OWNED,
    "deliveries": OWNED,
    "attempts": OWNED,
    "wakes": child("webhook_id", "webhooks"),
    "passes": child("webhook_id", "webhooks"),
    "sequences": child("webhook_id", "webhooks"),
    "forgotten": child("webhook_id", "webhooks"),
    "figures": (Way("subject_id"), Way("subject_id", "webhooks")),
    # Earlier rows have no owner, but deliveries until retention deletes both.
    "chain_ends": (Way("owner_id"), Way("webhook_id", "deliveries", "webhook_id")),
    "chain_gaps": (Way("webhook_id", "webhooks"), Way("webhook_id", "chain_ends", "webhook_id")),
    "deleted_webhooks": OWNED,
    "checkpoints": OWNED,
    "jobs": OWNED,
    "notices": OWNED,
    "erasures": OWNED,
}
"""The tables of the outbox."""


def of_owner(ownership: Ownership, table: str) -> str:
    """Return the condition, in SQL, of the rows of a table that belong to the owner $1."""
    ways = ownership[table]
    assert not isinstance(ways, Common), table
    return " or ".join(
        f"{way.column} = $1"
        if way.parent is None
        else f"{way.column} in (select {way.key} from {way.parent}"
        f" where {of_owner(ownership, way.parent)})"
        for way in ways
    )


def row_of_owner(ownership: Ownership, table: str, row: str, owner: str) -> str:
    """Return the condition, in SQL, that the row `row` of a table belongs to `owner`, a literal."""
    ways = ownership[table]
    assert not isinstance(ways, Common), table
    return " or ".join(
        f"{row}.{way.column} = {owner}"
        if way.parent is None
        else f"exists (select 1 from {way.parent} where {way.parent}.{way.key} = {row}.{way.column}"
        f" and ({row_of_owner(ownership, way.parent, way.parent, owner)}))"
        for way in ways
    )
