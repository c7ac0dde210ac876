"""Updates or deletes the dependants of a deleted record, as declared, without events.

Up to MOST dependants are settled in the transaction of the delete. With more, that transaction only
writes a row to `pending_ends`: reads then behave as if the work were done
(gateway.records.settled_rows), and Dependants does it in batches, in the background.
"""

from collections import Counter
from collections.abc import Iterable

from gateway.records import statements
from gateway.records.resource import Cascade, Drop, Remove, Resource, Unset
from gateway.records.store import slot, tally
from outbox.clock import Clock
from outbox.database.index_plans import by_index
from outbox.database.moving_owners import is_here
from outbox.database.pacing import JobPace
from outbox.database.sql import IDS, items
from outbox.database.transaction import Database, Tx

MOST = 500
"""Most dependants that are settled in the transaction of the delete."""
UNIT_SECONDS = 0.002
"""After this time `settle` starts no further batch."""
PIECES = {"sqlite": 100, "postgres": 200}
LEAST = 10
"""Dependants of a batch that others feel, however small it is."""
OWNERS = 50
_NOTE = "insert into pending_ends (owner_id, record_id, noun) values ($1, $2, $3)"
_DONE = "delete from pending_ends where owner_id = $1 and record_id = $2"

# One row of each owner. Rows with a noun that only a newer version knows are left for it.
_PENDING = f"""
select p.owner_id, p.record_id, p.noun from pending_ends p join (
  select owner_id, min(record_id) as record_id from pending_ends
  where noun in {IDS} and {is_here("pending_ends.owner_id")}
  group by owner_id limit $2
) as firsts on firsts.owner_id = p.owner_id and firsts.record_id = p.record_id
"""


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


async def counted(
    tx: Tx, resource: Resource, owner_id: str, record_id: str
) -> list[tuple[Cascade, int]]:
    """Return of each cascade how many records it changes, up to MOST + 1."""
    found = []
    for cascade in resource.cascades:
        row = await tx.one(statements.count_dependants(cascade), owner_id, record_id, MOST + 1)
        found.append((cascade, int(row[0]) if row else 0))
    return found


async def settle(
    tx: Tx, resource: Resource, owner_id: str, record_id: str, clock: Clock, most: int
) -> None:
    """Settle dependants of a deleted record for about UNIT_SECONDS, in batches of `most`.

    After the last dependent, delete the row in `pending_ends`.
    """
    await by_index(tx)
    began = clock.monotonic()
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


class Dependants:
    """The background duty that settles what `follow` left; run it one at a time.

    It runs small units, which other writes do not feel, and takes the owners in turn, so that no
    owner's dependants wait for another one's big delete. A run may be cancelled; the next
    one continues it.
    """

    def __init__(self, db: Database, resources: Iterable[Resource]) -> None:
        self._db = db
        self._resources = {resource.noun: resource for resource in resources}
        self._nouns = items(list(self._resources))
        self._pace = JobPace(db.meter, PIECES[db.engine], LEAST, clock=db.clock)

    async def run_once(self) -> None:
        """Settle dependants until nothing is pending."""
        while rows := await self._db.read(_pending, self._nouns):
            for owner_id, record_id, noun in rows:
                await self.one(owner_id, record_id, noun)

    async def one(self, owner_id: str, record_id: str, noun: str) -> None:
        """Settle some dependants of one record."""
        resource = self._resources[noun]
        async with self._pace.step() as most:
            await self._db.write(settle, resource, owner_id, record_id, self._db.clock, most)

    async def any_pending(self) -> bool:
        """Return whether there is anything to settle."""
        return bool(await self._db.read(_pending, self._nouns))


async def _pending(tx: Tx, nouns: str) -> list[tuple[str, str, str]]:
    """Return owner, id and noun of deleted records with dependants left, one of each owner."""
    return [(row[0], row[1], row[2]) for row in await tx.all(_PENDING, nouns, OWNERS)]
