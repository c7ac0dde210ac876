"""Finds records by what people call them, for a search for their deliveries or events."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gateway.domain.catalogue import RESOURCES
from gateway.records.audit import Actor
from gateway.records.searching import condition, is_searchable, words_of
from outbox.clock import Clock
from outbox.database.transaction import Tx

MOST = 10
"""Records that a search names."""
SECONDS = 0.15
"""A search begins with no further kind of records after this time."""

NAMED = """
select id, {heading} as heading from {table} where owner_id = $1 and {found}
order by created_at desc, id desc limit {most}
"""


@dataclass(frozen=True, slots=True)
class Named:
    """A record: what it is, its id, what it is called."""

    noun: str
    id: str
    name: str


async def matching(tx: Tx, actor: Actor, clock: Clock, text: str) -> Sequence[Named]:
    """Return up to MOST of the actor's records whose heading or email has the words."""
    actor.must("read")
    began = clock.monotonic()
    matches: list[Named] = []
    if not words_of(text) or not is_searchable(text):
        return matches
    for resource in RESOURCES:
        if not resource.search or not resource.events or clock.monotonic() - began > SECONDS:
            continue
        column = resource.named[resource.heading].column
        args: list[Any] = []
        sql = NAMED.format(
            heading=column,
            table=resource.table,
            most=MOST - len(matches),
            found=condition(text, args, numbered=False, anywhere=False),
        )
        rows = await tx.all(sql, actor.owner_id, *args)
        matches += [
            Named(resource.noun, row["id"], str(row["heading"] or row["id"])) for row in rows
        ]
        if len(matches) >= MOST:
            break
    return matches
