"""Finds records by what people call them, for a search for their deliveries or events."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.domain.catalogue import RESOURCES
from gateway.records.access import Actor
from gateway.records.resource import Resource
from gateway.records.values.folding import BETWEEN, fold
from outbox.clock import Clock
from outbox.database.transaction import Tx

MOST = 10
"""Records that a search names."""
NEWEST = 2_000
"""Records of a kind without an index of its words that are looked at."""
SECONDS = 0.15
"""A search begins with no further kind of records after this time."""

WORDS = """
select id, {heading} as heading from {table}
where owner_id = $1 and /*sqlite instr(folded, $2)*/ /*postgres strpos(folded, $2)*/ > 0
order by created_at desc, id desc limit $3
"""
LATEST = """
select id, {heading} as heading from {table} where owner_id = $1
order by created_at desc, id desc limit $2
"""


@dataclass(frozen=True, slots=True)
class Named:
    """A record: what it is, its id, what it is called."""

    noun: str
    id: str
    name: str


async def matching(tx: Tx, actor: Actor, clock: Clock, text: str) -> Sequence[Named]:
    """Return up to MOST of the actor's records whose heading or email has the text."""
    actor.must("read")
    folded, began = fold(text.strip()), clock.monotonic()
    found: list[Named] = []
    if not folded or BETWEEN in text:
        return found
    for resource in RESOURCES:
        if not resource.heading or not resource.events or clock.monotonic() - began > SECONDS:
            continue
        column = resource.named[resource.heading].column
        found += await _of(tx, actor.owner_id, resource, column, folded, MOST - len(found))
        if len(found) >= MOST:
            break
    return found


async def _of(
    tx: Tx, owner_id: str, resource: Resource, column: str, folded: str, most: int
) -> Sequence[Named]:
    if resource.search:
        sql = WORDS.format(heading=column, table=resource.table)
        rows = await tx.all(sql, owner_id, folded, most)
    else:
        sql = LATEST.format(heading=column, table=resource.table)
        latest = await tx.all(sql, owner_id, NEWEST)
        rows = [row for row in latest if folded in fold(str(row["heading"] or ""))][:most]
    return [Named(resource.noun, row["id"], str(row["heading"] or row["id"])) for row in rows]
