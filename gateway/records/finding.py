"""Finds records of many kinds by what a person remembers of them: a name, a phone, a number.

It reads one statement a kind and one more. Each looks at no more than the newest LOOKED_AT records
of its kind, in the index of its list.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.records import searching, settled_rows, statements, store
from gateway.records.audit import Actor
from gateway.records.query import NEWEST, OWNED, OWNED_OF_FEW
from gateway.records.record import Record, records_of
from gateway.records.resource import Resource
from outbox.database.transaction import Tx

SHOWN = 8
"""Records of a kind that are found."""
LOOKED_AT = 100_000
"""Newest records of a kind that are looked at."""
OF_PARTY = 1_000
"""Records of each kind that are looked at because they name what was found before them."""
_TOTALS = "select kind, cast(sum(n) as bigint) as n from tallies where owner_id = $1 group by kind"


@dataclass(frozen=True, slots=True)
class Found:
    """What was found of one kind, the newest first."""

    resource: Resource
    records: Sequence[Record]
    more: bool
    """Whether there are more than SHOWN."""
    cut: bool
    """Whether there are older records that were not looked at."""


async def find(tx: Tx, actor: Actor, resources: Sequence[Resource], text: str) -> list[Found]:
    """Return what matches of each kind, in the order of `resources`. Raises forbidden.

    A kind that is named by its number is also found by the records before it that it names: an
    invoice by its contact.
    """
    actor.must("read")
    if not searching.words_of(text) or not searching.is_searchable(text):
        return []
    counted = await tx.all(_TOTALS, actor.owner_id)
    totals = {row["kind"]: row["n"] for row in counted}
    groups: list[Found] = []
    parties: dict[str, list[str]] = {}
    for resource in resources:
        if not totals.get(resource.table):
            continue
        named = parties if resource.heading == "number" else {}
        cut = totals[resource.table] > LOOKED_AT
        records = await _of(tx, actor, resource, text, named, cut=cut)
        parties[resource.table] = [record.id for record in records[:SHOWN]]
        if records:
            groups.append(Found(resource, records[:SHOWN], len(records) > SHOWN, cut))
    return groups


async def _of(
    tx: Tx, actor: Actor, resource: Resource, text: str, parties: Mapping[str, Sequence[str]],
    *, cut: bool,
) -> Sequence[Record]:  # fmt: skip
    table, args = resource.table, list[str]()
    seen, bounds = settled_rows.seen(resource), f"order by {NEWEST} limit {SHOWN + 1}"
    wanted = searching.condition(text, args, numbered=bool(resource.numbers), anywhere=True)
    if cut:
        oldest = f"select created_at from {table} where {OWNED} order by {NEWEST}"
        wanted = f"created_at >= ({oldest} limit 1 offset {LOOKED_AT - 1}) and {wanted}"
    ways = [f"select id from {table} where {OWNED} and {wanted}{seen} {bounds}"]
    for field, to in resource.references:
        ids = parties.get(to.table, ())
        if ids:
            places = ", ".join(f"${len(args) + n}" for n in range(2, len(ids) + 2))
            args += ids
            ways.append(
                f"select id from (select id, created_at from {table} where {OWNED}"
                f" and {field.column} in ({places}){seen} limit {OF_PARTY}) as theirs {bounds}"
            )
    each = " union all ".join(f"select id from ({way}) as way_{n}" for n, way in enumerate(ways))
    # Sorted by an expression, so that only these are read and not the index of all.
    sql = statements.page(
        resource, f"{OWNED_OF_FEW} and id in ({each})", "created_at + 0 desc, id desc",
        size=len(args) + 2, offset=len(args) + 3, late=False,
    )  # fmt: skip
    rows, _ = await store.fetch_all(tx, sql, actor.owner_id, *args, SHOWN + 1, 0)
    return records_of(resource, rows, tx.now, actor.zone)
