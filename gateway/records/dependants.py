"""Settles the dependants of deleted records in the background; see gateway.records.cascades.

It runs small units with a pause after each and takes the owners in turn, so that neither other
writes nor another owner's dependants wait for one big delete. The next run continues an
interrupted one.
"""

import asyncio
from collections.abc import Iterable

from gateway.records import cascades
from gateway.records.resource import Resource
from outbox.database.sql import IDS, items
from outbox.database.transaction import Database, Tx

REST = 3.0
"""Length of a pause as a multiple of the unit before it; leaves 3/4 of the time to others."""
MOST_REST = 0.25
OWNERS = 50

# One row of each owner. Rows with a noun that only a newer version knows are left for it.
_PENDING = f"""
select p.owner_id, p.record_id, p.noun from pending_ends p join (
  select owner_id, min(record_id) as record_id from pending_ends where noun in {IDS}
  group by owner_id limit $2
) as firsts on firsts.owner_id = p.owner_id and firsts.record_id = p.record_id
"""


class Dependants:
    """The background duty; run it one at a time. A run may be cancelled."""

    def __init__(self, db: Database, resources: Iterable[Resource]) -> None:
        self._db = db
        self._resources = {resource.noun: resource for resource in resources}
        self._nouns = items(list(self._resources))

    async def run_once(self) -> None:
        """Settle dependants until nothing is pending."""
        while rows := await self._db.read(_pending, self._nouns):
            for owner_id, record_id, noun in rows:
                await self.one(owner_id, record_id, noun)

    async def one(self, owner_id: str, record_id: str, noun: str) -> None:
        """Settle some dependants of one record, and pause."""
        resource = self._resources[noun]
        took = await self._db.write(cascades.settle, resource, owner_id, record_id, self._db.clock)
        await asyncio.sleep(min(REST * took, MOST_REST))

    async def any_pending(self) -> bool:
        """Return whether there is anything to settle."""
        return bool(await self._db.read(_pending, self._nouns))


async def _pending(tx: Tx, nouns: str) -> list[tuple[str, str, str]]:
    """Return owner, id and noun of deleted records with dependants left, one of each owner."""
    return [(row[0], row[1], row[2]) for row in await tx.all(_PENDING, nouns, OWNERS)]
