"""Updates or deletes the dependants of a deleted record, as declared, without events.

Up to MOST dependants are settled in the transaction of the delete. With more, that transaction only
writes a row to `pending_ends`: reads then behave as if the work were done
(gateway.records.settled_rows), and `settle` does it in batches.
"""

from collections import Counter

from gateway.records import statements
from gateway.records.resource import Cascade, Drop, Remove, Resource, Unset
from gateway.records.store import slot, tally
from outbox.clock import Clock
from outbox.database.plans import by_index
from outbox.database.sql import items
from outbox.database.transaction import Tx

MOST = 500
"""Most dependants that are settled in the transaction of the delete."""
UNIT_SECONDS = 0.002
"""After this time `settle` starts no further batch."""
PIECES = {"sqlite": 100, "postgres": 200}
_NOTE = "insert into pending_ends (owner_id, record_id, noun) values ($1, $2, $3)"
_DONE = "delete from pending_ends where owner_id = $1 and record_id = $2"


async def follow(tx: Tx, resource: Resource, owner_id: str, record_id: str) -> None:
    """Settle every record that points to the one just deleted, now or in later batches."""
    if not resource.cascades:
        return
    row = await tx.one(statements.dependants(resource), owner_id, record_id, MOST + 1)
    if row is not None and row["n"] > MOST:
        await tx.run(_NOTE, owner_id, record_id, resource.noun)
        return
    for cascade in resource.cascades:
        match cascade:
            case Unset(table, column, also):
                await tx.run(statements.unset(table, column, also), owner_id, record_id, tx.now)
            case Drop(table, column, listed_in):
                sql = statements.drop(table, column, listed_in)
                await tx.run(sql, owner_id, record_id, tx.now)
                await tx.run(statements.unlist_everywhere(listed_in), owner_id, record_id)
            case Remove(table, column, counted):
                gone = await tx.all(statements.remove_of(table, column), owner_id, record_id)
                by_slot = Counter(slot(row[0]) for row in gone if counted)
                tally(tx, owner_id, table, {s: -n for s, n in by_slot.items()})


async def settle(tx: Tx, resource: Resource, owner_id: str, record_id: str, clock: Clock) -> float:
    """Settle dependants of a deleted record for about UNIT_SECONDS; return the seconds taken.

    After the last dependant, delete the row in `pending_ends`.
    """
    await by_index(tx)
    began = clock.monotonic()
    most = PIECES[tx.engine]
    gone: dict[str, Counter[int]] = {}
    done = False
    for cascade in resource.cascades:
        count = most
        while count == most and (not done or clock.monotonic() - began < UNIT_SECONDS):
            count = await _piece(tx, cascade, owner_id, record_id, most, gone)
            done = True
        if count == most:
            break
    else:
        await tx.run(_DONE, owner_id, record_id)
    for table in sorted(gone):
        tally(tx, owner_id, table, {s: -n for s, n in gone[table].items()})
    return clock.monotonic() - began


async def _piece(
    tx: Tx,
    cascade: Cascade,
    owner_id: str,
    record_id: str,
    most: int,
    gone: dict[str, Counter[int]],
) -> int:
    """Settle up to `most` dependants, return how many, and count deletions in `gone` by slot."""
    rows = await tx.all(statements.some_dependants(cascade), owner_id, record_id, most)
    ids = items([row[0] for row in rows])
    if not rows:
        return 0
    match cascade:
        case Unset(table, column, also):
            await tx.run(statements.unset_these(table, column, also), ids, record_id, tx.now)
        case Drop(table, column, listed_in):
            await tx.run(statements.drop_these(table, column), ids, record_id, tx.now)
            await tx.run(statements.unlist_these(listed_in), ids, owner_id, record_id)
        case Remove(table, column, counted):
            removed = await tx.all(statements.remove_these(table, column), ids, record_id)
            if counted:
                gone.setdefault(table, Counter()).update(slot(row[0]) for row in removed)
    return len(rows)
