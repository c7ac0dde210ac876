"""The duty that settles the dependants of records that are gone; see gateway.records.cascades.

Small units with a rest after each, the owners in turn, so that neither other writes nor another
owner's dependants wait for one big delete. A run that is broken off is gone on with by the next.
"""

import asyncio
from collections.abc import Iterable

from gateway.records import cascades
from gateway.records.resource import Resource
from outbox.database.sql import IDS, items
from outbox.database.transaction import Database, Tx

REST = 3.0
"""Times as long as a unit took; so the others have three quarters of the time."""
MOST_REST = 0.25
OWNERS = 50

# One of each owner. What a newer program has noted waits for it.
_PENDING = f"""
select p.owner_id, p.record_id, p.noun from pending_ends p join (
  select owner_id, min(record_id) as record_id from pending_ends where noun in {IDS}
  group by owner_id limit $2
) as firsts on firsts.owner_id = p.owner_id and firsts.record_id = p.record_id
"""


class Dependants:
    """Settles what is pending. Run one at a time; a run may be broken off."""

    def __init__(self, db: Database, resources: Iterable[Resource]) -> None:
        self._db = db
        self._resources = {resource.noun: resource for resource in resources}
        self._nouns = items(list(self._resources))

    async def run_once(self) -> None:
        """Settle until nothing is pending."""
        while found := await self._db.read(_pending, self._nouns):
            for owner_id, record_id, noun in found:
                await self.one(owner_id, record_id, noun)

    async def one(self, owner_id: str, record_id: str, noun: str) -> None:
        """Settle some dependants of one record, and rest."""
        resource = self._resources[noun]
        took = await self._db.write(cascades.settle, resource, owner_id, record_id, self._db.clock)
        await asyncio.sleep(min(REST * took, MOST_REST))

    async def any_pending(self) -> bool:
        """Whether there is anything to settle."""
        return bool(await self._db.read(_pending, self._nouns))


async def _pending(tx: Tx, nouns: str) -> list[tuple[str, str, str]]:
    """Owner, id and noun of records that are gone and have dependants left, one of each owner."""
    return [(row[0], row[1], row[2]) for row in await tx.all(_PENDING, nouns, OWNERS)]
