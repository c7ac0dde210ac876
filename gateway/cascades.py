"""What else changes when a record goes, as its declaration says. None of it emits an event."""

from collections import Counter

from gateway import statements
from gateway.resource import Drop, Remove, Resource, Unset
from gateway.store import slot, tally
from outbox.database import Tx


async def follow(tx: Tx, resource: Resource, owner_id: str, record_id: str) -> None:
    """Settle every record that points to the one that has just been deleted."""
    for cascade in resource.cascades:
        match cascade:
            case Unset(table, column):
                await tx.run(statements.unset(table, column), owner_id, record_id, tx.now)
            case Drop(table, column, listed_in):
                sql = statements.drop(table, column, listed_in)
                await tx.run(sql, owner_id, record_id, tx.now)
                await tx.run(statements.unlist_everywhere(listed_in), owner_id, record_id)
            case Remove(table, column):
                gone = await tx.all(statements.remove_of(table, column), owner_id, record_id)
                by_slot = Counter(slot(row[0]) for row in gone)
                await tally(tx, owner_id, table, {s: -n for s, n in by_slot.items()})
