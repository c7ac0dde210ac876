"""Makes the slug of a record from its name, unique within its store."""

import re
from collections.abc import Iterator

from gateway.records import statements
from gateway.records.record import Record
from gateway.records.values.folding import transliterate
from outbox.database.transaction import Tx

LENGTH = 100
TRIES = 9
_OTHERS = re.compile("[^a-z0-9]+")


def slug_of(name: str) -> str:
    """Return the words of a name with hyphens between them; empty when it has none."""
    return _OTHERS.sub("-", transliterate(name)).strip("-")[:LENGTH].rstrip("-")


async def complete(tx: Tx, record: Record) -> Record:
    """Return a stored record with a slug; make one when it has a store but no slug.

    The record keeps its version, so call this in the transaction that inserts or changes it.
    """
    resource = record.resource
    unique = resource.named["slug"].unique
    assert unique is not None, "slugs are unique"
    if record["store_id"] is None or record["slug"] is not None:
        return record
    claim = statements.claim(unique)
    base = slug_of(record["name"]) or resource.noun
    for slug in _candidates(tx, base):
        # The claim waits for a concurrent one of the same slug; if that wins, try the next slug.
        if await tx.run(claim, record["store_id"], slug, record.id):
            break
    await tx.run(f"update {resource.table} set slug = $2 where id = $1", record.id, slug)
    row = [*record.row]
    row[resource.position["slug"]] = slug
    return Record(resource, row, record.derived)


def _candidates(tx: Tx, base: str) -> Iterator[str]:
    yield base
    for number in range(2, TRIES + 1):
        yield f"{base}-{number}"
    while True:
        yield f"{base}-{tx.new_id()[-8:]}"
