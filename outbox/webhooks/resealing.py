"""Encrypt the stored secrets of webhooks and the signing keys again, with the newest key.

The mark of the key ring comes last: see outbox.webhooks.key_mark.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from outbox.database.transaction import Tx
from outbox.webhooks import key_mark, signing_keys
from outbox.webhooks.secrets import ID_BYTES, KeyRing, SealBroken

COLUMNS = key_mark.SEALED

# A value starts with the id of its key.
UNFINISHED = f"""
select 1 as found from webhooks
where {" or ".join(f"substr({name}, 1, {ID_BYTES}) <> $1" for name in COLUMNS)} limit 1
"""


@dataclass(frozen=True, slots=True)
class SealedTable:
    """A table with encrypted columns, and the column that each value is bound to."""

    name: str
    bound: str
    columns: Sequence[str]


WEBHOOKS = SealedTable("webhooks", "id", COLUMNS)
SIGNING_KEYS = SealedTable("signing_keys", "id", ("private_key",))


class Resealed(NamedTuple):
    """One page: the last bound value (None after the last page), and counts of values.

    `done` were encrypted again; `broken` no key opens.
    """

    last: str | None
    done: int
    broken: int


async def sweep(tx: Tx, table: SealedTable, ring: KeyRing, after: str, limit: int) -> Resealed:
    """Encrypt again what older keys encrypted in the next `limit` rows after a bound value.

    Versions stay, because what is encrypted does not change.
    """
    rows = await tx.all(
        f"select {table.bound} as bound, {', '.join(table.columns)} from {table.name}"
        f" where {table.bound} > $1 order by {table.bound} limit $2",
        after,
        limit,
    )
    done = broken = 0
    for row in rows:
        bound = row["bound"]
        for name in table.columns:
            if row[name] is None or not ring.stale(sealed := bytes(row[name])):
                continue
            try:
                again = ring.seal(ring.open(sealed, bound), bound)
            except SealBroken:
                broken += 1
                continue
            # A value that was replaced meanwhile stays: a newer key encrypted it already.
            done += await tx.run(
                f"update {table.name} set {name} = $2 where {table.bound} = $1 and {name} = $3",
                bound,
                again,
                sealed,
            )
    return Resealed(rows[-1]["bound"] if len(rows) == limit else None, done, broken)


async def reseal(tx: Tx, ring: KeyRing, after: str, limit: int) -> Resealed:
    """Encrypt the next `limit` webhooks again; after the last one, signing keys and the mark."""
    page = await sweep(tx, WEBHOOKS, ring, after, limit)
    if page.last is not None:
        return page
    done, broken, key = page.done, page.broken, ""
    while True:
        keys = await sweep(tx, SIGNING_KEYS, ring, key, limit)
        done, broken = done + keys.done, broken + keys.broken
        if keys.last is None:
            break
        key = keys.last
    await key_mark.reseal(tx, ring)
    return Resealed(None, done, broken)


async def unfinished(tx: Tx, ring: KeyRing) -> bool:
    """Return whether an older key than the newest of the ring encrypted a stored value."""
    if await key_mark.stale(tx, ring):
        return True
    keys = await signing_keys.listed(tx)
    if any(key.sealed is not None and ring.stale(key.sealed) for key in keys):
        return True
    return await tx.one(UNFINISHED, bytes.fromhex(ring.newest)) is not None
